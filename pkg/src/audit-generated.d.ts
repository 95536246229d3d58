/** Stands in for the glue where `cargo xtask wasm` has not made it yet: a file that exists is preferred to a pattern. */
declare module "*/generated/verifier/remuda_verifier.js" {
  import type { Verifier, WasmAudit } from "./audit-glue.js";

  export default function init(options: { module_or_path: URL | Response | BufferSource }): Promise<unknown>;
  export const Audit: new () => WasmAudit;
  export const checkEvidence: Verifier["checkEvidence"];
  export const verifySignature: Verifier["verifySignature"];
}
