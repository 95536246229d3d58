/// <reference path="./generated.d.ts" />
/** The WebAssembly of feeds in a page, for what needs no worker. */
import init, * as glue from "../../generated/feeds/remuda_feeds.js";
import type { FeedsModule } from "./glue.js";

export async function load(): Promise<FeedsModule> {
  await init({ module_or_path: new URL("../../generated/feeds/remuda_feeds_bg.wasm", import.meta.url) });
  return glue as unknown as FeedsModule;
}
