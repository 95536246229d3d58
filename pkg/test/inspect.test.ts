/** `remuda/inspect` shows what is in a file, and judges nothing. */
import { readFileSync } from "node:fs";
import { describe as group, expect, test } from "vitest";
import { describe, items, outline, portableEvidence } from "../src/inspect-node.js";
import type { CheckpointLink } from "../src/inspect-node.js";
import { audit } from "../src/verify-node.js";

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
const vectors = (JSON.parse(read("../../vectors/audit.json")) as { vectors: { name: string; in: { file: string } }[] }).vectors;
const fileOf = (vector: { in: { file: string } }) => Uint8Array.from(Buffer.from(vector.in.file, "base64"));
const named = (name: string) => fileOf(vectors.find((vector) => vector.name === `audit/${name}`)!);

function streamOf(file: Uint8Array, size: number): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= file.length) return controller.close();
      controller.enqueue(file.subarray(at, (at += size)));
    },
  });
}

group("an outline", () => {
  test("has the items that an audit counts, and stops where an audit stops", async () => {
    for (const vector of vectors) {
      const file = fileOf(vector);
      const [report, seen] = [await audit(file), await outline(file)];
      if (report.verdict === "undecodable") {
        expect(seen.fault, vector.name).toEqual({ item: report.findings[0]!.item, code: report.findings[0]!.code });
        continue;
      }
      expect([seen.items, seen.fault], vector.name).toEqual([report.items, null]);
      expect((seen.kinds.record ?? 0) as number, vector.name).toBe(report.records);
    }
  });

  test("does not depend on how the file is cut", async () => {
    for (const vector of vectors) {
      const file = fileOf(vector);
      expect(await outline(streamOf(file, 37)), vector.name).toEqual(await outline(file));
    }
  });

  test("has the links of the chain, each naming the one before", async () => {
    const { timeline } = await outline(named("scoped-honest"));
    const checkpoints = timeline.rows.filter((row): row is CheckpointLink => row.kind === "checkpoint");
    expect(checkpoints.length).toBe(2);
    expect(checkpoints[1]!.previous).toBe(checkpoints[0]!.digest);
    expect(checkpoints[1]!.first).toBe(checkpoints[0]!.last + 1n);
  });

  test("has a group's history, a standard stream's receipts and a snapshot's hashes", async () => {
    const { groups } = await outline(named("group-honest"));
    expect(groups[0]!.receipts.rows[0]!.action).toBe("GroupCreate");
    const { receipts } = await outline(named("standard-honest"));
    expect(receipts.rows[1]!.previousInStream).toBe(receipts.rows[0]!.digest);
    const [good, bad] = [await outline(named("snapshot-honest")), await outline(named("snapshot-bytes"))];
    expect(good.snapshots.rows[0]!.computedHash).toBe(good.snapshots.rows[0]!.hash);
    expect(bad.snapshots.rows[0]!.computedHash).not.toBe(bad.snapshots.rows[0]!.hash);
  });
});

group("an item", () => {
  test("is found, and described", async () => {
    const file = named("scoped-honest");
    const source = new Blob([file]);
    const seen = await outline(file);
    const rows = await items(source, seen, 0, seen.items);
    expect(rows.map(({ item }) => item)).toEqual([...Array(seen.items).keys()]);
    expect(rows.at(-1)!.offset + rows.at(-1)!.length).toBe(file.length);
    for (const row of rows) {
      const [alone] = await items(source, seen, row.item, 1);
      expect(alone).toEqual(row);
      const described = await describe(file.subarray(row.offset, row.offset + row.length));
      expect(described!.kind).toBe(row.kind);
    }
    expect(await items(source, seen, seen.items, 1)).toEqual([]);
    expect(await describe(new Uint8Array(3))).toBeNull();
  });

  test("shows each lane proof, and whether it folds into the root of its checkpoint", async () => {
    const folded = async (name: string) => {
      const file = named(name);
      const seen = await outline(file);
      const [row] = await items(new Blob([file]), seen, seen.checkpointWithProofs!, 1);
      return (await describe(file.subarray(row!.offset, row!.offset + row!.length)))!.proofs;
    };
    const proofs = await folded("scoped-honest");
    expect(proofs.length).toBeGreaterThan(0);
    expect(proofs.every(({ isSigned }) => isSigned)).toBe(true);
    expect(new Set(proofs.map(({ mapRoot }) => mapRoot)).size).toBe(1);
  });
});

test("evidence is portable: two objects under the head of their file, judged the same", async () => {
  let made = 0;
  for (const vector of vectors) {
    const file = fileOf(vector);
    const { evidence } = await audit(file);
    for (const { code, items: pair } of evidence) {
      const seen = await outline(file);
      const bytesOf = async (item: number) => {
        const [row] = await items(new Blob([file]), seen, item, 1);
        return file.subarray(row!.offset, row!.offset + row!.length);
      };
      const portable = await portableEvidence({ head: file.subarray(0, seen.head!.bytes), a: await bytesOf(pair[0]), b: await bytesOf(pair[1]) });
      const judged = await audit(portable!);
      expect(judged, vector.name).toMatchObject({ verdict: "violations", items: 2, findings: [], evidence: [{ code, items: [0, 1] }] });
      made += 1;
    }
  }
  expect(made).toBeGreaterThan(5);
  const honest = named("scoped-honest");
  expect(await portableEvidence({ head: honest, a: honest, b: honest })).toBeNull();
});
