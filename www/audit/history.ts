/** The checkpoint chain by broker epoch: pure, so that tests can say what a picture is of. */
import type { CheckpointLink, FloorLink, TimelineLink, TransitionLink } from "remuda/inspect";
import type { AuditReport } from "remuda/verify";

/** How many bars one epoch is drawn with: neighbours are folded into one beyond that. */
export const MOST_BARS = 160;

export interface Bar {
  first: bigint;
  last: bigint;
  /** The checkpoints that it stands for: almost always one. */
  checkpoints: CheckpointLink[];
  standing: Standing;
}

/**
 * What a report says of an item: that it failed; that the verifier came so far that it judged it; or neither, since something before it
 * failed or ended a subscription, after which frames of that one are judged no further.
 */
export type Standing = "bad" | "judged" | "unknown";

export class Standings {
  readonly #bad: ReadonlySet<number>;
  readonly #judgedUpTo: number;

  constructor(report: Pick<AuditReport, "findings" | "evidence">, firstEnd: number | null) {
    const failed = report.findings.flatMap(({ item }) => item ?? []);
    this.#bad = new Set([...failed, ...report.evidence.flatMap(({ items }) => items)]);
    this.#judgedUpTo = Math.min(...failed, firstEnd ?? Infinity);
  }

  /** Of an item that is judged for itself, whatever came before: what is held, a restart, a snapshot. */
  alone(item: number): Standing {
    return this.#bad.has(item) ? "bad" : "judged";
  }

  /** Of an item that is judged for its subscription. */
  served(item: number): Standing {
    return this.#bad.has(item) ? "bad" : item <= this.#judgedUpTo ? "judged" : "unknown";
  }

  ofCheckpoint({ item, subscription }: CheckpointLink): Standing {
    return subscription === null ? this.alone(item) : this.served(item);
  }
}

function worst(standings: readonly Standing[]): Standing {
  return standings.find((standing) => standing === "bad") ?? standings.find((standing) => standing === "unknown") ?? "judged";
}

export interface EpochHistory {
  epoch: bigint;
  /** The signed restart that began it; null where the file has none. */
  began: TransitionLink | null;
  bars: Bar[];
  /** Other checkpoints of the same places: a second history. */
  rivals: CheckpointLink[];
  floors: FloorLink[];
  /** What the next restart withdrew: its first and last sequence. */
  withdrawn: { first: bigint; last: bigint } | null;
  /** One after the highest sequence that is named. */
  end: bigint;
}

export function epochs(links: readonly TimelineLink[], standings: Standings): EpochHistory[] {
  const histories = new Map<bigint, EpochHistory>();
  const of = (epoch: bigint): EpochHistory => {
    let history = histories.get(epoch);
    if (!history) {
      history = { epoch, began: null, bars: [], rivals: [], floors: [], withdrawn: null, end: 0n };
      histories.set(epoch, history);
    }
    return history;
  };
  const reach = (history: EpochHistory, sequence: bigint) => {
    if (sequence + 1n > history.end) history.end = sequence + 1n;
  };
  for (const link of links) {
    if (link.kind === "transition") {
      of(link.epoch).began ??= link;
      if (link.fromEpoch !== null) withdraw(of(link.fromEpoch), link, reach);
    } else if (link.kind === "checkpoint") {
      const history = of(link.epoch);
      reach(history, link.last);
      // Bars are ascending and do not overlap: whoever comes second to a place is its rival.
      const at = placeOf(history.bars, link.first);
      const isRival = [history.bars[at - 1], history.bars[at]].some((bar) => bar !== undefined && link.first <= bar.last && bar.first <= link.last);
      if (isRival) history.rivals.push(link);
      else history.bars.splice(at, 0, { first: link.first, last: link.last, checkpoints: [link], standing: standings.ofCheckpoint(link) });
    } else if (link.of === "epoch" && link.epoch !== null) {
      const history = of(link.epoch);
      history.floors.push(link);
      if (link.first > 0n) reach(history, link.first - 1n);
    }
  }
  const sorted = [...histories.values()].sort((a, b) => (a.epoch < b.epoch ? -1 : 1));
  for (const history of sorted) history.bars = folded(history.bars);
  return sorted;
}

/** Before which bar one that begins at `first` belongs. */
function placeOf(bars: readonly Bar[], first: bigint): number {
  let [from, to] = [0, bars.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (bars[middle]!.first < first) from = middle + 1;
    else to = middle;
  }
  return from;
}

function withdraw(history: EpochHistory, { transition, lastDurable, lastProvisional }: TransitionLink, reach: (history: EpochHistory, sequence: bigint) => void): void {
  if (transition !== "void" || lastProvisional === null) return;
  const first = lastDurable === null ? 0n : lastDurable + 1n;
  if (lastProvisional < first) return;
  history.withdrawn = { first, last: lastProvisional };
  reach(history, lastProvisional);
}

/** Few enough bars: neighbours together, what is wrong never hidden. */
function folded(bars: Bar[]): Bar[] {
  const together = Math.ceil(bars.length / MOST_BARS);
  if (together <= 1) return bars;
  const result: Bar[] = [];
  for (let at = 0; at < bars.length; at += together) {
    const part = bars.slice(at, at + together);
    result.push({
      first: part[0]!.first,
      last: part.at(-1)!.last,
      checkpoints: part.flatMap(({ checkpoints }) => checkpoints),
      standing: worst(part.map(({ standing }) => standing)),
    });
  }
  return result;
}

/** Whether a digest that is named as the one before is there at all, and the link that has it. */
export function byDigest(links: readonly TimelineLink[]): Map<string, TimelineLink> {
  return new Map(links.map((link) => [link.digest, link]));
}
