import { describe, expect, test } from "vitest";
import type { CheckpointLink, FloorLink, LaneProof, TransitionLink } from "remuda/inspect";
import type { AuditReport } from "remuda/verify";
import { inOrder, links } from "../audit/chains.js";
import { differences } from "../audit/difference.js";
import { MOST_BARS, Standings, epochs } from "../audit/history.js";
import { hexRows } from "../audit/item-view.js";
import { bits, deepest, folds, occupied, path, place } from "../audit/prefix.js";
import { outcomes } from "../audit/snapshots.js";
import { span } from "../audit/time.js";
import { duration, plain, records, size, verdictWords } from "../audit/words.js";

const id = (number: number) => number.toString(16).padStart(64, "0");

function report(over: Partial<AuditReport> = {}): AuditReport {
  return { verdict: "consistent", items: 3, records: 2, signatures: 1, findings: [], evidence: [], assurance: [], not_checked: [], ...over };
}

const finding = (item: number | null, code = "verify/lane-count") => ({ item, code, rule: "CIP-39 §12.2.1", detail: "a detail" });
const assured = (verified: number, unverified = 0) => ({ subscription: id(1), mode: "scoped" as const, verified, unverified });

function checkpoint(item: number, epoch: number, first: number, last: number, over: Partial<CheckpointLink> = {}): CheckpointLink {
  return {
    kind: "checkpoint",
    item,
    digest: id(100 + item),
    previous: id(99 + item),
    atMs: BigInt(item),
    height: 1n,
    epoch: BigInt(epoch),
    first: BigInt(first),
    last: BigInt(last),
    records: last - first + 1,
    subscription: id(1),
    ...over,
  };
}

const common = { digest: id(7), previous: id(6), atMs: 0n, height: 1n };

function restart(item: number, over: Partial<TransitionLink> = {}): TransitionLink {
  return { ...common, kind: "transition", item, transition: "clean", fromEpoch: 0n, epoch: 1n, lastDurable: 4n, lastProvisional: 4n, ...over };
}

describe("the verdict in words", () => {
  test("never says that more was proven than was", () => {
    const partly = report({ assurance: [assured(1, 1)] });
    expect(records(partly)).toEqual({ proven: 1, unproven: 1 });
    expect(verdictWords(partly, "audit").lead).toContain("1 record has no proof in this file");
    expect(verdictWords(report({ assurance: [assured(2)] }), "audit").lead).not.toContain("no proof");
    expect(verdictWords(report({ items: 0, records: 0 }), "audit").title).toBe("An empty audit file");
  });

  test("puts a contradiction before a finding, and blames nobody for a damaged file", () => {
    const both = report({ verdict: "violations", findings: [finding(1)], evidence: [{ code: "evidence/checkpoint-fork", items: [1, 2] }] });
    expect(verdictWords(both, "audit").title).toContain("exclude each other");
    expect(verdictWords(both, "audit").lead).toContain("1 item also failed");
    const damaged = verdictWords(report({ verdict: "undecodable", findings: [finding(1, "decode/truncated")] }), "audit");
    expect([damaged.tone, damaged.lead.includes("whoever made or copied it")]).toEqual(["wait", true]);
  });

  test("of evidence whose signature fails nobody is shown to have lied", () => {
    const forged = report({ verdict: "violations", findings: [finding(null, "watchtower/signature")] });
    expect(verdictWords(forged, "feed")).toMatchObject({ tone: "wait", title: "This proves nothing" });
  });

  test("has a sentence for a code that it does not know", () => {
    expect(plain("verify/new", "something is odd")).toBe("Something is odd.");
    expect(plain("verify/new")).toBe("A rule of the protocol is broken.");
  });
});

describe("what is said of an item", () => {
  test("after a finding it is not known whether a served one was judged; what is held always was", () => {
    const standings = new Standings(report({ findings: [finding(5)], evidence: [{ code: "evidence/checkpoint-fork", items: [2, 9] }] }), null);
    expect([1, 2, 5, 6].map((item) => standings.served(item))).toEqual(["judged", "bad", "bad", "unknown"]);
    expect([6, 9].map((item) => standings.alone(item))).toEqual(["judged", "bad"]);
    expect(standings.ofCheckpoint(checkpoint(8, 0, 0, 1, { subscription: null }))).toBe("judged");
  });

  test("so it is after an error that ends a subscription", () => {
    expect(new Standings(report(), 3).served(4)).toBe("unknown");
    expect(new Standings(report(), null).served(4)).toBe("judged");
  });
});

describe("the history", () => {
  const standings = new Standings(report(), null);

  test("has what a void withdrew, floors, and rivals beside what they contradict", () => {
    const floor: FloorLink = { ...common, kind: "floor", item: 9, of: "epoch", epoch: 0n, first: 3n, lane: null, group: null };
    const links = [checkpoint(1, 0, 0, 2), checkpoint(2, 0, 3, 4), restart(3, { transition: "void", lastProvisional: 6n }), checkpoint(4, 1, 0, 9), floor, checkpoint(8, 0, 2, 3)];
    const [first, second] = epochs(links, standings);
    expect(first).toMatchObject({ epoch: 0n, withdrawn: { first: 5n, last: 6n }, end: 7n });
    expect([first!.bars.length, first!.rivals.length, first!.floors.length]).toEqual([2, 1, 1]);
    expect([second!.began?.item, second!.withdrawn, second!.end]).toEqual([3, null, 10n]);
  });

  test("is drawn with few bars however long it is, and never hides what is wrong", () => {
    const links = Array.from({ length: 5_000 }, (_, index) => checkpoint(index, 0, index, index));
    const [history] = epochs(links, new Standings(report({ findings: [finding(4_321)] }), null));
    expect(history!.bars.length).toBeLessThanOrEqual(MOST_BARS);
    expect(history!.bars.filter(({ standing }) => standing === "bad").length).toBe(1);
    expect(history!.bars.reduce((sum, { checkpoints }) => sum + checkpoints.length, 0)).toBe(5_000);
  });

  test("a clean restart withdraws nothing", () => {
    expect(epochs([checkpoint(1, 0, 0, 4), restart(2)], standings)[0]!.withdrawn).toBeNull();
  });
});

describe("the lane map", () => {
  const proof = (lane: string, depths: [number, 0 | 1][]): LaneProof => ({
    lane,
    payload: null,
    leaf: null,
    levels: depths.map(([depth, goes]) => ({ depth, goes, node: id(1), sibling: id(2) })),
    mapRoot: id(3),
    isSigned: true,
  });
  const low = "00".repeat(32);
  const high = `c0${"00".repeat(31)}`;

  test("has a place for every prefix", () => {
    expect(bits(high, 3)).toBe("110");
    expect(place({ depth: 2, prefix: "11" })).toEqual({ from: 0.75, width: 0.25 });
    expect(place({ depth: 0, prefix: "" })).toEqual({ from: 0, width: 1 });
  });

  test("calls occupied only what no proof leads into", () => {
    const proofs = [proof(low, [[0, 0], [1, 0]]), proof(high, [[0, 1]])];
    expect(deepest(proofs)).toBe(2);
    expect(path(proofs[0]!, 2).map(({ prefix }) => prefix)).toEqual(["", "0", "00"]);
    expect(occupied(proofs)).toEqual([{ depth: 2, prefix: "01" }]);
  });

  test("folds empty levels of a path, all 256 accounted for", () => {
    const folded = folds(proof(low, [[1, 0], [2, 0], [9, 0]]));
    expect(folded.map((fold) => (fold.kind === "level" ? fold.level.depth : `${fold.from}–${fold.to}`))).toEqual(["0–0", 1, 2, "3–8", 9, "10–255"]);
    expect(folds(proof(low, []))).toEqual([{ kind: "empty", from: 0, to: 255 }]);
    expect(folds(proof(low, Array.from({ length: 256 }, (_, depth): [number, 0] => [depth, 0]))).length).toBe(256);
  });
});

describe("where two statements differ", () => {
  const text = (first: number, after: string) => `CheckpointReceipt(\n    CheckpointReceipt {\n        first_sequence: ${first},\n        after: Some(\n            ${after},\n        ),\n    },\n)`;

  test("is said field by field, with the name above a value of its own line", () => {
    expect(differences(text(1, "aa"), text(2, "bb"))).toEqual([
      { field: "first_sequence", values: ["1", "2"] },
      { field: "after", values: ["aa", "bb"] },
    ]);
    expect(differences(text(1, "aa"), text(1, "aa"))).toEqual([]);
  });

  test("is not said of things of different kinds", () => {
    expect(differences(text(1, "aa"), "AppendReceipt(\n)")).toBeNull();
  });
});

describe("a chain of receipts", () => {
  test("has a break where one names another than the one before it", () => {
    const rows = [{ digest: "a", previous: "-" }, { digest: "b", previous: "a" }, { digest: "d", previous: "c" }, { digest: "e", previous: "a" }];
    expect(links(rows)).toEqual(["next", "next", "missing", "another"]);
  });

  test("is by sequence, whatever the file's order, with rivals behind", () => {
    const rows = [3n, 1n, 2n, 1n].map((sequence, index) => ({ sequence, index }));
    expect(inOrder(rows).map(({ index }) => index)).toEqual([1, 2, 0, 3]);
  });
});

describe("a snapshot's checks", () => {
  test("hold before the one that fails, and are not known behind it", () => {
    expect(new Set(outcomes(null))).toEqual(new Set(["passed"]));
    expect(outcomes("verify/snapshot-hash")).toEqual(["passed", "passed", "passed", "failed", "unknown", "unknown", "unknown", "unknown"]);
  });

  test("of a signature nobody knows whose it was", () => {
    expect(outcomes("verify/signature")).toEqual(["passed", "passed", ...Array<string>(6).fill("unknown")]);
    expect(new Set(outcomes("verify/new"))).toEqual(new Set(["unknown"]));
  });
});

test("bytes are shown with their place in the file", () => {
  const rows = hexRows(new TextEncoder().encode("CBQSAUD1 and more than a row"), 0x20, 2).split("\n");
  expect(rows[0]).toMatch(/^00000020 {2}43 42 51 53 41 55 44 31 {2}20 .* {2}CBQSAUD1 and mor$/);
  expect(rows[1]).toMatch(/^00000030 /);
  expect(hexRows(new Uint8Array(64), 0, 2).split("\n").length).toBe(2);
});

test("numbers are for reading", () => {
  expect([size(12), size(1_500), size(104_857_600)]).toEqual(["12 bytes", "1.5 kB", "104.9 MB"]);
  expect([duration(0.2), duration(2_345)]).toEqual(["1 ms", "2.3 s"]);
  expect([span(0n, 500n), span(0n, 30_000n), span(0n, 7_200_000n), span(5_000n, 0n)]).toEqual(["less than a second", "30 seconds", "2 hours", "backwards in time"]);
});
