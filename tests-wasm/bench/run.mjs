// Measures in WebAssembly, and the same checks on the @noble libraries: node run.mjs GLUE
//
// GLUE is the wasm-bindgen output (`--target nodejs`) of the crate beside this file, which exports
//
//     run(on_line: (line: string) => void): void
//     scene(): [frames: Uint8Array[], key: Uint8Array]
//
// `run` calls `on_line` with each line to print; measurements are lines `bench: NAME = VALUE UNIT`. `scene` is the batch of the
// first measurement.
import { createRequire } from "node:module";

import { verifyBatch } from "./noble.mjs";

const RUNS = 5;
const { run, scene } = createRequire(import.meta.url)(process.argv[2]);

function noble() {
  const [frames, key] = scene();
  let best = 0;
  for (let left = RUNS + 1; left > 0; left--) {
    const started = performance.now();
    const records = verifyBatch(frames, key);
    best = Math.max(best, (records / (performance.now() - started)) * 1_000);
  }
  return best;
}

let ours = 0;
run((line) => {
  ours ||= Number(/^bench: verified records = (\S+)/.exec(line)?.[1] ?? 0);
  console.log(line);
});
const theirs = noble();
console.log(`bench: verified records on @noble libraries = ${theirs.toFixed(4)} records/s`);
console.log(`bench: ours over @noble libraries = ${(ours / theirs).toFixed(4)} times`);
