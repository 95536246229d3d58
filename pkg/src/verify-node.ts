/// <reference types="node" />
/// <reference path="./audit-generated.d.ts" />
/** `remuda/verify` in Node.js, whose `fetch` reads no files. */
import { readFile } from "node:fs/promises";
import init, * as glue from "../generated/verifier/remuda_verifier.js";
import { verifyApi } from "./audit-api.js";

export type { AuditSource } from "./audit-core.js";
export type * from "./audit-types.js";
export { RemudaError } from "./error.js";

export const { audit, checkEvidence, verifySignature } = verifyApi(async () => {
  await init({ module_or_path: await readFile(new URL("../generated/verifier/remuda_verifier_bg.wasm", import.meta.url)) });
  return glue;
});
