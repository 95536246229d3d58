/// <reference types="node" />
/// <reference path="./inspect-generated.d.ts" />
/** `remuda/inspect` in Node.js, whose `fetch` reads no files. */
import { readFile } from "node:fs/promises";
import init, * as glue from "../generated/inspect/remuda_inspect.js";
import { inspectApi } from "./inspect-api.js";

export type { AuditSource } from "./audit-core.js";
export type * from "./inspect-types.js";
export { RemudaError } from "./error.js";

export const { outline, items, describe, portableEvidence } = inspectApi(async () => {
  await init({ module_or_path: await readFile(new URL("../generated/inspect/remuda_inspect_bg.wasm", import.meta.url)) });
  return glue;
});
