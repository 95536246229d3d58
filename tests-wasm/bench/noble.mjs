// The checks of one ScopedProofs batch (CIP-39 §12.2) on @noble/curves and @noble/hashes: what `remuda` is measured beside.
//
// The same work by the same shortcuts: every record digest, leaf and sub-root, every lane proof folded to one root (an absent
// lane from its deepest sibling on), the signed range, and the signature. Frames are read by offset and taken to be well formed.
import { ed25519 } from "@noble/curves/ed25519.js";
import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex as hex, concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";

const DOMAIN = Object.fromEntries(
  Object.entries({
    record: "cbqs/fast-record/v1",
    leaf: "cbqs/fast-lane-leaf/v1",
    payload: "cbqs/fast-lane-payload/v1",
    node: "cbqs/merkle-node/v1",
    empty: "cbqs/sparse-empty/v1",
    range: "cbqs/fast-ordered-range/v1",
    checkpoint: "cbqs/checkpoint-receipt/v1",
  }).map(([name, text]) => [name, utf8ToBytes(text)]),
);

const hash = (...parts) => keccak_256(concatBytes(...parts));
const node = (left, right) => hash(DOMAIN.node, left, right);

const EMPTY = new Array(257);
EMPTY[256] = hash(DOMAIN.empty);
for (let depth = 255; depth >= 0; depth--) EMPTY[depth] = node(EMPTY[depth + 1], EMPTY[depth + 1]);

const equal = (a, b) => a.length === b.length && a.every((byte, at) => byte === b[at]);
const bit = (bytes, depth) => (bytes[depth >> 3] >> (7 - (depth & 7))) & 1;

/** Reads left to right. */
class Cursor {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }
  take(length) {
    return this.bytes.subarray(this.at, (this.at += length));
  }
  u8() {
    return this.bytes[this.at++];
  }
  u32() {
    return this.view.getUint32((this.at += 4) - 4);
  }
  u64() {
    return this.view.getBigUint64((this.at += 8) - 8);
  }
}

function merkleRoot(leaves) {
  let level = leaves;
  while (level.length > 1) {
    const above = [];
    for (let at = 0; at < level.length; at += 2) {
      above.push(at + 1 < level.length ? node(level[at], level[at + 1]) : level[at]);
    }
    level = above;
  }
  return level[0];
}

function fold(key, leaf, bitmap, siblings) {
  const depths = [];
  for (let depth = 0; depth < 256; depth++) if (bit(bitmap, depth)) depths.push(depth);
  if (depths.length !== siblings.length) throw new Error("decode/proof-shape");
  const beside = new Map(depths.map((depth, at) => [depth, siblings[at]]));
  let depth = leaf ? 255 : (depths.at(-1) ?? -1);
  let current = leaf ?? EMPTY[depth + 1];
  for (; depth >= 0; depth--) {
    const sibling = beside.get(depth) ?? EMPTY[depth + 1];
    current = bit(key, depth) ? node(sibling, current) : node(current, sibling);
  }
  return current;
}

/** A record: its lane, its sequence and its digest. */
function readDelivery(cursor, context) {
  cursor.take(32); // subscription
  if (cursor.u8() !== 2) throw new Error("not a fast record");
  const id = cursor.take(24);
  const sequence = new DataView(id.buffer, id.byteOffset + 16).getBigUint64(0);
  const header = cursor.take(154);
  const payload = cursor.take(cursor.u32());
  const digest = hash(DOMAIN.record, context, id, header, keccak_256(payload));
  return { lane: hex(header.subarray(32, 64)), sequence, digest };
}

/** Verifies a batch, frame by frame. Returns how many records verified; throws where anything does not hold. */
export function verifyBatch(frames, publicKey) {
  const closing = new Cursor(frames.at(-1));
  if (closing.u8() !== 1 || closing.u8() !== 5) throw new Error("the last frame is no checkpoint");
  closing.take(32);
  const start = closing.at;
  const context = closing.take(41);
  closing.take(72); // view
  const streamId = closing.take(32);
  const epochs = closing.take(16);
  const [first, last] = [closing.u64(), closing.u64()];
  const rangeRoot = closing.take(32);
  closing.take(32 + 8 + 8); // predecessor, high water, time
  const signed = frames.at(-1).subarray(start, closing.at);
  const signature = closing.take(64);

  const lanes = new Map();
  let [records, previous] = [0, -1n];
  for (const frame of frames.slice(0, -1)) {
    const cursor = new Cursor(frame);
    if (cursor.u8() !== 1 || cursor.u8() !== 4) throw new Error("not a delivery");
    const { lane, sequence, digest } = readDelivery(cursor, context);
    if (sequence <= previous || sequence < first || sequence > last) throw new Error("protocol/record-order");
    previous = sequence;
    const open = lanes.get(lane) ?? { first: sequence, last: sequence, leaves: [] };
    open.last = sequence;
    open.leaves.push(hash(DOMAIN.leaf, digest));
    lanes.set(lane, open);
    records += 1;
  }

  if (!ed25519.verify(signature, hash(DOMAIN.checkpoint, signed), publicKey, { zip215: false })) {
    throw new Error("verify/signature");
  }

  let root;
  for (let left = closing.u32(); left > 0; left--) {
    const lane = closing.take(32);
    const payload = closing.u8() === 1 ? closing.take(52) : undefined;
    const bitmap = closing.take(32);
    const siblings = Array.from({ length: closing.u32() }, () => closing.take(32));
    const leaf = payload && hash(DOMAIN.payload, lane, payload);
    const folded = fold(lane, leaf, bitmap, siblings);
    if (!equal((root ??= folded), folded)) throw new Error("verify/proof-disagreement");
    const open = lanes.get(hex(lane));
    if (!payload !== !open) throw new Error("verify/lane-count");
    if (!payload) continue;
    const committed = new Cursor(payload);
    const subRoot = committed.take(32);
    if (committed.u32() !== open.leaves.length) throw new Error("verify/lane-count");
    if (committed.u64() !== open.first || committed.u64() !== open.last) throw new Error("verify/lane-range");
    if (!equal(merkleRoot(open.leaves), subRoot)) throw new Error("verify/lane-root");
  }
  const range = new Uint8Array(20);
  const view = new DataView(range.buffer);
  view.setBigUint64(0, first);
  view.setBigUint64(8, last);
  view.setUint32(16, Number(last - first + 1n));
  if (!equal(hash(DOMAIN.range, context, streamId, epochs, range, root), rangeRoot)) throw new Error("verify/range-root");
  return records;
}
