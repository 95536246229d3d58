import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuditProgress, AuditReport } from "../src/verify-node.js";
import { audit, checkEvidence, RemudaError, verifySignature } from "../src/verify-node.js";

/** Wasm and glue. */
const MAX_GZIPPED_BYTES = 60_000;

interface Vector {
  name: string;
  in: Record<string, unknown>;
  expect: { ok?: Partial<AuditReport>; err?: string };
}

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
const vectors = (family: string) => (JSON.parse(read(`../../vectors/${family}.json`)) as { vectors: Vector[] }).vectors;
const bytes = (hex: unknown) => Uint8Array.from(Buffer.from(hex as string, "hex"));
const fileOf = (vector: Vector) => Uint8Array.from(Buffer.from(vector.in.file as string, "base64"));

const audits = vectors("audit");
const named = (name: string) => fileOf(audits.find((vector) => vector.name === `audit/${name}`)!);

/** A stream of pieces of `size` bytes. */
function streamOf(file: Uint8Array, size: number): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= file.length) return controller.close();
      controller.enqueue(file.subarray(at, (at += size)));
    },
  });
}

describe("the artefact", () => {
  const file = (name: string) => readFileSync(new URL(`../generated/verifier/${name}`, import.meta.url));

  test("needs nothing of its host: it can throw, and it has a table of its own", () => {
    const imports = WebAssembly.Module.imports(new WebAssembly.Module(file("remuda_verifier_bg.wasm")));
    for (const { name } of imports) expect(name).toMatch(/^(__wbg___wbindgen_throw_\w+|__wbindgen_init_externref_table)$/);
  });

  test("does not grow unnoticed", () => {
    const gzipped = ["remuda_verifier_bg.wasm", "remuda_verifier.js"].map((name) => gzipSync(file(name), { level: 9 }).length);
    expect(gzipped.reduce((sum, length) => sum + length)).toBeLessThan(MAX_GZIPPED_BYTES);
  });
});

describe("audit", () => {
  test("answers every vector, from bytes, a blob and a stream alike", async () => {
    for (const vector of audits) {
      const file = fileOf(vector);
      const report = await audit(file);
      expect(report, vector.name).toMatchObject(vector.expect.ok!);
      expect(await audit(new Blob([file])), vector.name).toEqual(report);
      expect(await audit(streamOf(file, 37)), vector.name).toEqual(report);
    }
  });

  test("says how far it is", async () => {
    const seen: AuditProgress[] = [];
    const file = named("scoped-honest");
    await audit(file, { onProgress: (progress) => seen.push(progress) });
    const items = (await audit(file)).items;
    expect(seen.at(-1)).toEqual({ bytes: BigInt(file.length), totalBytes: BigInt(file.length), items, declaredItems: items });
    seen.length = 0;
    await audit(streamOf(file, 16), { onProgress: (progress) => seen.push(progress) });
    expect(seen[0]).toEqual({ bytes: 16n, totalBytes: null, items: 0, declaredItems: null });
  });

  test("a file that is none is a verdict", async () => {
    expect((await audit(new Uint8Array(3))).verdict).toBe("undecodable");
    expect((await audit(new Blob([]))).verdict).toBe("undecodable");
  });

  test("ends by its signal with the signal's reason, and cancels its stream", async () => {
    const reason = new Error("enough");
    await expect(audit(named("empty"), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    let cancelled: unknown;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(named("scoped-honest").subarray(0, 64)),
      cancel: (why) => {
        cancelled = why;
      },
    });
    const controller = new AbortController();
    const ended = audit(endless, { signal: controller.signal, onProgress: () => controller.abort(reason) });
    await expect(ended).rejects.toBe(reason);
    expect(cancelled).toBe(reason);
  });

  test("ends a read that never comes", async () => {
    const controller = new AbortController();
    const ended = audit(new ReadableStream(), { signal: controller.signal });
    setTimeout(() => controller.abort(), 10);
    await expect(ended).rejects.toMatchObject({ name: "AbortError" });
  });

  test("refuses what is no source, by code", async () => {
    const text = new ReadableStream({ start: (controller) => controller.enqueue("text") });
    await expect(audit(text)).rejects.toMatchObject({ code: "client/invalid-argument" });
    await expect(audit("text" as never)).rejects.toBeInstanceOf(RemudaError);
  });
});

describe("evidence and signatures", () => {
  test("answer their vectors", async () => {
    const tags = [
      "AppendReceiptV1",
      "CheckpointReceiptV1",
      "BrokerEpochTransitionV1",
      "DeliveryStateReceiptV1",
      "StandardRetentionAnchorV1",
      "GroupRetentionAnchorV1",
      "FastRetentionAnchorV1",
      "KeyBatchReceiptV1",
    ];
    const held = (object: unknown) => {
      const { type, bytes: hex } = object as { type: string; bytes: string };
      return Uint8Array.from([tags.indexOf(type) + 1, ...bytes(hex)]);
    };
    const pairs = vectors("evidence").filter((vector) => vector.in.a !== undefined);
    expect(pairs.length).toBeGreaterThan(10);
    for (const { name, in: given, expect: expected } of pairs) {
      const { context, stream_id, provider_key, a, b } = given;
      const pair = { context: bytes(context), streamId: bytes(stream_id), providerKey: bytes(provider_key), a: held(a), b: held(b) };
      expect(await checkEvidence(pair), name).toBe(expected.err ?? null);
    }
  });

  test("are strict", async () => {
    for (const { name, in: given, expect: expected } of vectors("signature")) {
      const judged = await verifySignature(bytes(given.public_key), bytes(given.message), bytes(given.signature));
      expect(judged, name).toBe(expected.ok !== undefined);
    }
    expect(await verifySignature(new Uint8Array(31), new Uint8Array(), new Uint8Array(64))).toBe(false);
  });
});

describe("the command", () => {
  const folder = mkdtempSync(join(tmpdir(), "remuda-audit-"));
  const texts = JSON.parse(read("./audit-text.json")) as Record<string, string>;
  const run = (...args: string[]) =>
    new Promise<{ code: number | null; out: string; err: string }>((resolve) => {
      const child = spawn(process.execPath, [fileURLToPath(new URL("../bin/remuda.mjs", import.meta.url)), ...args]);
      let [out, err] = ["", ""];
      child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
      child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
      child.on("close", (code) => resolve({ code, out, err }));
    });
  const fileFor = (name: string) => join(folder, name.replace("audit/", ""));

  beforeAll(() => {
    for (const name of Object.keys(texts)) writeFileSync(fileFor(name), named(name.replace("audit/", "")));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test("prints the texts that the native command prints, and exits by verdict", async () => {
    const codes = { consistent: 0, violations: 1, undecodable: 2 };
    for (const [name, text] of Object.entries(texts)) {
      const report = await audit(named(name.replace("audit/", "")));
      expect(await run("audit", fileFor(name)), name).toEqual({ code: codes[report.verdict], out: `${text}\n`, err: "" });
      const { code, out } = await run("audit", fileFor(name), "--json");
      expect([code, JSON.parse(out)], name).toEqual([codes[report.verdict], report]);
    }
  }, 60_000);

  test("says what it could not judge, with another exit code", async () => {
    expect((await run("audit", join(folder, "absent"))).code).toBe(3);
    expect(await run()).toMatchObject({ code: 3, out: "" });
  }, 60_000);
});
