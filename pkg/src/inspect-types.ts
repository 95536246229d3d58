/** What an audit file holds (`RESOLUTIONS.md` §8), as it is written there: none of it is judged. Digests and ids are 64 hex digits. */

/** Rows of the file, the first 4,096 of them, and how many there are. */
export interface Listed<Row> {
  total: number;
  rows: Row[];
}

/** What an item is. `undecodable` is a server frame that does not decode. */
export type ItemKind =
  | "subscription"
  | "session"
  | "response"
  | "record"
  | "checkpoint"
  | "transition"
  | "error"
  | "group"
  | "snapshot"
  | "undecodable"
  | "held-receipt"
  | "held-checkpoint"
  | "held-transition"
  | "held-group-receipt"
  | "held-floor"
  | "held-key-batch";

export interface ChainRead {
  height: bigint;
  block: string;
  stream: { class: "Standard" | "Fast"; status: string; purpose: string; encrypted: boolean; provider: string; providerKey: string } | null;
}

export interface OutlineHead {
  chainId: bigint;
  chainInstance: string;
  stream: string;
  /** How many chain reads there are; `chain` has the first 256. */
  chainReads: number;
  chain: ChainRead[];
  /** Of the head, with the count of items. */
  bytes: number;
  declaredItems: number;
}

interface Link {
  item: number;
  digest: string;
  /** The digest that it names as the one before it. */
  previous: string;
  atMs: bigint;
  /** Of the chain read that it says it was served at. */
  height: bigint;
}

export interface CheckpointLink extends Link {
  kind: "checkpoint";
  epoch: bigint;
  first: bigint;
  last: bigint;
  records: number;
  /** To which it was sent; null for one that was held elsewhere. */
  subscription: string | null;
}

export interface TransitionLink extends Link {
  kind: "transition";
  transition: "clean" | "void";
  /** Null for the one that began the stream. */
  fromEpoch: bigint | null;
  /** The epoch that it begins. */
  epoch: bigint;
  lastDurable: bigint | null;
  lastProvisional: bigint | null;
}

/** What was retained at some time, by the provider's word. */
export interface FloorLink extends Link {
  kind: "floor";
  of: "epoch" | "stream" | "lane" | "group";
  epoch: bigint | null;
  /** The first sequence that is retained; of a group, of its queue. */
  first: bigint;
  lane: string | null;
  group: string | null;
}

export type TimelineLink = CheckpointLink | TransitionLink | FloorLink;

/** An append receipt of a standard stream: a link of two chains. */
export interface ReceiptRow {
  item: number;
  digest: string;
  lane: string;
  sequence: bigint;
  recordKind: string;
  previousInStream: string;
  previousInLane: string;
  atMs: bigint;
}

export interface GroupReceiptRow {
  item: number;
  digest: string;
  previous: string;
  /** In the specification's words, for instance `LeaseIssue`. */
  action: string;
  /** Of the record; null for what is done to the group itself. */
  sequence: bigint | null;
  atMs: bigint;
}

export interface GroupHistory {
  lane: string;
  group: string;
  receipts: Listed<GroupReceiptRow>;
}

export interface LaneRow {
  lane: string;
  /** Deliveries that name it. */
  records: number;
  first: bigint | null;
  last: bigint | null;
  /** Proofs that say it is in a batch, and that it is not. */
  present: number;
  absent: number;
}

export interface SubscriptionRow {
  item: number;
  subscription: string;
  source: "fast" | "replay" | "group" | "dead-letters";
  mode: "none" | "scoped" | "full";
  /** How many lanes; null for all of them. */
  lanes: number | null;
  after: bigint | null;
}

export interface SnapshotRow {
  item: number;
  /** Null for a snapshot of the whole stream. */
  lane: string | null;
  bytes: number;
  /** What the manifest names, and what the bytes in the file hash to. */
  hash: string;
  computedHash: string;
  throughSequence: bigint | null;
  throughCheckpoint: string | null;
  generation: bigint;
  /** The receipt that the manifest names, and the one that is bundled. */
  anchor: string;
  receiptDigest: string;
  receiptKind: "checkpoint" | "receipt";
  /** The signing-key id of the application key in the file. */
  signer: string;
}

export interface Outline {
  /** Null where not even the head can be read. */
  head: OutlineHead | null;
  items: number;
  /** Why the file cannot be read to its end, and at which item. */
  fault: { item: number | null; code: string } | null;
  /** The place of every `indexStep`-th item, for {@link ItemRow}s. */
  indexStep: number;
  index: number[];
  kinds: Partial<Record<ItemKind, number>>;
  /** In file order; an object that comes twice is there once. */
  timeline: Listed<TimelineLink>;
  receipts: Listed<ReceiptRow>;
  subscriptions: Listed<SubscriptionRow>;
  snapshots: Listed<SnapshotRow>;
  lanes: LaneRow[];
  groups: GroupHistory[];
  /** The checkpoint whose lane proofs show the most, of presence and of absence; null where none has any. */
  checkpointWithProofs: number | null;
  /** The first error frame that names a subscription: it ends it, and no audit judges what comes later for it. */
  firstEnd: number | null;
}

/** Where an item is, in bytes from the start of the file. */
export interface ItemRow {
  item: number;
  offset: number;
  length: number;
  kind: ItemKind;
}

/** A level of a path on which something is beside it. On all others is an empty subtree. */
export interface ProofLevel {
  /** From 0 at the root to 255. */
  depth: number;
  /** 0: the lane is on the left of this level, 1: on the right. */
  goes: 0 | 1;
  /** The node of the path below this level, and the one beside it. */
  node: string;
  sibling: string;
}

/** The proof of one lane in the map of a batch (CIP-39 §12.2): that it is there with what it carried, or that it is not. */
export interface LaneProof {
  lane: string;
  /** Null: it claims that the lane is absent. */
  payload: { records: number; first: bigint; last: bigint; root: string } | null;
  leaf: string | null;
  /** From the root down. */
  levels: ProofLevel[];
  /** What it folds to; null where it is no proof. */
  mapRoot: string | null;
  /** Whether that, with the range of the checkpoint, is the root that the checkpoint names. Who signed it is not judged. */
  isSigned: boolean;
}

export interface Description {
  kind: ItemKind;
  /** Field by field, in the names of the specification, at most 16,384 characters. */
  text: string;
  /** The code of why a server frame does not decode. */
  undecodable: string | null;
  /** The signed provider objects in it, each field by field. */
  objects: { digest: string; text: string }[];
  proofs: LaneProof[];
}

export interface OutlineOptions {
  signal?: AbortSignal;
  /** Called after each chunk, at most 1 MiB. */
  onProgress?: (progress: { bytes: bigint; totalBytes: bigint | null; items: number }) => void;
}
