/** What an application sees of a BPS-lite broadcast (SWIP-74, revision 8). */
import type { CommonStatus, DialOptions, Judgement, SourceStanding, StorageOptions } from "./types.js";
import type { Failure } from "../types.js";

/** A feed topic and its one author. */
export interface Cohort {
  /** 64 hex digits. */
  topic: string;
  /** The author's address, 40 hex digits. */
  owner: string;
}

interface BrokerOptions extends StorageOptions, DialOptions {
  /**
   * The overlay address of the broker that the node at `endpoint` bridges to, 64 hex digits. Without one `endpoint` is a broker's own,
   * which takes the protobuf frames directly.
   */
  broker?: string;
}

export interface SubscriberOptions extends BrokerOptions, Cohort {
  /** Who we are on the stream, 40 hex digits: any address but the owner's. Default: random. */
  identity?: string;
  /** The last index that is known, where nothing is stored. */
  cursor?: bigint;
}

/** An address signs as its owner: 65 bytes `r || s || v` over an Ethereum message of 32 bytes, as a wallet's `personal_sign`. */
export type OwnerSigner = (message: Uint8Array) => Promise<Uint8Array>;

export interface PublisherOptions extends BrokerOptions {
  topic: string;
  /** The owner's secret key, 32 bytes; or `owner` and a `signer` that has it. */
  key: Uint8Array | { owner: string; signer: OwnerSigner };
  /** The lowest index that was never used, where a publisher without this database had used some. The stored one counts when it is higher. */
  nextIndex?: bigint;
}

/** A verified update: the owner signed it for this index. */
export interface Update {
  item: bigint;
  index: bigint;
  payload: Uint8Array;
  /** What is missing before it, both ends included: it is reported, never filled. */
  gap: { first: bigint; last: bigint } | null;
  /** The broadcast as it was signed, protobuf: whoever has it can verify it. */
  signed: Uint8Array;
}

interface LineStatus extends CommonStatus {
  /** `idle`: another tab has the connection. */
  state: "idle" | "connecting" | "open" | "waiting" | "failed" | "closed";
  retryAtMs: number | null;
  /** Why the last connection ended; null once one has lasted. */
  lastEnd: Failure | null;
}

export interface SubscriberStatus extends LineStatus {
  /** The last index that was delivered. */
  cursor: bigint | null;
  verified: bigint;
  /** Dropped without being a violation. */
  unknownKind: bigint;
  replayedIndex: bigint;
  claims: bigint;
}

export interface PublisherStatus extends LineStatus {
  /** Updates that wait to be sent. */
  queued: number;
  /** The lowest index that was never used. */
  nextIndex: bigint;
}

export interface CohortStanding extends SourceStanding {
  /** Of a subscriber the last stored index, of a publisher the lowest that was never used; null before the first. */
  index: bigint | null;
}

/** A {@link Judgement}, and whom it is about; null where the file cannot be read. */
export interface CohortJudgement extends Judgement {
  topic: string | null;
  owner: string | null;
}
