/** What an application sees of a Watchtower feed (CIP-7). */
import type { CommonStatus, DialOptions, Judgement, SourceStanding, StorageOptions } from "./types.js";

/** A stream's name: a text, or 32 bytes. */
export type Stream = string | Uint8Array;

/** An entry of the key schedule. */
export interface KeyEntry {
  /** Contiguous from 1. */
  signingKeyId: bigint;
  /** An Ed25519 public key, 64 hex digits. */
  pubkey: string;
  /** The first sequence that it signs. */
  effectiveSequence: bigint;
}

/** The filter language (CIP-7): forms `all`, `any`, `not` over predicates, at most 4 deep and 16 predicates. */
export type Filter =
  | { all: Filter[] }
  | { any: Filter[] }
  | { not: Filter }
  | { field: string; op: "eq" | "ne"; value: string | boolean | number }
  | { field: string; op: "in" | "nin"; value: (string | boolean | number)[] }
  | { field: string; op: "gte" | "lte"; value: number }
  | { field: string; op: "exists"; value: boolean };

/** The key that opens the payloads of an epoch, 32 bytes. */
export interface ContentKey {
  keyEpoch: bigint;
  key: Uint8Array;
}

/** What to do where the position is no longer retained: go on with the oldest message, or at the head. */
export type TooOldChoice = "resume" | "reattach";

export interface FeedOptions extends StorageOptions, DialOptions {
  stream: Stream;
  /** Where to begin when nothing is stored: the oldest that is retained (default), only what is new, or after a sequence. */
  start?: "floor" | "head" | bigint;
  /** The key schedule as far as you trust it from elsewhere. Without one the actor's first word is taken, and held to it. */
  schedule?: readonly KeyEntry[];
  filter?: Filter;
  /** Content keys that are there already. */
  keys?: readonly ContentKey[];
  /** `push-with-pull-fallback`: the application hands in what reaches it with `push`; the rest is pulled. Default `pull`. */
  mode?: "pull" | "push-with-pull-fallback";
  /** Between pulls that bring nothing: doubles from one to the other, with jitter. Default 1 to 30 seconds. */
  cadence?: { leastMs: number; mostMs: number };
  /** Default: the event `cursor-too-old`, and then `choose`. */
  whenTooOld?: TooOldChoice;
}

/** A verified message: the publisher's key in force at its sequence signed it, in its place. */
export interface FeedMessage {
  kind: "message";
  item: bigint;
  sequence: bigint;
  /** By the publisher's word. */
  timestampMs: number;
  /** `kind` of the message. */
  messageKind: string;
  contentType: string;
  tags: Record<string, string | boolean | number>;
  /** Opened where it was sealed; null where it does not open, as `unopened` says. */
  payload: Uint8Array | null;
  unopened: "watchtower/aead" | null;
  keyEpoch: bigint | null;
  signingKeyId: bigint;
  /** The message as it was signed, deterministic CBOR. */
  signed: Uint8Array;
}

/** Sequences that were lost, both ends included: they were no longer retained. */
export interface FeedGap {
  kind: "gap";
  item: bigint;
  first: bigint;
  last: bigint;
}

export type FeedItem = FeedMessage | FeedGap;

/** Both by the actor's word. */
export interface CursorTooOld {
  floorSequence: bigint;
  headSequence: bigint;
}

export interface FeedStatus extends CommonStatus {
  /** `idle`: another tab follows it. `awaiting-key`: messages wait for a content key, in order. */
  state: "idle" | "following" | "awaiting-key" | "cursor-too-old" | "failed" | "closed";
  /** The last sequence that was verified, stored or not. */
  verifiedSequence: bigint;
  /** Messages that wait for a content key. */
  pending: number;
  /** The epochs whose keys are waited for. */
  missingEpochs: bigint[];
  verified: bigint;
  /** Of those, what the filter did not want. */
  filtered: bigint;
  repeats: bigint;
  pushesDropped: bigint;
  requests: bigint;
  nextPullAtMs: number | null;
  /** Why the last request had no answer; null once one has. */
  unreachable: string | null;
  cursorTooOld: CursorTooOld | null;
}

export interface FeedStanding extends SourceStanding {
  /** The last sequence behind which everything is stored, reported lost or filtered; null before the first. */
  lastSequence: bigint | null;
}

/** What is to be published. */
export interface Draft {
  kind: string;
  payload: Uint8Array;
  /** Default `application/json`. */
  contentType?: string;
  tags?: Record<string, string | boolean | number>;
  /** Default: now. */
  timestampMs?: bigint;
  /** Seals the payload under the content key of an epoch. */
  seal?: ContentKey;
}

/** A signed message. */
export interface Published {
  sequence: bigint;
  /** Deterministic CBOR of the `StreamMessage`: what the stream's actor is submitted. */
  message: Uint8Array;
}

/** An Ed25519 key of WebCrypto, or a function that signs with pure Ed25519: 64 bytes. */
export type MessageSigner = CryptoKey | ((bytes: Uint8Array) => Promise<Uint8Array>);

export interface FeedPublisherOptions {
  stream: Stream;
  /** The last sequence that is published; 0 before the first. */
  headSequence: bigint;
  signingKeyId: bigint;
  /** The public key of `signer`, 64 hex digits. */
  publicKey: string;
  signer: MessageSigner;
}

/** Names one wrapping of one epoch's content key. */
export interface ContentKeyIdentity {
  chainId: bigint;
  stream: Stream;
  keyEpoch: bigint;
  /** Starts at 1. */
  generation: bigint;
}

/** What a wrapped content key is bound to. */
export interface WrappedDekAad extends ContentKeyIdentity {
  committeeEpoch: bigint;
  /** Of the stream's own committee; absent for the default one. */
  committeeOverrideHash?: string;
  releaseKeyMaterialHash: string;
}

/** A {@link Judgement}, and the stream that it is about; null where the file cannot be read. */
export interface FeedJudgement extends Judgement {
  stream: Stream | null;
}
