/** What an audit answers (`RESOLUTIONS.md` §8). Counts are numbers: a file has less than 2^32 items. */

/** `undecodable`: the file is no audit file, and its only finding says where. */
export type AuditVerdict = "consistent" | "violations" | "undecodable";

/** An item that failed, or a chain read (`item` is `null`). */
export interface AuditFinding {
  item: number | null;
  /** `plane/reason`, stable. */
  code: string;
  /** Where the rule is written, for instance `CIP-39 §12.2.1`. */
  rule: string;
  detail: string;
}

/** Two items whose objects contradict each other: anyone can check them from the two alone. */
export interface AuditEvidence {
  code: string;
  items: [number, number];
}

/** What became of one subscription's deliveries. */
export interface AuditAssurance {
  /** 64 hex digits. */
  subscription: string;
  mode: "none" | "scoped" | "full";
  /** Records under a verified checkpoint, or with a receipt judged good. */
  verified: number;
  /** Every other delivery that named it. */
  unverified: number;
}

export interface AuditReport {
  verdict: AuditVerdict;
  items: number;
  /** Deliveries that decoded. */
  records: number;
  /** Provider signatures that verified. */
  signatures: number;
  findings: AuditFinding[];
  evidence: AuditEvidence[];
  assurance: AuditAssurance[];
  /** What no audit of a file can check, and what this one could not. */
  not_checked: string[];
}

export interface AuditProgress {
  /** Bytes judged, or waiting for the rest of their item. */
  bytes: bigint;
  /** How long the file is; `null` for a stream. */
  totalBytes: bigint | null;
  items: number;
  /** Items that the file says it has; `null` before its head is read. */
  declaredItems: number | null;
}

export interface AuditOptions {
  /** Ends the audit: what `audit` returned rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Called after each chunk, at most 1 MiB. */
  onProgress?: (progress: AuditProgress) => void;
}

/** Two provider objects to compare, in canonical bytes. */
export interface EvidencePair {
  /** `CbqsSigningContextV1`. */
  context: Uint8Array;
  /** 32 bytes. */
  streamId: Uint8Array;
  /** `SigningPublicKey`, 33 bytes: the stream's provider key. */
  providerKey: Uint8Array;
  /** `HeldObjectV1`: a tag, then the object. */
  a: Uint8Array;
  b: Uint8Array;
}
