/** What the page and its worker say to each other. */
import type { AuditReport } from "remuda/verify";
import type { Description, ItemRow, Outline } from "remuda/inspect";

/** Which rules a file is judged by. */
export type Family = "audit" | "feed" | "broadcast";

/** A report, and what the file is of. */
export interface Judged {
  family: Family;
  report: AuditReport;
  /** Whom a file of evidence is about, by its own words. */
  about: [name: string, value: string][];
  elapsedMs: number;
}

/** An item, and its bytes: all of a short one, the start of a long one. */
export interface ShownItem {
  row: ItemRow;
  bytes: Uint8Array;
  described: Description | null;
}

export interface Progress {
  bytes: number;
  totalBytes: number;
  items: number;
  declaredItems: number | null;
}

export interface Calls {
  judge: { in: { file: Blob }; out: Judged };
  outline: { in: Record<never, never>; out: Outline };
  items: { in: { first: number; count: number }; out: ItemRow[] };
  item: { in: { item: number }; out: ShownItem | null };
  evidence: { in: { items: [number, number] }; out: Uint8Array | null };
}

export type Name = keyof Calls;

export type Request = { [N in Name]: { id: number; name: N; given: Calls[N]["in"] } }[Name];

export type Answer =
  | { id: number; kind: "answer"; answer: unknown }
  | { id: number; kind: "progress"; progress: Progress }
  | { id: number; kind: "failure"; code: string; message: string };
