import { RemudaError } from "./error.js";

/** Where a record is: by lineage and sequence in a fast stream, by sequence in a standard one. */
export interface Place {
  brokerEpoch: bigint | null;
  sequence: bigint;
}

/** One snapshot with its manifest, as it is published and fetched. */
export interface Snapshot {
  /** The signed manifest, canonical. */
  manifest: Uint8Array;
  /** The Ed25519 key that signed it, as 64 hexadecimal digits. */
  applicationKey: string;
  /** The stored snapshot, exactly. */
  bytes: Uint8Array;
  /** The lane that it is looked up for; null for the whole stream. */
  lane: string | null;
  /** Where it is stored: at most 4,096 bytes. */
  reference: Uint8Array;
  /** The data-key generation that `bytes` are encrypted under; 0 in the clear. */
  encryptionGeneration: bigint;
}

/** Snapshots that are hydrated together: one of the whole stream, or one for each lane of a subscription, all bound to one receipt. */
export interface SnapshotGeneration {
  /** The provider receipt that is published with them, canonical. Without it no reader can verify them. */
  receipt: Uint8Array;
  snapshots: readonly Snapshot[];
}

/** A generation, and whom the reader lets sign one. */
export interface ExpectedGeneration extends SnapshotGeneration {
  /** From the application's own state, never from where the snapshots came from. */
  authorizedKeys: readonly string[];
}

/** What a position begins with. */
export interface Hydrated {
  key: string;
  /** The bytes of each snapshot, in the order in which they were given: these were hashed, so hydrate from these. */
  contents: readonly Uint8Array[];
  /** The checks of CIP-39 §15 that each of them passed, in order. */
  checks: readonly string[];
  /** The item that names them: go on after it. */
  lastItem: bigint;
}

/** A snapshot that is stored already, and is to be published. */
export type SnapshotPart = Pick<Snapshot, "bytes" | "lane" | "reference" | "encryptionGeneration">;

/** Manifests that are not signed yet. */
export interface SnapshotDraft {
  receipt: Uint8Array;
  manifests: readonly { bytes: Uint8Array; digest: Uint8Array }[];
}

/** A key that signs snapshots for an application: its public half as 64 hexadecimal digits, and what signs 32 bytes with it. */
export interface SnapshotSigner {
  publicKey: string;
  sign(digest: Uint8Array): Promise<Uint8Array>;
}

const SIGNATURE_BYTES = 64;

/** Signs a draft. The signature is the last field of a manifest (CIP-39 §15). */
export async function signDraft(draft: SnapshotDraft, parts: readonly SnapshotPart[], signer: SnapshotSigner): Promise<SnapshotGeneration> {
  const sign = async ({ bytes: manifest, digest }: SnapshotDraft["manifests"][number], part: SnapshotPart): Promise<Snapshot> => {
    const signature = await signer.sign(digest);
    if (signature.length !== SIGNATURE_BYTES) throw RemudaError.client("client/invalid-argument", "a signature has 64 bytes");
    const signed = manifest.slice();
    signed.set(signature, signed.length - SIGNATURE_BYTES);
    return { ...part, manifest: signed, applicationKey: signer.publicKey };
  };
  // The worker answers with one manifest for each part.
  const signed = draft.manifests.map((manifest, index) => sign(manifest, parts[index]!));
  return { receipt: draft.receipt, snapshots: await Promise.all(signed) };
}
