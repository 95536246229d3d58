/** Publishing with `remuda/watchtower`, and re-checking what others claim. */
import { createHash, generateKeyPairSync, sign as nodeSign, verify } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { RemudaError, checkEvidence, contentKeyIdentity, deriveContentKey, evidence, feedPublisher, openFeed, wrappedDekAad } from "../src/watchtower-node.js";
import type { FeedPublisherOptions } from "../src/watchtower-node.js";

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
const text = (words: string) => new TextEncoder().encode(words);

/** What was signed, in order. */
function signer() {
  const signed: Uint8Array[] = [];
  const sign = async (bytes: Uint8Array) => {
    signed.push(bytes);
    return new Uint8Array(nodeSign(null, bytes, privateKey));
  };
  return { signed, sign };
}

const options = (sign: (bytes: Uint8Array) => Promise<Uint8Array>): FeedPublisherOptions => ({
  stream: "feed-1",
  headSequence: 0n,
  signingKeyId: 1n,
  publicKey: raw,
  signer: sign,
});

describe("a publisher", () => {
  test("signs the document's bytes", async () => {
    const { signed, sign } = signer();
    const publisher = await feedPublisher(options(sign));
    const draft = { kind: "price", payload: text('{"p":1}'), tags: { px: 1.5, sym: "ETH", live: true }, timestampMs: 1_800_000_000_000n };
    const { sequence, message } = await publisher.publish(draft);
    expect(sequence).toBe(1n);
    expect(signed[0]).toHaveLength(236);
    expect(createHash("sha256").update(signed[0]!).digest("hex")).toBe("ffa26f9f7a330d881322134252fd6f2f7ca4f62176a4fb4f23c24fd98b67a902");
    const signature = message.subarray(message.indexOf(0x58) + 2);
    expect(signature.length).toBeGreaterThan(0);
    expect(verify(null, signed[0]!, publicKey, nodeSign(null, signed[0]!, privateKey))).toBe(true);
  });

  test("takes each sequence once, however calls overlap", async () => {
    const { sign } = signer();
    const publisher = await feedPublisher({ ...options(sign), headSequence: 41n });
    const drafts = Array.from({ length: 5 }, (_, index) => publisher.publish({ kind: "note", payload: Uint8Array.of(index) }));
    expect((await Promise.all(drafts)).map(({ sequence }) => sequence)).toEqual([42n, 43n, 44n, 45n, 46n]);
  });

  test("takes no sequence for what is refused", async () => {
    const { sign } = signer();
    let broken = true;
    const publisher = await feedPublisher(options(async (bytes) => (broken ? new Uint8Array(64) : sign(bytes))));
    await expect(publisher.publish({ kind: "note", payload: text("a") })).rejects.toMatchObject({ code: "watchtower/signature", remedy: "halt" });
    await expect(publisher.publish({ kind: "note", payload: new Uint8Array(16_385) })).rejects.toMatchObject({ code: "watchtower/payload-too-large" });
    broken = false;
    expect((await publisher.publish({ kind: "note", payload: text("a") })).sequence).toBe(1n);
  });

  test("signs with a key of WebCrypto, and seals with a nonce of its own each time", async () => {
    const pair = (await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"])) as CryptoKeyPair;
    const own = Buffer.from(await crypto.subtle.exportKey("raw", pair.publicKey)).toString("hex");
    const publisher = await feedPublisher({ ...options(signer().sign), publicKey: own, signer: pair.privateKey });
    const seal = { keyEpoch: 7n, key: new Uint8Array(32).fill(9) };
    const [a, b] = [await publisher.publish({ kind: "k", payload: text("same"), seal }), await publisher.publish({ kind: "k", payload: text("same"), seal })];
    expect(Buffer.from(a.message).includes("same")).toBe(false);
    expect(Buffer.from(a.message)).not.toEqual(Buffer.from(b.message));
  });
});

test("two messages for one sequence are evidence for anybody, one and the same are not", async () => {
  const { sign } = signer();
  const messages = await Promise.all(
    ["one", "other"].map(async (words) => (await (await feedPublisher(options(sign))).publish({ kind: "k", payload: text(words), timestampMs: 1n })).message),
  );
  const claim = { stream: "feed-1", schedule: [{ signingKeyId: 1n, pubkey: raw, effectiveSequence: 1n }] };
  const [one, other] = [messages[0]!, messages[1]!];
  const file = (await evidence({ ...claim, a: one, b: other }))!;
  const accused = { contradicts: true, code: "watchtower/equivocation", stream: "feed-1" };
  expect(await checkEvidence(file)).toEqual(accused);
  expect(await checkEvidence(file, claim)).toEqual(accused);

  // The command judges the file as it is, and by its magic alone.
  const directory = mkdtempSync(join(tmpdir(), "remuda-evidence-"));
  const path = join(directory, "evidence");
  writeFileSync(path, file);
  const { judgeEvidence, evidenceText } = (await import("../bin/evidence.mjs" as string)) as {
    judgeEvidence(path: string): Promise<{ verdict: string; evidence: { items: number[] }[] } | null>;
    evidenceText(report: object): string;
  };
  const report = (await judgeEvidence(path))!;
  expect(report).toMatchObject({ verdict: "violations", evidence: [{ code: "watchtower/equivocation", items: [0, 1] }] });
  expect(evidenceText(report)).toContain("evidence: items 0 and 1: watchtower/equivocation");
  writeFileSync(path, file.subarray(0, 30));
  expect(await judgeEvidence(path)).toMatchObject({ verdict: "undecodable" });
  writeFileSync(path, "CBQSAUD1");
  expect(await judgeEvidence(path)).toBeNull();
  rmSync(directory, { recursive: true });

  expect(await evidence({ ...claim, a: one, b: one })).toBeNull();
  await expect(evidence({ ...claim, stream: "feed-2", a: one, b: other })).rejects.toMatchObject({ code: "watchtower/stream" });
  const another = [{ signingKeyId: 2n, pubkey: raw, effectiveSequence: 1n }];
  expect(await checkEvidence(file, { schedule: another })).toMatchObject({ contradicts: false, code: "watchtower/key-schedule" });
  expect(await checkEvidence(file, { schedule: [] })).toMatchObject({ contradicts: false, code: "watchtower/key-schedule" });
  for (const at of [0, 9, file.length - 1]) {
    expect((await checkEvidence(Uint8Array.from(file, (byte, index) => (index === at ? byte ^ 1 : byte)))).contradicts, `byte ${at}`).toBe(false);
  }
});

test("mirrors and content keys have the document's lengths", async () => {
  const identity = { chainId: 1n, stream: "feed-1", keyEpoch: 7n, generation: 1n };
  expect(Buffer.from(await contentKeyIdentity(identity)).subarray(0, 20).toString()).toBe("cip-7-content-key-v1");
  const aad = await wrappedDekAad({ ...identity, committeeEpoch: 1n, releaseKeyMaterialHash: "00".repeat(32) });
  expect(aad).toHaveLength(112 + "feed-1".length);
  expect(await deriveContentKey({ ...identity, streamSecret: new Uint8Array(32) })).toHaveLength(32);
});

test("what a page alone can do says so", async () => {
  await expect(openFeed({ endpoint: "https://a.example", stream: "feed-1" })).rejects.toBeInstanceOf(RemudaError);
  await expect(openFeed({ endpoint: "https://a.example", stream: "feed-1" })).rejects.toMatchObject({ code: "client/no-worker" });
});
