/** What every source beside the streams shares. Every u64 is a `bigint`, every id lower-case hex, every time in milliseconds. */
import type { Failure } from "../types.js";

/** Where the items of a source are kept. */
export interface StorageOptions {
  /** The IndexedDB database; the same as a client's, or its own. Default `remuda`. */
  database?: string;
  /** `memory` keeps nothing beyond this page, and has to be asked for. Default `durable`. */
  storage?: "durable" | "memory";
}

/** Where a source is dialled. */
export interface DialOptions {
  endpoint: string | URL;
  /** Allows `http:` and `ws:` on loopback, for development. */
  allowLoopback?: boolean;
}

/** What every status says. */
export interface CommonStatus {
  state: string;
  storage: "ready" | "evicted" | "memory";
  /** Why nothing more comes by itself; null otherwise. */
  failure: Failure | null;
}

/** Where a source durably stands. */
export interface SourceStanding {
  /** The last item stored; 0 when there is none. */
  lastItem: bigint;
}

export interface ItemsOptions {
  /** Hand out items after this one. Default 0: everything that is stored, then what comes. */
  after?: bigint;
  /** Ends the iterator with its reason. */
  signal?: AbortSignal;
}

/** What the judgement over a file of evidence came to. */
export interface Judgement {
  /** Whether the author signed both, and they exclude each other. */
  contradicts: boolean;
  /** Of the rule that the two, or one of them, break; null where there is none. */
  code: string | null;
}
