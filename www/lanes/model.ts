/** What the page knows, apart from how it looks. */
import type { AppendEvent, AppendState, BatchEvent, GapItem, Item, RecordItem, TransitionItem } from "remuda";

/** Records kept per lane for showing; what is older is in the database. */
export const SHOWN = 6;
/** Bars of a lane, and how much time each stands for. */
export const BARS = 30;
export const BAR_MS = 2_000;
/** Links of the chain that are kept. */
export const LINKS = 20;
/** Own records that are kept. */
const OWN = 5;

export interface LaneModel {
  id: string;
  name: string;
  /** Stored records of this lane, as far as they are counted. */
  count: number;
  /** Newest first. */
  newest: RecordItem[];
  /** Items that came while the page was open, to be marked as such once. */
  fresh: Set<bigint>;
  /** Records by time slot, oldest slots dropped. */
  slots: Map<number, number>;
}

export type Link =
  | { kind: "checkpoint"; digest: string; epoch: bigint; last: bigint; records: number }
  | { kind: "clean" | "void"; digest: string; epoch: bigint };

/** A record of the outbox, or one that did not get into it. */
export interface OwnRecord {
  messageId: string;
  lane: string;
  text: string;
  /** Its number in the outbox; null before it is there. */
  entry: bigint | null;
  state: "storing" | AppendState;
  record: AppendEvent["record"];
  why: string;
}

export class Model {
  readonly lanes = new Map<string, LaneModel>();
  readonly links: Link[] = [];
  readonly transitions: TransitionItem[] = [];
  /** Holes in the history, the latest first. */
  readonly holes: GapItem[] = [];
  /** Records found waiting when an epoch was left, by the epoch that began. */
  readonly discarded = new Map<bigint, number>();
  own: OwnRecord[] = [];
  last: BatchEvent | null = null;
  lastItem = 0n;
  records = 0;

  constructor(lanes: readonly { id: string; name: string }[]) {
    for (const { id, name } of lanes) this.#lane(id, name);
  }

  /** Takes the next item. `isLive` when it came while the page was open. */
  add(item: Item, isLive: boolean): void {
    this.lastItem = item.item;
    if (item.kind === "transition") {
      this.transitions.unshift(item);
      this.transitions.length = Math.min(this.transitions.length, 8);
      this.#link({ kind: item.transition, digest: item.digest, epoch: item.toEpoch });
      return;
    }
    if (item.kind === "gap") {
      this.holes.unshift(item);
      return;
    }
    // This page is about a fast stream, and publishes no snapshots.
    if (item.kind === "standard-record" || item.kind === "snapshot") return;
    this.records += 1;
    const lane = this.#lane(item.lane);
    lane.count += 1;
    lane.newest.unshift(item);
    lane.newest.length = Math.min(lane.newest.length, SHOWN);
    if (isLive) lane.fresh.add(item.item);
    const slot = Math.floor(Number(item.createdAtMs) / BAR_MS);
    lane.slots.set(slot, (lane.slots.get(slot) ?? 0) + 1);
    if (lane.slots.size > BARS * 2) for (const old of lane.slots.keys()) if (old < slot - BARS) lane.slots.delete(old);

    const last = this.links.at(-1);
    if (last?.kind === "checkpoint" && last.digest === item.checkpoint) {
      last.last = item.sequence;
      last.records += 1;
    } else {
      this.#link({ kind: "checkpoint", digest: item.checkpoint, epoch: item.brokerEpoch, last: item.sequence, records: 1 });
    }
  }

  /** Counts an item that is older than what is shown. */
  count(item: Item): void {
    if (item.kind === "record") {
      this.records += 1;
      this.#lane(item.lane).count += 1;
    } else if (item.kind === "gap") {
      this.holes.push(item);
    } else if (item.kind === "transition" && this.transitions.length < 8) {
      this.transitions.push(item);
      this.transitions.sort((a, b) => Number(b.item - a.item));
    }
  }

  addOwn(own: OwnRecord): void {
    this.own = [own, ...this.own].slice(0, OWN);
  }

  /** An entry of the outbox stands elsewhere. */
  advance({ messageId, entry, state, record, failure }: Omit<AppendEvent, "type">): void {
    for (const own of this.own) {
      if (own.messageId !== messageId) continue;
      const isBack = state === "queued" && own.state === "provisional";
      Object.assign(own, { entry, state, record, why: failure?.code ?? (isBack ? "void, to be sent again" : own.why) });
      if (state === "durable") own.why = "";
    }
  }

  /** Bars of a lane, oldest first, the newest being of now. */
  bars(lane: LaneModel, nowMs: number): number[] {
    const now = Math.floor(nowMs / BAR_MS);
    return Array.from({ length: BARS }, (_, index) => lane.slots.get(now - BARS + 1 + index) ?? 0);
  }

  #lane(id: string, name = id.slice(0, 8)): LaneModel {
    let lane = this.lanes.get(id);
    if (!lane) {
      lane = { id, name, count: 0, newest: [], fresh: new Set(), slots: new Map() };
      this.lanes.set(id, lane);
    }
    return lane;
  }

  #link(link: Link): void {
    this.links.push(link);
    if (this.links.length > LINKS) this.links.shift();
  }
}

/** The text of a record, and the number that the demo's writer gave it. */
export function textOf(payload: Uint8Array): { text: string; number: number | null } {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(payload);
  } catch {
    return { text: `${payload.length} bytes`, number: null };
  }
  try {
    const { text: said, number } = JSON.parse(text) as { text?: unknown; number?: unknown };
    if (typeof said === "string") return { text: said, number: typeof number === "number" ? number : null };
  } catch {
    // Not the demo's JSON: it is shown as it is.
  }
  return { text, number: null };
}
