/** The messages between a page and the worker of one source. All are structured clones. */
import type { ErrorData } from "../error.js";
import type { Role } from "../types.js";
import type { SourceEvent, SourceStatus } from "./glue.js";

/** Which class of the WebAssembly a source is. */
export type SourceKind = "Feed" | "Subscriber" | "Publisher";

/** What a page may call of each, besides opening and closing. */
export const METHODS = {
  Feed: ["read", "standing", "giveKey", "choose", "retry", "push"],
  Subscriber: ["read", "standing"],
  Publisher: ["standing", "publish"],
} as const satisfies Record<SourceKind, readonly string[]>;

export interface OpenMessage {
  type: "open";
  id: number;
  kind: SourceKind;
  /** With `hasSigner`, signatures are asked of the page. */
  options: { database: string; storage: "durable" | "memory"; hasSigner: boolean } & Record<string, unknown>;
}

export type ToFeedWorker =
  | OpenMessage
  | { type: "call"; id: number; method: string; arguments: unknown[] }
  | { type: "close"; id: number }
  | { type: "signed"; id: number; signature: Uint8Array }
  | { type: "unsigned"; id: number; error: ErrorData };

/** What opening answers. */
export interface Opened {
  key: string;
  role: Role;
  status: SourceStatus;
  /** Of a publisher. */
  owner: string | null;
}

export type FromFeedWorker =
  | { type: "result"; id: number; value: unknown }
  | { type: "error"; id: number; error: ErrorData }
  | { type: "event"; event: SourceEvent }
  | { type: "sign"; id: number; message: Uint8Array }
  | { type: "role"; role: Role }
  /** The source ended and will not go on: its database failed, or its code trapped. */
  | { type: "ended"; error: ErrorData };

/** The holder of this lock is the one that runs the source. */
export function sourceLockName(database: string, key: string): string {
  return `remuda:${database}:source:${key}`;
}
