/** The checkpoint chain as a picture: a row for each broker epoch, a bar for each batch, as long as it has records. */
import type { CheckpointLink, Outline, TransitionLink } from "remuda/inspect";
import { digest, element, graphic, grouped } from "../shared/dom.js";
import type { EpochHistory } from "./history.js";
import { byDigest, epochs } from "./history.js";
import { span, time } from "./time.js";
import { counted } from "./words.js";

const WIDTH = 1_000;
const HEIGHT = 64;
const BAR_TOP = 14;
const BAR_HEIGHT = 26;
/** Rows of the table. */
const TABLED = 200;

export function timeline(outline: Outline, bad: ReadonlySet<number>, choose: (item: number) => void): HTMLElement | null {
  const { timeline: links } = outline;
  const histories = epochs(links.rows, bad);
  if (histories.length === 0) return null;
  const end = histories.reduce((most, history) => (history.end > most ? history.end : most), 1n);
  const checkpoints = links.rows.filter((link): link is CheckpointLink => link.kind === "checkpoint");
  const first = links.rows.reduce((least, { atMs }) => (atMs < least ? atMs : least), links.rows[0]!.atMs);
  const last = links.rows.reduce((most, { atMs }) => (atMs > most ? atMs : most), links.rows[0]!.atMs);
  return element(
    "section",
    { id: "history", class: "panel", "aria-labelledby": "history-title", "data-testid": "timeline" },
    element("h2", { id: "history-title" }, "The history that was signed"),
    element(
      "p",
      { class: "lead" },
      `A checkpoint seals each batch of records and names the one before, so nothing can be taken out or put in later. Here: ${counted(checkpoints.length, "checkpoint")} in ${counted(histories.length, "broker epoch")}, over `,
      `${span(first, last)}.`,
    ),
    element("ol", { class: "epochs" }, ...histories.map((history) => epochRow(history, end, choose))),
    legend(histories),
    links.total > links.rows.length && element("p", { class: "fine" }, `Only the first ${grouped(links.rows.length)} of ${grouped(links.total)} signed links are drawn.`),
    table(checkpoints, outline, bad, choose),
  );
}

function epochRow(history: EpochHistory, end: bigint, choose: (item: number) => void): HTMLElement {
  const records = history.bars.reduce((sum, { first, last }) => sum + (last - first + 1n), 0n);
  const label = describe(history, records);
  return element(
    "li",
    { "data-testid": "epoch", "data-epoch": String(history.epoch), "data-bars": String(history.bars.length), "data-withdrawn": history.withdrawn ? String(history.withdrawn.last - history.withdrawn.first + 1n) : "0", "data-floors": String(history.floors.length), "data-rivals": String(history.rivals.length) },
    began(history),
    element(
      "div",
      { class: "epoch-head" },
      element("h3", {}, `Epoch ${history.epoch}`),
      element("span", { class: "fine" }, records > 0n ? `${counted(Number(records), "record")} in ${counted(history.bars.reduce((sum, bar) => sum + bar.checkpoints.length, 0), "checkpoint")}` : "no checkpoint in this file"),
    ),
    picture(history, end, label, choose),
  );
}

function began({ began: transition }: EpochHistory): HTMLElement | false {
  if (!transition) return element("p", { class: "restart unknown" }, "How this epoch began is not in the file.");
  return element("p", { class: `restart ${transition.transition}`, "data-testid": "transition", "data-kind": transition.transition }, restartWords(transition), " ", time(transition.atMs));
}

function restartWords({ fromEpoch, transition, lastDurable, lastProvisional }: TransitionLink): string {
  if (fromEpoch === null) return "The stream began.";
  if (transition === "clean") return "Clean restart: everything that was sent was durable.";
  const lost = lastProvisional === null ? 0n : lastProvisional - (lastDurable ?? -1n);
  if (lost <= 0n) return "Restart that voids what was not durable.";
  return `Restart that withdrew ${counted(Number(lost), "record")} which had been sent, but were never durable.`;
}

function describe({ epoch, bars, withdrawn, floors, rivals }: EpochHistory, records: bigint): string {
  const parts = [`Epoch ${epoch}: ${counted(Number(records), "record")} in ${counted(bars.length, "batch", "batches")}`];
  if (withdrawn) parts.push(`${counted(Number(withdrawn.last - withdrawn.first + 1n), "record")} withdrawn`);
  if (floors.length > 0) parts.push(`records before sequence ${highest(floors)} were no longer retained`);
  if (rivals.length > 0) parts.push(`${counted(rivals.length, "rival checkpoint")} for places that are taken`);
  if (bars.some(({ isBad }) => isBad)) parts.push("with something wrong");
  return parts.join(", ");
}

function highest(floors: EpochHistory["floors"]): bigint {
  return floors.reduce((most, { first }) => (first > most ? first : most), 0n);
}

function picture(history: EpochHistory, end: bigint, label: string, choose: (item: number) => void): Element {
  const x = (sequence: bigint) => (Number(sequence) / Number(end)) * WIDTH;
  const svg = graphic("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label, class: "bars" });
  svg.append(graphic("line", { class: "ground", x1: 0, x2: WIDTH, y1: BAR_TOP + BAR_HEIGHT + 6, y2: BAR_TOP + BAR_HEIGHT + 6 }));
  for (const { first, last, checkpoints, isBad } of history.bars) {
    const rect = graphic("rect", {
      class: isBad ? "batch bad" : "batch",
      x: x(first) + 1,
      y: BAR_TOP,
      width: Math.max(x(last + 1n) - x(first) - 2, 1.5),
      height: BAR_HEIGHT,
      rx: 2,
    });
    rect.append(graphic("title", {}, `Sequences ${first} to ${last}${isBad ? ": something is wrong here" : ""}`));
    rect.addEventListener("click", () => choose(checkpoints.at(-1)!.item));
    svg.append(rect);
  }
  for (const rival of history.rivals) {
    const width = Math.max(x(rival.last + 1n) - x(rival.first) - 2, 3);
    const rect = graphic("rect", { class: "rival", x: x(rival.first) + 1, y: BAR_TOP + BAR_HEIGHT + 10, width, height: 9, rx: 2 });
    rect.append(graphic("title", {}, `Another checkpoint for sequences ${rival.first} to ${rival.last}`));
    svg.append(rect);
  }
  if (history.withdrawn) {
    const { first, last } = history.withdrawn;
    const rect = graphic("rect", { class: "withdrawn", x: x(first) + 1, y: BAR_TOP, width: Math.max(x(last + 1n) - x(first) - 2, 3), height: BAR_HEIGHT, rx: 2 });
    rect.append(graphic("title", {}, `Withdrawn: sequences ${first} to ${last}`));
    svg.append(rect);
  }
  for (const floor of history.floors) {
    const at = x(floor.first);
    const mark = graphic("g", { class: "floor" });
    mark.append(
      graphic("title", {}, `Floor: nothing before sequence ${floor.first} was retained`),
      graphic("rect", { class: "gone", x: 0, y: BAR_TOP, width: at, height: BAR_HEIGHT }),
      graphic("line", { x1: at, x2: at, y1: 2, y2: BAR_TOP + BAR_HEIGHT + 6 }),
    );
    svg.append(mark);
  }
  return svg;
}

function legend(histories: readonly EpochHistory[]): HTMLElement {
  const row = (kind: string, text: string) => element("li", { "data-kind": kind }, text);
  const has = (of: (history: EpochHistory) => boolean) => histories.some(of);
  return element(
    "ul",
    { class: "legend" },
    row("batch", "a batch, as long as it has records"),
    has(({ withdrawn }) => withdrawn !== null) && row("withdrawn", "sent, then withdrawn"),
    has(({ floors }) => floors.length > 0) && row("floor", "floor: no longer retained before it"),
    has(({ rivals }) => rivals.length > 0) && row("rival", "another checkpoint for the same place"),
    has(({ bars }) => bars.some(({ isBad }) => isBad)) && row("bad", "the verifier refused it"),
  );
}

function table(checkpoints: readonly CheckpointLink[], { timeline: { rows } }: Outline, bad: ReadonlySet<number>, choose: (item: number) => void): HTMLElement {
  const known = byDigest(rows);
  const row = (link: CheckpointLink) => {
    const before = known.get(link.previous);
    const show = element("button", { type: "button", class: "plain" }, `${link.first}–${link.last}`);
    show.addEventListener("click", () => choose(link.item));
    return element(
      "tr",
      {},
      element("td", {}, String(link.epoch)),
      element("td", {}, show),
      element("td", {}, time(link.atMs)),
      element("td", {}, digest(link.digest)),
      element("td", {}, before ? (before.kind === "transition" ? "the restart" : "the one before") : "not in the file"),
      element("td", {}, bad.has(link.item) ? "refused" : link.subscription === null ? "from elsewhere" : "served"),
    );
  };
  const names = ["Epoch", "Sequences", "Signed at", "Digest", "Follows", "Came"];
  return element(
    "details",
    { class: "table", "data-testid": "checkpoints" },
    element("summary", {}, "All checkpoints as a table"),
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Checkpoints" },
      element(
        "table",
        {},
        element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)))),
        element("tbody", {}, ...checkpoints.slice(0, TABLED).map(row)),
      ),
    ),
    checkpoints.length > TABLED && element("p", { class: "fine" }, `The first ${TABLED} of ${grouped(checkpoints.length)}.`),
  );
}
