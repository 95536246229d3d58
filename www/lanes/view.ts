/** Drawing the model. Everything that tests read is in `data-` attributes. */
import type { Boundary, Failure, Place, Role, Status } from "remuda";
import { byTestId, digest, element, facts, graphic, grouped, say } from "../shared/dom.js";
import type { LaneModel, Link, Model, OwnRecord } from "./model.js";
import { BARS, textOf } from "./model.js";
import type { Info } from "./setup.js";

type Tone = "good" | "wait" | "bad" | "quiet";

function chip(id: string, state: string, tone: Tone, text: string): void {
  const where = byTestId(id);
  where.dataset["state"] = state;
  where.dataset["tone"] = tone;
  say(where.firstElementChild!, text);
}

export function drawConnection(status: Status | null, isOnline: boolean, nowMs: number): void {
  if (!status) return chip("connection", isOnline ? "connecting" : "offline", "wait", isOnline ? "connecting" : "offline");
  const { connection, retryAtMs, transport } = status;
  if (connection === "open") {
    return chip("connection", "open", "good", transport === "web-socket" ? "live, WebSocket" : "live, long-poll");
  }
  if (!isOnline || connection === "waiting") {
    const seconds = retryAtMs === null ? 0 : Math.ceil((retryAtMs - nowMs) / 1000);
    return chip("connection", "offline", "wait", seconds > 0 ? `offline, again in ${seconds} s` : "offline");
  }
  if (connection === "closed") return chip("connection", "closed", "quiet", "closed");
  chip("connection", connection, "wait", "connecting");
}

const STORAGE: Record<Status["storage"], [Tone, string]> = {
  ready: ["good", "stored durably"],
  memory: ["wait", "memory only"],
  recovering: ["wait", "storage recovering"],
  blocked: ["bad", "storage blocked"],
  quota: ["bad", "storage full"],
  evicted: ["bad", "storage evicted"],
};

export function drawStorage(storage: Status["storage"]): void {
  chip("storage", storage, ...STORAGE[storage]);
}

export function drawRole(role: Role): void {
  chip("role", role, role === "owner" ? "good" : "quiet", role === "owner" ? "this tab connects" : "another tab connects");
}

export function drawNotice(text: string | null): void {
  const where = byTestId("notice");
  where.hidden = text === null;
  say(where, text ?? "");
}

export function drawFigures(model: Model, waiting: number, isCounted: boolean): void {
  say(byTestId("verified-records"), `${isCounted ? "" : "≥ "}${grouped(model.records)}`);
  const items = byTestId("stored-items");
  items.dataset["item"] = String(model.lastItem);
  say(items, grouped(model.lastItem));
  say(byTestId("waiting"), grouped(waiting));
}

// --- the chain

export function drawChain(links: readonly Link[]): void {
  const where = byTestId<SVGElement>("chain");
  const step = 48;
  const left = 960 - 40 - step * (links.length - 1);
  const drawn = links.map((link, index) => {
    const x = left + step * index;
    const next = links[index + 1];
    const line = next && graphic("line", { x1: x, y1: 24, x2: x + step, y2: 24, "data-kind": next.kind });
    const text = graphic("text", { x, y: 54 }, link.digest.slice(0, 6));
    if (link.kind !== "checkpoint") {
      const mark = graphic("path", { d: `M${x} 15l9 9-9 9-9-9Z`, "data-kind": link.kind });
      return { line, mark: graphic("g", {}, graphic("title", {}, `Epoch ${link.epoch} begins, ${link.kind}`), mark, text) };
    }
    const radius = Math.min(4 + Math.sqrt(link.records) * 1.5, 14);
    const title = graphic("title", {}, `Checkpoint ${link.digest}: ${link.records} records to sequence ${link.last} of epoch ${link.epoch}`);
    return { line, mark: graphic("g", {}, title, graphic("circle", { cx: x, cy: 24, r: radius }), text) };
  });
  where.replaceChildren(...drawn.flatMap(({ line }) => (line ? [line] : [])), ...drawn.map(({ mark }) => mark));
  const last = links.at(-1);
  where.setAttribute("aria-label", last ? `The last ${links.length} links, up to ${last.digest.slice(0, 8)}` : "No checkpoint yet");
}

// --- lanes

interface LaneParts {
  root: HTMLElement;
  count: HTMLElement;
  bars: SVGElement;
  records: HTMLElement;
  drawn: string;
}

const parts = new Map<string, LaneParts>();

export function drawLanes(model: Model, nowMs: number): void {
  const where = byTestId("lanes");
  for (const lane of model.lanes.values()) {
    let part = parts.get(lane.id);
    if (!part) {
      part = lanePart(lane);
      parts.set(lane.id, part);
      where.append(part.root);
    }
    drawLane(part, lane, model.bars(lane, nowMs));
  }
}

export function forgetLanes(): void {
  parts.clear();
  byTestId("lanes").replaceChildren();
}

function lanePart(lane: LaneModel): LaneParts {
  const count = element("span", { class: "count" });
  const bars = graphic("svg", { viewBox: `0 0 ${BARS * 4} 28`, preserveAspectRatio: "none", role: "img" });
  const records = element("ol", { class: "records", "aria-label": "Newest records" });
  const root = element(
    "article",
    { class: "lane", "data-testid": "lane", "data-lane": lane.id, "data-name": lane.name },
    element("header", {}, element("h3", { title: lane.id }, lane.name), count),
    bars,
    records,
  );
  return { root, count, bars, records, drawn: "-" };
}

function drawLane(part: LaneParts, lane: LaneModel, bars: number[]): void {
  const highest = Math.max(4, ...bars);
  part.bars.setAttribute("aria-label", `${bars.reduce((sum, bar) => sum + bar, 0)} records in the last minute`);
  part.bars.replaceChildren(
    ...bars.map((bar, index) => {
      const height = bar === 0 ? 0 : Math.max(1.5, (bar / highest) * 26);
      return graphic("rect", { x: index * 4 + 0.5, y: 28 - height, width: 3, height, rx: 0.6 });
    }),
  );
  const drawn = `${lane.newest[0]?.item ?? ""} ${lane.count}`;
  if (drawn === part.drawn) return;
  part.drawn = drawn;
  part.root.dataset["count"] = String(lane.count);
  say(part.count, grouped(lane.count));
  if (lane.newest.length === 0) {
    part.records.replaceChildren(element("li", { class: "none" }, "Nothing yet"));
    return;
  }
  // Rows that stay are not touched: one that moved would be announced and animated again.
  const shown = new Set(lane.newest.map(({ item }) => String(item)));
  for (const row of [...part.records.children]) if (!shown.delete(row.getAttribute("data-item") ?? "")) row.remove();
  part.records.prepend(...lane.newest.filter(({ item }) => shown.has(String(item))).map((item) => recordRow(lane, item)));
  lane.fresh.clear();
}

function recordRow(lane: LaneModel, item: LaneModel["newest"][number]): HTMLElement {
  const { text, number } = textOf(item.payload ?? new Uint8Array());
  const meaning = item.assurance === "lane-set" ? "verified: this lane’s complete set" : "verified: the whole batch";
  return element(
    "li",
    {
      class: "record",
      "data-testid": "record",
      "data-item": String(item.item),
      "data-epoch": String(item.brokerEpoch),
      "data-sequence": String(item.sequence),
      "data-assurance": item.assurance,
      "data-message": item.messageId,
      "data-fresh": lane.fresh.has(item.item) ? "" : undefined,
    },
    element("span", { class: "sequence", title: `epoch ${item.brokerEpoch}, sequence ${item.sequence}` }, String(item.sequence)),
    element("span", { class: "text", title: text }, text, number !== null && element("span", { class: "number" }, ` #${number}`)),
    element("span", { class: "badge", "data-assurance": item.assurance, title: meaning }, element("span", { class: "visually-hidden" }, meaning)),
  );
}

// --- evidence, position, epochs

export function drawEvidence(model: Model, info: Info | null, boundary: Boundary | null): void {
  const where = document.getElementById("evidence")!;
  const { last } = model;
  where.dataset["checkpoint"] = last?.checkpoint ?? "";
  if (!last) {
    where.replaceChildren(
      element("p", { class: "lead" }, boundary ? "Stored rows were verified when they came. The next batch is shown here with its evidence." : "The first batch is shown here with its evidence."),
    );
    return;
  }
  const range = last.firstSequence === last.lastSequence ? `${last.lastSequence}` : `${last.firstSequence}–${last.lastSequence}`;
  const isWhole = last.assurance === "full-batch";
  where.replaceChildren(
    facts([
      ["Checkpoint", digest(last.checkpoint)],
      ["Signature", [digest(last.signingKey ?? info?.providerKey), element("small", {}, "the stream’s registered Ed25519 key, strict check")]],
      ["Sequences", [`${range} of epoch ${last.brokerEpoch}`, element("small", {}, `${grouped(last.records)} of them ours, committed ${time(last.committedAtMs)}`)]],
      ["Lane map root", [digest(last.laneMapRoot), element("small", {}, isWhole ? "recomputed from every record of the batch" : "every lane’s proof folds to it, and it into the signed root")]],
      ["Served at", [`block ${grouped(last.servedAtHeight)}`, element("small", {}, "the finalized view that the key was read at")]],
      ["So it holds", isWhole ? "the batch is complete: every lane, every sequence" : "these lanes have exactly these records: none withheld, none added"],
    ]),
  );
}

export function drawPosition(boundary: Boundary | null): void {
  const where = document.getElementById("position")!;
  const panel = byTestId("position");
  for (const [name, value] of Object.entries(positionData(boundary))) panel.dataset[name] = value;
  if (!boundary) {
    where.replaceChildren(element("p", { class: "lead" }, "Nothing is stored yet."));
    return;
  }
  where.replaceChildren(
    facts([
      ["Epoch", String(boundary.brokerEpoch ?? "–")],
      ["Sequence", boundary.sequence === null ? "none yet" : grouped(boundary.sequence)],
      ["Checkpoint", digest(boundary.checkpoint)],
      ["Items", grouped(boundary.lastItem)],
      ["Revision", [grouped(boundary.revision), element("small", {}, "moves in one transaction with its rows, or not at all")]],
    ]),
  );
}

export function positionData(boundary: Boundary | null): Record<string, string> {
  return {
    epoch: String(boundary?.brokerEpoch ?? ""),
    sequence: String(boundary?.sequence ?? ""),
    checkpoint: boundary?.checkpoint ?? "",
    item: String(boundary?.lastItem ?? ""),
    revision: String(boundary?.revision ?? ""),
  };
}

export function drawEpochs(model: Model, boundary: Boundary | null): void {
  const where = byTestId("epochs");
  const rows = model.transitions.map((transition) => {
    const { fromEpoch, toEpoch, lastDurableSequence, lastProvisionalSequence } = transition;
    const isVoid = transition.transition === "void";
    const until = lastDurableSequence === null ? "nothing" : `sequence ${grouped(lastDurableSequence)}`;
    const waited = model.discarded.get(toEpoch);
    const upper = lastProvisionalSequence === null ? "" : ` (to ${grouped(lastProvisionalSequence)})`;
    return element(
      "li",
      {
        "data-testid": "epoch",
        "data-transition": transition.transition,
        "data-from": String(fromEpoch ?? ""),
        "data-to": String(toEpoch),
        "data-item": String(transition.item),
        "data-durable": String(lastDurableSequence ?? ""),
        "data-discarded": waited === undefined ? undefined : String(waited),
      },
      `Epoch ${fromEpoch ?? "–"} → ${toEpoch}, `,
      element("span", { class: "kind" }, isVoid ? "void" : "clean"),
      element("small", {}, isVoid ? `durable up to ${until}; what came after${upper} is withdrawn` : `complete up to ${until}`),
      waited !== undefined && waited > 0 && element("small", {}, `${grouped(waited)} waiting here were discarded`),
    );
  });
  const holes = model.holes.map((hole) =>
    element(
      "li",
      { "data-testid": "gap", "data-transition": "gap", "data-item": String(hole.item), "data-assurance": hole.assurance },
      "A hole in the history: ",
      element("span", { class: "kind" }, `from ${hole.after ? placed(hole.after) : "the beginning"} to ${placed(hole.before)}`),
      element(
        "small",
        {},
        hole.assurance === "none" ? "the provider went on further along, and showed no reason" : "the provider signed that what lay there is gone",
      ),
    ),
  );
  const epoch = boundary?.brokerEpoch ?? null;
  const now = model.transitions.length === 0 && epoch !== null ? [element("li", { "data-transition": "none" }, `Epoch ${epoch}, without a change so far`)] : [];
  const none = rows.length + now.length + holes.length === 0 ? [element("li", { "data-transition": "none" }, "None yet")] : [];
  where.replaceChildren(...holes, ...rows, ...now, ...none);
}

function placed({ brokerEpoch, sequence }: Place): string {
  return `epoch ${brokerEpoch ?? "–"}, sequence ${grouped(sequence)}`;
}

// --- own records

const OWN_TEXT: Record<OwnRecord["state"], string> = {
  storing: "storing",
  queued: "queued",
  sent: "sent",
  provisional: "provisional",
  durable: "durable, verified",
  failed: "failed",
};

export function drawOwn(model: Model, again: (own: OwnRecord) => void): void {
  const where = byTestId("own");
  const rows = model.own.map((own) => {
    const { state } = own;
    const badge = state === "durable" ? "lane-set" : state === "failed" ? "refused" : "waiting";
    const at = own.record ? ` at ${own.record.brokerEpoch}/${own.record.sequence}` : "";
    const key = `${own.messageId} ${state} ${own.why}`;
    const there = [...where.children].find((row) => row.getAttribute("data-key") === key);
    if (there) return there;
    const row = element(
      "li",
      {
        "data-testid": "own-record",
        "data-state": state,
        "data-message": own.messageId,
        "data-epoch": String(own.record?.brokerEpoch ?? ""),
        "data-sequence": String(own.record?.sequence ?? ""),
        "data-key": key,
      },
      element("span", { class: "text" }, element("span", { class: "lane-name" }, `${model.lanes.get(own.lane)?.name ?? ""} `), own.text),
      element("span", { class: "badge", "data-assurance": badge }, `${OWN_TEXT[state]}${own.why ? `: ${own.why}` : at}`),
    );
    if (state === "failed") {
      const button = element("button", { type: "button", class: "plain" }, "Append again");
      button.addEventListener("click", () => again(own));
      row.append(button);
    }
    return row;
  });
  if (rows.length !== where.children.length || rows.some((row, index) => row !== where.children[index])) where.replaceChildren(...rows);
}

// --- a refusal

const REMEDIES: Record<string, string> = {
  halt: "Stop here: nothing of it is applied, and repeating cannot help",
  retry: "Try again later",
  "re-enter-at-boundary": "Start again from the last verified checkpoint, from a snapshot, or behind the gap",
  "split-scope": "Ask for fewer lanes in one subscription",
  "fix-request": "Our request, credential or configuration is wrong",
  surface: "For a person to decide",
};

const PLANES: Record<string, string> = {
  verify: "The provider’s claim is false",
  decode: "The provider sent bytes that are no object",
  protocol: "The provider broke the conversation",
  evidence: "The provider contradicted itself",
};

export interface Refusal {
  failure: Failure;
  /** The position when it was refused. */
  held: Boundary | null;
  batchesSince: number;
  times: number;
}

interface Actions {
  again: (() => void) | null;
  /** Where a signed floor says what is gone. */
  acceptGap: (() => void) | null;
  dismiss: () => void;
}

export function drawRefusal(refusal: Refusal | null, boundary: Boundary | null, actions: Actions): void {
  const where = byTestId("failure");
  if (!refusal) {
    where.hidden = true;
    where.replaceChildren();
    return;
  }
  const { failure, held, batchesSince, times } = refusal;
  const hasMoved = held?.revision !== boundary?.revision;
  const name = (position: Boundary | null) => (position ? `epoch ${position.brokerEpoch ?? "–"}, sequence ${position.sequence ?? "–"}, item ${position.lastItem}` : "nothing stored");
  const data: Record<string, string> = {
    code: failure.code,
    rule: failure.rule,
    remedy: failure.remedy,
    moved: String(hasMoved),
    heldItem: String(held?.lastItem ?? ""),
    heldRevision: String(held?.revision ?? ""),
    times: String(times),
  };
  const key = JSON.stringify([data, batchesSince, actions.again !== null, boundary?.revision.toString()]);
  if (where.dataset["key"] === key && !where.hidden) return;
  where.dataset["key"] = key;
  Object.assign(where.dataset, data);
  where.hidden = false;
  const plane = PLANES[failure.code.split("/")[0] ?? ""] ?? "Refused";
  const row = (term: string, ...value: (Node | string)[]) => element("div", {}, element("dt", {}, term), element("dd", {}, ...value));
  const dismiss = element("button", { type: "button", class: "plain" }, "Dismiss");
  dismiss.addEventListener("click", actions.dismiss);
  const again = actions.again && element("button", { type: "button", class: "plain", "data-testid": "again" }, "Try again from the position");
  if (again) again.addEventListener("click", actions.again!);
  const accept = actions.acceptGap && element("button", { type: "button", class: "plain", "data-testid": "accept-gap" }, "Go on behind the gap");
  if (accept) accept.addEventListener("click", actions.acceptGap!);
  where.replaceChildren(
    element("h2", { id: "failure-title" }, `${plane}: `, element("code", {}, failure.code)),
    element("p", { class: "meaning" }, sentence(failure.meaning)),
    element(
      "dl",
      {},
      row("Rule", failure.rule || "–"),
      row("What to do", REMEDIES[failure.remedy] ?? failure.remedy),
      row(
        "Durable position",
        hasMoved ? `was ${name(held)}; ${grouped(batchesSince)} batches verified since` : `did not move: ${name(held)}`,
      ),
    ),
    element("p", { class: "actions" }, accept, again, dismiss),
  );
}

function sentence(text: string): string {
  const trimmed = text.trim();
  return `${trimmed.charAt(0).toUpperCase()}${trimmed.slice(1)}${/[.!?]$/.test(trimmed) ? "" : "."}`;
}

function time(ms: bigint): string {
  return new Date(Number(ms)).toLocaleTimeString("en-GB");
}
