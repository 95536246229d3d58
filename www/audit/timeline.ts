/** The checkpoint chain as a picture: a row for each broker epoch, a bar for each batch, as long as it has records. */
import type { CheckpointLink, FloorLink, Outline, TransitionLink } from "remuda/inspect";
import { digest, element, graphic, grouped } from "../shared/dom.js";
import type { EpochHistory, Standing, Standings } from "./history.js";
import { byDigest, epochs } from "./history.js";
import { span, time } from "./time.js";
import { counted } from "./words.js";

const HEIGHT = 64;
const BAR_TOP = 14;
const BAR_HEIGHT = 26;
/** Rows of the table. */
const TABLED = 200;

const STANDINGS: Record<Standing, string> = { judged: "judged, and holds", bad: "does not hold", unknown: "perhaps not judged" };

export function timeline(outline: Outline, standings: Standings, choose: (item: number) => void): HTMLElement | null {
  const { timeline: links } = outline;
  const histories = epochs(links.rows, standings);
  if (links.rows.length === 0) return null;
  const end = histories.reduce((most, history) => (history.end > most ? history.end : most), 1n);
  const checkpoints = links.rows.filter((link): link is CheckpointLink => link.kind === "checkpoint");
  const first = links.rows.reduce((least, { atMs }) => (atMs < least ? atMs : least), links.rows[0]!.atMs);
  const last = links.rows.reduce((most, { atMs }) => (atMs > most ? atMs : most), links.rows[0]!.atMs);
  return element(
    "section",
    { id: "history", class: "panel", "aria-labelledby": "history-title", "data-testid": "timeline" },
    element("h2", { id: "history-title" }, "The history as it was served"),
    histories.length > 0 && element(
      "p",
      { class: "lead" },
      "A checkpoint seals each batch of records and names the one before, so that whatever is taken out or put in later shows. Here: ",
      `${counted(checkpoints.length, "checkpoint")} in ${counted(histories.length, "broker epoch")}, over ${span(first, last)}.`,
    ),
    element("ol", { class: "epochs" }, ...histories.map((history) => epochRow(history, end, standings, choose))),
    histories.length > 0 && legend(histories),
    floorList(links.rows),
    links.total > links.rows.length && element("p", { class: "fine" }, `Only the first ${grouped(links.rows.length)} of ${grouped(links.total)} signed links are drawn.`),
    checkpoints.length > 0 && table(checkpoints, outline, standings, choose),
  );
}

/** Floors of streams, lanes and groups, which are of no epoch. */
function floorList(links: Outline["timeline"]["rows"]): HTMLElement | false {
  const floors = links.filter((link): link is FloorLink => link.kind === "floor" && link.of !== "epoch");
  if (floors.length === 0) return false;
  const of = ({ of: what, lane, group, first }: FloorLink): (HTMLElement | string)[] => {
    if (what === "group") return ["Group ", digest(group), `: retained up to place ${first} of its queue. `];
    const whose = what === "lane" ? ["Lane ", digest(lane)] : ["The stream"];
    return [...whose, `: nothing before sequence ${first} was retained. `];
  };
  return element(
    "div",
    { "data-testid": "floors" },
    element("h3", {}, counted(floors.length, "retention floor")),
    element("ul", { class: "floors" }, ...floors.slice(0, TABLED).map((floor) => element("li", {}, ...of(floor), time(floor.atMs)))),
  );
}

function epochRow(history: EpochHistory, end: bigint, standings: Standings, choose: (item: number) => void): HTMLElement {
  const records = history.bars.reduce((sum, { first, last }) => sum + (last - first + 1n), 0n);
  const checkpoints = history.bars.reduce((sum, bar) => sum + bar.checkpoints.length, 0);
  const label = describe(history, records);
  return element(
    "li",
    {
      "data-testid": "epoch",
      "data-epoch": String(history.epoch),
      "data-bars": String(history.bars.length),
      "data-withdrawn": String(lost(history)),
      "data-floors": String(history.floors.length),
      "data-rivals": String(history.rivals.length),
    },
    began(history, standings),
    element(
      "div",
      { class: "epoch-head" },
      element("h3", {}, `Epoch ${history.epoch}`),
      element("span", { class: "fine" }, records > 0n ? `${counted(Number(records), "record")} in ${counted(checkpoints, "checkpoint")}` : "no checkpoint in this file"),
    ),
    picture(history, end, label, choose),
  );
}

/** How many records were withdrawn. */
function lost({ withdrawn }: EpochHistory): bigint {
  return withdrawn ? withdrawn.last - withdrawn.first + 1n : 0n;
}

function began({ began: transition }: EpochHistory, standings: Standings): HTMLElement | false {
  if (!transition) return element("p", { class: "restart unknown" }, "How this epoch began is not in the file.");
  const isBad = standings.alone(transition.item) === "bad";
  return element(
    "p",
    { class: `restart ${isBad ? "bad" : transition.transition}`, "data-testid": "transition", "data-kind": transition.transition },
    restartWords(transition),
    isBad && " This does not hold. ",
    " ",
    time(transition.atMs),
  );
}

function restartWords({ fromEpoch, transition, lastDurable, lastProvisional }: TransitionLink): string {
  if (fromEpoch === null) return "The stream began.";
  if (transition === "clean") return "Clean restart: everything that was sent is durable.";
  const withdrawn = lastProvisional === null ? 0n : lastProvisional - (lastDurable ?? -1n);
  if (withdrawn <= 0n) return "Restart: what was not durable is void.";
  return `Restart: ${counted(Number(withdrawn), "record")} that had been sent ${withdrawn === 1n ? "is" : "are"} withdrawn, as never durable.`;
}

function describe(history: EpochHistory, records: bigint): string {
  const { epoch, bars, withdrawn, floors, rivals } = history;
  const parts = [`Epoch ${epoch}: ${counted(Number(records), "record")} in ${counted(bars.length, "batch", "batches")}`];
  if (withdrawn) parts.push(`${counted(Number(lost(history)), "record")} withdrawn`);
  if (floors.length > 0) parts.push(`records before sequence ${highest(floors)} were no longer retained`);
  if (rivals.length > 0) parts.push(`${counted(rivals.length, "rival checkpoint")} for places that are taken`);
  if (bars.some(({ standing }) => standing === "bad")) parts.push("with something wrong");
  return parts.join(", ");
}

function highest(floors: EpochHistory["floors"]): bigint {
  return floors.reduce((most, { first }) => (first > most ? first : most), 0n);
}

/** Across in per cent, so that it fits any width; down in pixels. */
function picture(history: EpochHistory, end: bigint, label: string, choose: (item: number) => void): Element {
  const x = (sequence: bigint) => (Number(sequence) / Number(end)) * 100;
  const svg = graphic("svg", { height: HEIGHT, role: "img", "aria-label": label, class: "bars" });
  const bar = (className: string, first: bigint, last: bigint, y: number, height: number, title: string) => {
    const made = graphic("rect", { class: className, x: `${x(first)}%`, y, width: `${Math.max(x(last + 1n) - x(first), 0.2)}%`, height, rx: 3 });
    made.append(graphic("title", {}, title));
    svg.append(made);
    return made;
  };
  const ground = BAR_TOP + BAR_HEIGHT + 6;
  svg.append(graphic("line", { class: "ground", x1: 0, x2: "100%", y1: ground, y2: ground }));
  for (const { first, last, checkpoints, standing } of history.bars) {
    const made = bar(`batch ${standing}`, first, last, BAR_TOP, BAR_HEIGHT, `Sequences ${first} to ${last}: ${STANDINGS[standing]}`);
    made.addEventListener("click", () => choose(checkpoints.at(-1)!.item));
  }
  for (const { first, last } of history.rivals) bar("rival", first, last, ground + 4, 9, `Another checkpoint for sequences ${first} to ${last}`);
  if (history.withdrawn) {
    const { first, last } = history.withdrawn;
    bar("withdrawn", first, last, BAR_TOP, BAR_HEIGHT, `Withdrawn: sequences ${first} to ${last}`);
  }
  for (const floor of history.floors) {
    const at = `${x(floor.first)}%`;
    const mark = graphic("g", { class: "floor" });
    mark.append(
      graphic("title", {}, `Floor: nothing before sequence ${floor.first} was retained`),
      graphic("rect", { class: "gone", x: 0, y: BAR_TOP, width: at, height: BAR_HEIGHT }),
      graphic("line", { x1: at, x2: at, y1: 2, y2: ground }),
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
    has(({ bars }) => bars.some(({ standing }) => standing === "unknown")) && row("unknown", "after something failed or ended: perhaps not judged"),
    has(({ withdrawn }) => withdrawn !== null) && row("withdrawn", "sent, then withdrawn"),
    has(({ floors }) => floors.length > 0) && row("floor", "floor: no longer retained before it"),
    has(({ rivals }) => rivals.length > 0) && row("rival", "another checkpoint for the same place"),
    has(({ bars }) => bars.some(({ standing }) => standing === "bad")) && row("bad", "does not hold"),
  );
}

function table(checkpoints: readonly CheckpointLink[], { timeline: { rows } }: Outline, standings: Standings, choose: (item: number) => void): HTMLElement {
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
      element("td", {}, STANDINGS[standings.ofCheckpoint(link)]),
      element("td", {}, link.subscription === null ? "from elsewhere" : "served"),
    );
  };
  const names = ["Epoch", "Sequences", "Signed at", "Digest", "Follows", "Verdict", "Came"];
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
