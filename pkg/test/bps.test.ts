/** Chunks of `remuda/bps` against an independent implementation, byte for byte, and what the document knows. */
import { Bee, EthAddress, Identifier, PrivateKey, Reference } from "@ethersphere/bee-js";
import { keccak_256 } from "@noble/hashes/sha3.js";
import { describe, expect, test } from "vitest";
import { RemudaError, checkEvidence, checkUpdate, chunkAddress, evidence, openSubscriber, ownerOf, singleOwnerChunk, socAddress } from "../src/bps-node.js";

// Never asked: it only makes and reads chunks.
const bee = new Bee("http://127.0.0.1:1");

const LENGTHS = [0, 1, 31, 32, 33, 64, 2049, 4095, 4096];
/** Its curve is slow, and slower on a shared machine. */
const PATIENCE_MS = 60_000;

/** Bytes by a generator of our own, the same in every run. */
function generated(length: number, seed: number): Uint8Array {
  let state = (seed * 2654435761 + length + 1) >>> 0;
  return Uint8Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state >>> 24;
  });
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const concat = (...parts: Uint8Array[]) => Uint8Array.from(Buffer.concat(parts));

/** `Broadcast` of the document in protobuf, kind DATA. */
function broadcast(soc: Uint8Array, challenge: Uint8Array, index: number): Uint8Array {
  const length = Uint8Array.of((soc.length & 0x7f) | 0x80, soc.length >> 7);
  return concat(Uint8Array.of(0x0a), length, soc, Uint8Array.of(0x10, 1, 0x1a, 32), challenge, Uint8Array.of(0x20, index));
}

describe("chunks agree with bee-js", () => {
  for (const length of LENGTHS) {
    test(`of ${length} bytes`, { timeout: PATIENCE_MS }, async () => {
      for (let seed = 0; seed < 2; seed++) {
        const [payload, id, key] = [generated(length, seed), generated(32, seed + 10), generated(32, seed + 20)];
        const owner = await ownerOf(key);
        expect(owner).toBe(new PrivateKey(key).publicKey().address().toHex());
        const address = await socAddress(hex(id), owner);
        expect(address).toBe(bee.calculateSingleOwnerChunkAddress(new Identifier(id), new EthAddress(owner)).toHex());

        const ours = await singleOwnerChunk(hex(id), payload, key);
        // It recomputes the tree over what we wrapped, and recovers who signed that.
        const read = bee.unmarshalSingleOwnerChunk(ours, new Reference(address));
        expect(read.owner.toHex()).toBe(owner);
        expect(hex(read.payload.toUint8Array()) === hex(payload)).toBe(true);
        expect(read.span.toBigInt()).toBe(BigInt(length));

        // It makes no chunk of nothing by itself.
        if (length === 0) continue;
        const theirs = bee.makeContentAddressedChunk(payload);
        expect(await chunkAddress(payload)).toBe(theirs.address.toHex());
        const signed = theirs.toSingleOwnerChunk(new Identifier(id), new PrivateKey(key)).data;
        // All but the signature, whose nonce is random there and derived here.
        expect(hex(signed.subarray(0, 32)) === hex(ours.subarray(0, 32)) && hex(signed.subarray(97)) === hex(ours.subarray(97))).toBe(true);

        // An update signed there is one here, and only of its author.
        const [topic, challenge] = [generated(32, seed + 30), generated(32, seed + 40)];
        const identifier = new Identifier(keccak_256(concat(keccak_256(concat(topic, challenge)), new Uint8Array(7), Uint8Array.of(seed))));
        const update = broadcast(theirs.toSingleOwnerChunk(identifier, new PrivateKey(key)).data, challenge, seed);
        expect(await checkUpdate({ topic: hex(topic), owner, update })).toBeNull();
        expect(await checkUpdate({ topic: hex(topic), owner: "11".repeat(20), update })).toBe("bps/signer");
      }
    });
  }

  test("a changed byte is caught by both", { timeout: PATIENCE_MS }, async () => {
    const [id, key] = [generated(32, 1), generated(32, 2)];
    const owner = await ownerOf(key);
    const chunk = await singleOwnerChunk(hex(id), generated(100, 3), key);
    const address = new Reference(await socAddress(hex(id), owner));
    for (const at of [0, 40, 100, chunk.length - 1]) {
      const bent = Uint8Array.from(chunk, (byte, index) => (index === at ? byte ^ 1 : byte));
      expect(() => bee.unmarshalSingleOwnerChunk(bent, address), `byte ${at}`).toThrow();
    }
  });
});

test("what the document knows", async () => {
  expect(await chunkAddress(new TextEncoder().encode("foo"))).toBe("2387e8e7d8a48c2a9339c97c1dc3461a9a7aa07e994c5cb8b38fd7c1b3e6ea48");
  expect(await chunkAddress(new Uint8Array())).toBe("b34ca8c22b9e982354f9c7f50b470d66db428d880c8a904d5fe4ec9713171526");
});

describe("errors are typed", () => {
  const rejected = async (promise: Promise<unknown>) => {
    const thrown = await promise.then(
      () => null,
      (error: unknown) => error,
    );
    expect(thrown).toBeInstanceOf(RemudaError);
    const { code, remedy } = thrown as RemudaError;
    return { code, remedy };
  };

  test("by code and remedy", async () => {
    expect(await rejected(chunkAddress(new Uint8Array(4097)))).toEqual({ code: "bps/chunk-length", remedy: "halt" });
    expect(await rejected(ownerOf(new Uint8Array(32)))).toEqual({ code: "misuse/argument", remedy: "fix-request" });
    expect(await rejected(socAddress("00", "00"))).toEqual({ code: "misuse/argument", remedy: "fix-request" });
    const options = { endpoint: "ws://127.0.0.1:1", topic: "00".repeat(32), owner: "00".repeat(20) };
    expect(await rejected(openSubscriber(options))).toEqual({ code: "client/no-worker", remedy: "surface" });
  });

  test("what is no update, and no file of evidence", async () => {
    const cohort = { topic: "00".repeat(32), owner: "00".repeat(20) };
    expect(await checkUpdate({ ...cohort, update: Uint8Array.of(255) })).toBe("bps/protobuf");
    expect(await checkEvidence(Uint8Array.of(1))).toEqual({ contradicts: false, code: "bps/frame", topic: null, owner: null });
  });
});

test("two payloads for one index are evidence for anybody, the same one twice is not", async () => {
  const [key, topic, challenge] = [generated(32, 1), generated(32, 2), generated(32, 3)];
  const cohort = { topic: hex(topic), owner: await ownerOf(key) };
  const signed = async (words: string, index: number) => {
    const id = keccak_256(concat(keccak_256(concat(topic, challenge)), new Uint8Array(7), Uint8Array.of(index)));
    return broadcast(await singleOwnerChunk(hex(id), new TextEncoder().encode(words), key), challenge, index);
  };
  const [one, other] = [await signed("one", 7), await signed("other", 7)];
  const file = (await evidence({ ...cohort, a: one, b: other }))!;
  expect(await checkEvidence(file)).toEqual({ contradicts: true, code: null, ...cohort });
  expect(await evidence({ ...cohort, a: one, b: one })).toBeNull();
  expect(await evidence({ ...cohort, a: one, b: await signed("other", 8) })).toBeNull();
  await expect(evidence({ ...cohort, owner: "11".repeat(20), a: one, b: other })).rejects.toMatchObject({ code: "bps/signer" });
});
