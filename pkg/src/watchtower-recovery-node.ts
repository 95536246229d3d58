/// <reference types="node" />
/// <reference path="./feeds/generated.d.ts" />
/** `remuda/watchtower/recovery` in Node.js, whose `fetch` reads no files. */
import { readFile } from "node:fs/promises";
import init, * as glue from "../generated/recovery/remuda_recovery.js";
import { recoveryApi } from "./feeds/recovery-api.js";

export { RemudaError } from "./error.js";
export type { WrappedDek } from "./feeds/recovery-api.js";

export const { unwrapContentKey } = recoveryApi(async () => {
  await init({ module_or_path: await readFile(new URL("../generated/recovery/remuda_recovery_bg.wasm", import.meta.url)) });
  return glue;
});
