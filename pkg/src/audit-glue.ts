/** The shape of the generated WebAssembly verifier, `generated/verifier/remuda_verifier.js`. */
export interface WasmProgress {
  readonly bytes: bigint;
  readonly items: number;
  readonly declaredItems: number | undefined;
  free(): void;
}

export interface WasmAudit {
  push(chunk: Uint8Array): void;
  progress(): WasmProgress;
  /** Ends the audit and frees it. */
  finish(): string;
  free(): void;
}

export interface Verifier {
  Audit: new () => WasmAudit;
  checkEvidence(context: Uint8Array, streamId: Uint8Array, providerKey: Uint8Array, a: Uint8Array, b: Uint8Array): string | undefined;
  verifySignature(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean;
}
