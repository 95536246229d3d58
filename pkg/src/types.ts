/** What an application sees of a stream. Every u64 is a `bigint`, every id 64 lower-case hex digits, every time in milliseconds. */
import type { MemberKey } from "./agreement.js";

import type { Place } from "./snapshots.js";

/** What a caller should do about an error (CIP-39 §17 separates codes by remedy). */
export type Remedy = "halt" | "retry" | "re-enter-at-boundary" | "split-scope" | "fix-request" | "surface";

/**
 * What was really verified about an item, never more than its subscription's mode allows.
 *
 * - `lane-set`: the signed checkpoint commits exactly these records of this lane (CIP-39 §12.2.1). It says nothing of other lanes.
 * - `full-batch`: the whole batch was recomputed, every lane, every sequence (CIP-39 §12.2).
 * - `receipt`: the provider signed a receipt for this record, and it follows the receipt before it: in its lane, and in the whole stream where
 *   every lane is subscribed (CIP-39 §14.1).
 * - `transition`: the provider signed this change of broker epoch, and it follows our history (CIP-39 §12.1).
 */
export type Assurance = "lane-set" | "full-batch" | "receipt" | "transition";

/** What records of both classes have. Each was durably stored with its position before it was handed out. */
export interface RecordFields {
  /** The local number of the item in its subscription, ascending: what `after` takes. */
  item: bigint;
  /** Who wrote it, and what: members write `application` records, the provider the others. */
  record: "application" | "lane-created" | "lane-closed" | "key-batch-header" | "key-envelope";
  lane: string;
  messageId: string;
  createdAtMs: bigint;
  expiresAtMs: bigint;
  encryptionGeneration: bigint;
  /** The plaintext; null for as long as `sealed` says why there is none. */
  payload: Uint8Array | null;
  /** `encryption/no-key`: readable once its key is added. `verify/aead`: it does not open under the key of its generation. */
  sealed: "encryption/no-key" | "verify/aead" | null;
}

/** A verified record of a fast stream. */
export interface RecordItem extends RecordFields {
  kind: "record";
  brokerEpoch: bigint;
  /** The sequence in the broker epoch, over all lanes. */
  sequence: bigint;
  /** The digest of the checkpoint that covers it. */
  checkpoint: string;
  assurance: "lane-set" | "full-batch";
}

/** A verified record of a standard stream. */
export interface StandardRecordItem extends RecordFields {
  kind: "standard-record";
  /** The sequence in the stream, over all lanes. */
  sequence: bigint;
  /** The digest of its receipt. */
  receipt: string;
  assurance: "receipt";
}

/** A verified change of broker epoch. After a `void` one, what was above `lastDurableSequence` is void; own appends are sent again by the outbox. */
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

/** A hole in the history: what lay here was not seen, and no snapshot stands for it. It is never presented as complete. */
export interface GapItem {
  kind: "gap";
  item: bigint;
  /** The last record before the hole; null where there was none. */
  after: Place | null;
  /** The first record that may come behind it. */
  before: Place;
  /** `retention-anchor`: the provider signed that what lay behind its floor is gone. `none`: it merely went on further along. */
  assurance: "retention-anchor" | "none";
}

/** Snapshots that stand for everything before them: an application that reads items from the start begins again with what they hold. */
export interface SnapshotItem {
  kind: "snapshot";
  item: bigint;
  snapshots: readonly { lane: string | null; reference: Uint8Array; hash: string; encryptionGeneration: bigint }[];
  /** Bound to an authentic receipt and signed by an authorized key. What they say is the word of whoever holds that key. */
  assurance: "snapshot";
}

export type Item = RecordItem | StandardRecordItem | TransitionItem | GapItem | SnapshotItem;

/** The durable position of a subscription: it moves in the same transaction as its rows, or not at all. */
export interface Boundary {
  brokerEpoch: bigint | null;
  sequence: bigint | null;
  /** The digest of the last verified checkpoint or adopted transition. */
  checkpoint: string | null;
  /** The last item stored; 0 when there is none. */
  lastItem: bigint;
  revision: bigint;
  /** What the history begins from: the provider's word at the first subscription, the stream's first record, a signed floor behind a gap, or a snapshot. */
  anchor: "provider" | "genesis" | "retention" | "snapshot";
}

/** A record of a fast stream as it came: in order within its broker epoch, and nothing of it proven. A subscription confirms it, or does not. */
export interface PaintedRecord extends Omit<RecordFields, "item"> {
  kind: "painted-record";
  brokerEpoch: bigint;
  sequence: bigint;
  assurance: "none";
}

/** Which lanes are painted as they come. */
export interface TailSpec {
  lanes: readonly string[] | "all";
  verification: "none";
}

/** What a subscription was sent, as an audit file: `audit` of `remuda/verify`, and `npx remuda audit`, judge it again. */
export interface Recording {
  file: Uint8Array;
  items: number;
  /** False when something was left out: for want of room, or because the subscription was left meanwhile. */
  isComplete: boolean;
}

/** Which lanes, verified how (CIP-39 §13.1): by proofs or whole batches on a fast stream, by receipts on a standard one. */
export type SubscriptionSpec =
  | { lanes: readonly string[]; verification: "scoped-proofs" | "receipts" }
  | { lanes: "all"; verification: "full-stream" | "receipts" };

/** A record to append. */
export interface AppendRecord {
  lane: string;
  payload: Uint8Array;
  /** 64 hex digits; random when absent. New for every message: it names this one over every retry (CIP-39 §11.1). */
  messageId?: string;
  expiresAtMs?: bigint;
}

/** An acknowledgement of a fast stream: the provider has the record, and may still lose it (CIP-39 §12). */
export interface ProvisionalAppend {
  brokerEpoch: bigint;
  sequence: bigint;
  durable: false;
}

/** A record that is durable at the provider, by its signature. */
export interface DurableAppend {
  /** Null on a standard stream. */
  brokerEpoch: bigint | null;
  sequence: bigint;
  durable: true;
  /** The digest of its receipt, or on a fast stream of the checkpoint that covers it. */
  evidence: string;
}

/**
 * Where an entry of the outbox stands. `queued`: it was never sent. `sent`: its outcome is not known. `provisional`: a fast stream acknowledged
 * it; a change of epoch can make it void, and then it is `queued` again, as the same bytes. `durable` and `failed` are final.
 */
export type AppendState = "queued" | "sent" | "provisional" | "durable" | "failed";

/** Why an append ended without a durable record. */
export interface AppendFailure {
  code: string;
  remedy: string;
  rule: string;
  meaning: string;
}

/** An entry of the outbox stands elsewhere, and the database holds that. */
export interface AppendEvent {
  type: "append";
  entry: bigint;
  messageId: string;
  state: AppendState;
  /** As what, from `provisional` on. */
  record: ProvisionalAppend | DurableAppend | null;
  /** Why it `failed`. */
  failure: AppendFailure | null;
}

/** An entry of the outbox: what waits, and the newest of what has ended. */
export interface OutboxEntry extends Omit<AppendEvent, "type"> {
  lane: string;
  createdAtMs: bigint;
  expiresAtMs: bigint;
  /** The plaintext; null once it is durable, and while `sealed` says why it cannot be read. */
  payload: Uint8Array | null;
  sealed: "encryption/no-key" | "verify/aead" | null;
}

/** A lane to create. Its id derives from the stream and `laneNonce`, random when absent: the same nonce is the same lane. */
export interface NewLane {
  laneNonce?: string;
  /** The hash of what the application knows of the lane; zero when absent. */
  metadataHash?: string;
}

export interface Lane {
  lane: string;
  metadataHash: string;
  status: "active" | "closed";
}

/** A lane as it is since a mutation, and the digest of the receipt of its event. */
export interface LaneMutation extends Lane {
  receipt: string;
}

/** Lanes, ascending by id, and what to ask for the next page after; null at the end. */
export interface LanePage {
  lanes: Lane[];
  nextAfter: string | null;
}

/** The key of one encryption generation (CIP-39 §9). */
export interface DataKey {
  generation: bigint;
  /** 32 bytes. */
  key: Uint8Array;
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
  /** The first sequence that the provider still has, by a signed floor that this subscription is behind: it has failed for that. */
  floor: bigint | null;
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
  /** How many appends stand where; `failed` ones are kept until they are dismissed. */
  outbox: OutboxStatus;
}

export interface OutboxStatus {
  queued: number;
  sent: number;
  provisional: number;
  failed: number;
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

/** A position goes on behind a hole, which is its last item. */
export interface GapEvent {
  type: "gap";
  key: string;
  lastItem: bigint;
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
  /** How many of our own appends were acknowledged in the epoch that ended, are void, and are sent again. */
  returned: number;
}

/** Something was refused. `key` names the subscription that it ended or held up, if it was one. */
/** Verified records of a standard stream are durable. */
export interface ReceiptsEvent {
  type: "receipts";
  key: string;
  lastSequence: bigint;
  /** The digest of the last receipt. */
  receipt: string;
  records: number;
  assurance: "receipt";
  lastItem: bigint;
}

export interface FailureEvent {
  type: "failure";
  key: string | null;
  failure: Failure;
}

/** A key batch to publish (CIP-39 §9.3): by the rotation workload of the stream's owner. */
export interface KeyBatch {
  /** The active generation, to add members to it; or the next, of which `recipients` is then the whole membership. */
  generation: bigint;
  /** The members' public keys, 32 bytes each. */
  recipients: readonly Uint8Array[];
  /** The one data key of that generation, 32 bytes. */
  dataKey: Uint8Array;
  /** Ed25519, which the stream's record names. Not extractable will do. */
  rotationKey: CryptoKey;
}

/** What became of the data key of a generation, by the key stream. Items of it that were `sealed` can be read again once it is `opened`. */
export interface KeyEvent {
  type: "key";
  /**
   * - `opened`: its key is known. Whether it is the active one, the chain says.
   * - `removed`: its batch names this member not. What was sealed up to `lastReadable` stays readable; null when nothing ever was.
   * - `not-opened`: the envelope gave no key, for what `failure` says. The following goes on.
   * - `failed`: the batches are not what they must be, or the member's key could not be used: nothing more is followed until the next start.
   */
  state: "opened" | "removed" | "not-opened" | "failed";
  generation: bigint | null;
  lastReadable: bigint | null;
  failure: Failure | null;
}

/** `owner`: this tab holds the connection. `follower`: another one of this origin does, and this one reads the same database. */
export type Role = "owner" | "follower";

/** Signs 32-byte digests as the holder of the grant: a non-extractable WebCrypto key, or a function of your own. */
export type Signer = CryptoKey | ((digest: Uint8Array) => Promise<Uint8Array>);

export interface KeyStreamOptions {
  memberKey: MemberKey;
  /** `StreamGrantV1` of the key stream, canonical bytes. */
  grant: Uint8Array;
  /** As that of {@link ConnectOptions}, for the key stream. */
  renewGrant?: () => Promise<Uint8Array>;
}

export interface ConnectOptions {
  /** The base URL of the chain node that the stream and the provider are read from; or of several, which must agree. */
  node: string | URL | readonly (string | URL)[];
  /** How many of the nodes must give the same bytes: more than half, which is the default. */
  quorum?: number;
  /** `CbqsSigningContextV1` in hex: which chain this is about. */
  context: string;
  streamId: string;
  /** `StreamGrantV1`, canonical bytes. */
  grant: Uint8Array;
  /**
   * Gives another grant: asked for before the one in force ends, and when the provider takes it no longer, one call at a time. A call that
   * throws is made again later. Without it such an end is told as a `failure`.
   */
  renewGrant?: () => Promise<Uint8Array>;
  signer: Signer;
  /** The name of the IndexedDB database. Default `remuda`. */
  database?: string;
  /** `memory` keeps nothing, and is never chosen for you. Default `durable`. */
  storage?: "durable" | "memory";
  /**
   * Says that the stream is encrypted, with the data keys that are known so far. A stream that is encrypted without it, or not although it
   * is given, is refused as `encryption/mismatch`.
   */
  dataKeys?: readonly DataKey[];
  /**
   * Follows the key stream of an encrypted stream, so that data keys come by themselves, as `key` events tell. `grant` is of the key stream,
   * with REPLAY, for the same signer. `memberKey` is what {@link memberKey} gives: its public key is what the grant of the main stream binds.
   */
  keyStream?: KeyStreamOptions;
  /** Overrides the registered endpoints, of one transport or of both (`ws:`, `http:`); only with `allowLoopback`. */
  endpoint?: string | URL | (string | URL)[];
  /** Opts in to `http://` and `ws://` on loopback, for development. Default false. */
  allowLoopback?: boolean;
}
