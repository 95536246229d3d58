/** What an application sees of a stream. Every u64 is a `bigint`, every id 64 lower-case hex digits, every time in milliseconds. */

/** What a caller should do about an error (CIP-39 §17 separates codes by remedy). */
export type Remedy = "halt" | "retry" | "re-enter-at-boundary" | "split-scope" | "fix-request" | "surface";

/**
 * What was really verified about an item, never more than its subscription's mode allows.
 *
 * - `lane-set`: the signed checkpoint commits exactly these records of this lane (CIP-39 §12.2.1). It says nothing of other lanes.
 * - `full-batch`: the whole batch was recomputed, every lane, every sequence (CIP-39 §12.2).
 * - `transition`: the provider signed this change of broker epoch, and it follows our history (CIP-39 §12.1).
 */
export type Assurance = "lane-set" | "full-batch" | "transition";

/** A verified record, durably stored with its position before it was handed out. */
export interface RecordItem {
  kind: "record";
  /** The local number of the item in its subscription, ascending: what `after` takes. */
  item: bigint;
  brokerEpoch: bigint;
  /** The sequence in the broker epoch, over all lanes. */
  sequence: bigint;
  /** The digest of the checkpoint that covers it. */
  checkpoint: string;
  lane: string;
  messageId: string;
  createdAtMs: bigint;
  expiresAtMs: bigint;
  payload: Uint8Array;
  assurance: "lane-set" | "full-batch";
}

/** A verified change of broker epoch. After a `void` one, operations above `lastDurableSequence` are to be sent again. */
export interface TransitionItem {
  kind: "transition";
  item: bigint;
  transition: "clean" | "void";
  fromEpoch: bigint | null;
  toEpoch: bigint;
  digest: string;
  lastDurableCheckpoint: string;
  lastDurableSequence: bigint | null;
  /** Absent when a crashed provider does not know what it emitted. */
  lastProvisionalSequence: bigint | null;
  assurance: "transition";
}

export type Item = RecordItem | TransitionItem;

/** The durable position of a subscription: it moves in the same transaction as its rows, or not at all. */
export interface Boundary {
  brokerEpoch: bigint | null;
  sequence: bigint | null;
  /** The digest of the last verified checkpoint or adopted transition. */
  checkpoint: string | null;
  /** The last item stored; 0 when there is none. */
  lastItem: bigint;
  revision: bigint;
  /** What the chain of checkpoints begins from: the provider's word at the first subscription. */
  anchor: "provider";
}

/** Which lanes, verified how. `"all"` needs `"full-stream"` (CIP-39 §13.1). */
export type SubscriptionSpec =
  | { lanes: readonly string[]; verification: "scoped-proofs" | "full-stream" }
  | { lanes: "all"; verification: "full-stream" };

/** A record to append. */
export interface AppendRecord {
  lane: string;
  payload: Uint8Array;
  /** 64 hex digits; random when absent. Keep one to recognise your own record, and to send it again after a void. */
  messageId?: string;
  expiresAtMs?: bigint;
}

/** A provisional acknowledgement: the record is not durable until a checkpoint covers it, that is, until it arrives as an item. */
export interface AppendResult {
  brokerEpoch: bigint;
  sequence: bigint;
  durable: false;
  watermark: { brokerEpoch: bigint; lastDurableSequence: bigint | null };
}

/** A refusal, as data. */
export interface Failure {
  /** `plane/reason`, stable. */
  code: string;
  remedy: string;
  /** Where the rule is written, for instance `CIP-39 §12.2.1`. */
  rule: string;
  meaning: string;
  atMs: number;
}

export interface SubscriptionStatus {
  key: string;
  lanes: readonly string[] | "all";
  verification: string;
  state: "opening" | "live" | "re-entering" | "failed" | "ended";
  boundary: Boundary | null;
  /** Records that came and wait for their checkpoint. They are in no database yet. */
  waiting: number;
  verifiedRecords: bigint;
  verifiedBatches: bigint;
  /** The peer's claim, not ours. */
  durableWatermark: bigint | null;
  failure: Failure | null;
}

export interface Status {
  connection: "idle" | "connecting" | "open" | "waiting" | "closed";
  /** What frames travel over, while `connection` is `open`. */
  transport: "web-socket" | "long-poll" | null;
  /** When the next attempt is due, while `connection` is `waiting`. */
  retryAtMs: number | null;
  storage: "ready" | "blocked" | "quota" | "evicted" | "recovering" | "memory";
  subscriptions: readonly SubscriptionStatus[];
}

/** A batch was verified and is durable. */
export interface BatchEvent {
  type: "batch";
  key: string;
  /** The digest of its checkpoint receipt. */
  checkpoint: string;
  brokerEpoch: bigint;
  firstSequence: bigint;
  lastSequence: bigint;
  /** How many records of it are ours. */
  records: number;
  laneMapRoot: string;
  servedAtHeight: bigint;
  assurance: string;
  committedAtMs: bigint;
  /** The Ed25519 key that the checkpoint's signature was verified with, where the client says it. */
  signingKey?: string;
}

/** A change of broker epoch was verified and is durable. */
export interface TransitionEvent {
  type: "transition";
  key: string;
  transition: "clean" | "void";
  fromEpoch: bigint | null;
  toEpoch: bigint;
  /** How many records waited here without a checkpoint and were dropped. */
  discarded: number;
}

/** Something was refused. `key` names the subscription that it ended or held up, if it was one. */
export interface FailureEvent {
  type: "failure";
  key: string | null;
  failure: Failure;
}

/** `owner`: this tab holds the connection. `follower`: another one of this origin does, and this one reads the same database. */
export type Role = "owner" | "follower";

/** Signs 32-byte digests as the holder of the grant: a non-extractable WebCrypto key, or a function of your own. */
export type Signer = CryptoKey | ((digest: Uint8Array) => Promise<Uint8Array>);

export interface ConnectOptions {
  /** The base URL of the chain node that the stream and the provider are read from. */
  node: string | URL;
  /** `CbqsSigningContextV1` in hex: which chain this is about. */
  context: string;
  streamId: string;
  grant: Uint8Array;
  signer: Signer;
  /** The name of the IndexedDB database. Default `remuda`. */
  database?: string;
  /** `memory` keeps nothing, and is never chosen for you. Default `durable`. */
  storage?: "durable" | "memory";
  /** Overrides the registered endpoints, of one transport or of both (`ws:`, `http:`); only with `allowLoopback`. */
  endpoint?: string | URL | (string | URL)[];
  /** Opts in to `http://` and `ws://` on loopback, for development. Default false. */
  allowLoopback?: boolean;
}
