/** Receipts of a standard stream in their chains, and the histories of groups. */
import type { GroupHistory, GroupReceiptRow, Outline, ReceiptRow } from "remuda/inspect";
import { digest, element, graphic, grouped } from "../shared/dom.js";
import type { Standings } from "./history.js";
import { actionWords, counted } from "./words.js";
import { time } from "./time.js";

/** How many receipts a picture has, and a table. */
const DRAWN = 120;
const TABLED = 100;
const MOST_LANES = 24;
const STEP = 22;
const RADIUS = 7;

const FOLLOWS: Record<Follows, string> = { next: "follows", another: "follows an earlier one", missing: "names one that is not here" };

/** What a receipt names as the one before it: the one that is shown before, another one of the file, or one that is not in it. */
export type Follows = "next" | "another" | "missing";

export function links(rows: readonly { digest: string; previous: string }[]): Follows[] {
  const known = new Set(rows.map(({ digest: own }) => own));
  return rows.map(({ previous }, index) => {
    // Where the file begins is no break.
    if (index === 0 || previous === rows[index - 1]!.digest) return "next";
    return known.has(previous) ? "another" : "missing";
  });
}

/** By sequence, as a chain goes; what comes second to a sequence is behind all others. */
export function inOrder<Row extends { sequence: bigint }>(rows: readonly Row[]): Row[] {
  const first = new Map<bigint, Row>();
  for (const row of rows) if (!first.has(row.sequence)) first.set(row.sequence, row);
  const chain = [...first.values()].sort((a, b) => (a.sequence < b.sequence ? -1 : 1));
  return [...chain, ...rows.filter((row) => first.get(row.sequence) !== row)];
}

function beads(label: string, rows: readonly { digest: string; previous: string; item: number; says: string }[], standings: Standings): HTMLElement {
  const drawn = rows.slice(0, DRAWN);
  const follows = links(drawn);
  const width = drawn.length * STEP + RADIUS;
  const holes = follows.filter((follow) => follow !== "next").length;
  const says = `${label}: ${counted(rows.length, "receipt")}, ${holes === 0 ? "each naming the one before" : `with ${counted(holes, "break")}`}`;
  const svg = graphic("svg", { viewBox: `0 0 ${width} 30`, width, height: 30, role: "img", "aria-label": says, class: "beads" });
  drawn.forEach(({ item, says: title }, index) => {
    const at = index * STEP + RADIUS + 4;
    if (index > 0) svg.append(graphic("line", { class: follows[index] === "next" ? "link" : "break", x1: at - STEP + RADIUS, x2: at - RADIUS, y1: 15, y2: 15 }));
    const bead = graphic("circle", { class: `bead ${standings.served(item)}`, cx: at, cy: 15, r: RADIUS });
    bead.append(graphic("title", {}, title));
    svg.append(bead);
  });
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label, "data-testid": "chain", "data-holes": String(holes) }, svg);
}

export function receiptChains({ receipts }: Outline, standings: Standings): HTMLElement | null {
  if (receipts.total === 0) return null;
  const lanes = new Map<string, ReceiptRow[]>();
  for (const row of receipts.rows) {
    const rows = lanes.get(row.lane);
    if (rows) rows.push(row);
    else lanes.set(row.lane, [row]);
  }
  const says = ({ sequence, lane }: ReceiptRow) => `Sequence ${sequence}, lane ${lane.slice(0, 8)}…`;
  const chains = [...lanes].slice(0, MOST_LANES).map(([lane, rows]) => ({
    lane,
    chain: beads(`Lane ${lane.slice(0, 8)}`, inOrder(rows).map((row) => ({ ...row, previous: row.previousInLane, says: says(row) })), standings),
  }));
  const whole = inOrder(receipts.rows).map((row) => ({ ...row, previous: row.previousInStream, says: says(row) }));
  const stream = beads("The whole stream", whole, standings);
  const hasBreak = [stream, ...chains.map(({ chain }) => chain)].some(({ dataset }) => dataset["holes"] !== "0");
  return element(
    "section",
    { id: "receipts", class: "panel", "aria-labelledby": "receipts-title", "data-testid": "receipts" },
    element("h2", { id: "receipts-title" }, "Receipts, and the chains they make"),
    element("p", { class: "lead" }, "On a standard stream every record has a receipt of its own, which names the one before it: in the whole stream, and in its lane."),
    element("h3", {}, "The whole stream"),
    stream,
    element("h3", {}, counted(lanes.size, "lane")),
    element(
      "ol",
      { class: "lane-chains" },
      ...chains.map(({ lane, chain }) => element("li", {}, element("span", {}, digest(lane)), chain)),
    ),
    hasBreak && element("p", { class: "fine" }, "A dashed line is where a receipt does not name the one drawn before it: what it names is missing, was never asked for, or has another successor."),
    lanes.size > MOST_LANES && element("p", { class: "fine" }, `${grouped(lanes.size - MOST_LANES)} more lanes are not drawn.`),
    standings.served(receipts.rows.at(-1)!.item) === "unknown" && element("p", { class: "fine" }, "Faint ones came after something failed or ended, and were perhaps not judged."),
    receipts.rows.length > DRAWN && element("p", { class: "fine" }, `The first ${DRAWN} of ${grouped(receipts.total)} receipts of each chain are drawn.`),
  );
}

export function groupHistories({ groups }: Outline, standings: Standings): HTMLElement | null {
  if (groups.length === 0) return null;
  return element(
    "section",
    { id: "groups", class: "panel", "aria-labelledby": "groups-title", "data-testid": "groups" },
    element("h2", { id: "groups-title" }, counted(groups.length, "consumer group")),
    element("p", { class: "lead" }, "A group hands each record to one of its readers. Every change, from a lease to its end, is a signed receipt that names the one before."),
    ...groups.slice(0, 12).map((history) => groupHistory(history, standings)),
  );
}

function groupHistory({ lane, group, receipts }: GroupHistory, standings: Standings): HTMLElement {
  const follows = links(receipts.rows);
  const row = ({ item, action, sequence, atMs, digest: own }: GroupReceiptRow, index: number) =>
    element(
      "tr",
      { class: standings.served(item) },
      element("td", {}, actionWords(action)),
      element("td", {}, sequence === null ? "the group" : `record ${sequence}`),
      element("td", {}, time(atMs)),
      element("td", {}, digest(own)),
      element("td", {}, standings.served(item) === "bad" ? "does not hold" : index === 0 ? "first in the file" : FOLLOWS[follows[index]!]),
    );
  return element(
    "div",
    { class: "group", "data-testid": "group", "data-receipts": String(receipts.total) },
    element("h3", {}, "Group ", digest(group)),
    element("p", { class: "fine" }, "on lane ", digest(lane)),
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": `History of group ${group.slice(0, 8)}` },
      element(
        "table",
        {},
        element("thead", {}, element("tr", {}, ...["What", "Of", "Signed at", "Digest", "In the chain"].map((name) => element("th", { scope: "col" }, name)))),
        element("tbody", {}, ...receipts.rows.slice(0, TABLED).map(row)),
      ),
    ),
    receipts.total > TABLED && element("p", { class: "fine" }, `The first ${TABLED} of ${grouped(receipts.total)}.`),
  );
}
