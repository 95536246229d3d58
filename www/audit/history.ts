/** The checkpoint chain by broker epoch: pure, so that tests can say what a picture is of. */
import type { CheckpointLink, FloorLink, TimelineLink, TransitionLink } from "remuda/inspect";

/** How many bars one epoch is drawn with: neighbours are folded into one beyond that. */
export const MOST_BARS = 160;

export interface Bar {
  first: bigint;
  last: bigint;
  /** The checkpoints that it stands for: almost always one. */
  checkpoints: CheckpointLink[];
  /** Whether the file says that something is wrong with one of them. */
  isBad: boolean;
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

export function epochs(links: readonly TimelineLink[], bad: ReadonlySet<number>): EpochHistory[] {
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
      const isRival = history.bars.some(({ first, last }) => link.first <= last && first <= link.last);
      if (isRival) history.rivals.push(link);
      else history.bars.push({ first: link.first, last: link.last, checkpoints: [link], isBad: bad.has(link.item) });
    } else if (link.of === "epoch" && link.epoch !== null) {
      const history = of(link.epoch);
      history.floors.push(link);
      if (link.first > 0n) reach(history, link.first - 1n);
    }
  }
  const sorted = [...histories.values()].sort((a, b) => (a.epoch < b.epoch ? -1 : 1));
  for (const history of sorted) history.bars = folded(history.bars.sort((a, b) => (a.first < b.first ? -1 : 1)));
  return sorted;
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
      isBad: part.some(({ isBad }) => isBad),
    });
  }
  return result;
}

/** Whether a digest that is named as the one before is there at all, and the link that has it. */
export function byDigest(links: readonly TimelineLink[]): Map<string, TimelineLink> {
  return new Map(links.map((link) => [link.digest, link]));
}
