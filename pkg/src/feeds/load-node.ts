/// <reference types="node" />
/// <reference path="./generated.d.ts" />
/** The WebAssembly of feeds in Node.js, whose `fetch` reads no files. */
import { readFile } from "node:fs/promises";
import init, * as glue from "../../generated/feeds/remuda_feeds.js";
import type { FeedsModule } from "./glue.js";

export async function load(): Promise<FeedsModule> {
  await init({ module_or_path: await readFile(new URL("../../generated/feeds/remuda_feeds_bg.wasm", import.meta.url)) });
  return glue as unknown as FeedsModule;
}
