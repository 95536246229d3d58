/** The lane map of one batch: which parts of the key space its proofs know, pure. */
import type { LaneProof, ProofLevel } from "remuda/inspect";

/** A node of the map, by its depth and the bits above it. */
export interface Node {
  depth: number;
  /** The bits of the path to it, as text of `0` and `1`. */
  prefix: string;
}

/** The first `length` bits of an id. */
export function bits(id: string, length: number): string {
  const bytes = id.slice(0, Math.ceil(length / 8) * 2).match(/../g) ?? [];
  return bytes.map((pair) => parseInt(pair, 16).toString(2).padStart(8, "0")).join("").slice(0, length);
}

/** Where a node begins in the key space, and how wide it is, both from 0 to 1. */
export function place({ prefix }: Node): { from: number; width: number } {
  let from = 0;
  let width = 1;
  for (const bit of prefix) {
    width /= 2;
    if (bit === "1") from += width;
  }
  return { from, width };
}

/** The deepest level of any proof that has something beside it; at least 1. */
export function deepest(proofs: readonly LaneProof[]): number {
  return proofs.reduce((most, { levels }) => Math.max(most, (levels.at(-1)?.depth ?? 0) + 1), 1);
}

/** The nodes on the path of a proof, down to a depth. */
export function path({ lane }: LaneProof, depth: number): Node[] {
  const all = bits(lane, depth);
  return Array.from({ length: depth + 1 }, (_, at) => ({ depth: at, prefix: all.slice(0, at) }));
}

/** Subtrees that are occupied, and that no proof leads into: something is there, of lanes outside this subscription. */
export function occupied(proofs: readonly LaneProof[]): Node[] {
  const inside = new Set(proofs.flatMap((proof) => path(proof, deepest(proofs)).map(({ prefix }) => prefix)));
  const found = new Map<string, Node>();
  for (const { lane, levels } of proofs) {
    for (const { depth, goes } of levels) {
      const prefix = `${bits(lane, depth)}${goes === 0 ? 1 : 0}`;
      if (!inside.has(prefix)) found.set(prefix, { depth: depth + 1, prefix });
    }
  }
  return [...found.values()].sort((a, b) => (a.prefix < b.prefix ? -1 : 1));
}

/** The 256 levels of one path: each that has something beside it, and runs of empty ones folded. */
export type Fold = { kind: "level"; level: ProofLevel } | { kind: "empty"; from: number; to: number };

export function folds({ levels }: LaneProof): Fold[] {
  const result: Fold[] = [];
  let next = 0;
  for (const level of levels) {
    if (level.depth > next) result.push({ kind: "empty", from: next, to: level.depth - 1 });
    result.push({ kind: "level", level });
    next = level.depth + 1;
  }
  if (next <= 255) result.push({ kind: "empty", from: next, to: 255 });
  return result;
}
