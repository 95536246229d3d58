/// <reference path="./audit-generated.d.ts" />
/** `remuda/verify` in browsers: the verifier alone, without client, network or storage. */
import init, * as glue from "../generated/verifier/remuda_verifier.js";
import { verifyApi } from "./audit-api.js";

export type { AuditSource } from "./audit-core.js";
export type * from "./audit-types.js";
export { RemudaError } from "./error.js";

export const { audit, checkEvidence, verifySignature } = verifyApi(async () => {
  await init({ module_or_path: new URL("../generated/verifier/remuda_verifier_bg.wasm", import.meta.url) });
  return glue;
});
