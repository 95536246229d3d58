// Measures in WebAssembly, and the same checks on the @noble libraries: node run.mjs GLUE
//
// GLUE is the wasm-bindgen output (`--target nodejs`) of the crate beside this file, which exports
//
//     run(on_line: (line: string) => void): void
//     scene(): [frames: Uint8Array[], key: Uint8Array]
//     verifyScene(): void
//
// `run` calls `on_line` with each line to print; measurements are lines `bench: NAME = VALUE UNIT`. `scene` is the batch of the
// first measurement, which both verify turn by turn, so that whatever disturbs one disturbs the other.
import { createRequire } from "node:module";

import { verifyBatch } from "./noble.mjs";

const RUNS = 10;
const { run, scene, verifyScene } = createRequire(import.meta.url)(process.argv[2]);

run((line) => console.log(line));

const [frames, key] = scene();
const records = frames.length - 1;
const perSecond = (verify) => {
  const started = performance.now();
  verify();
  return (records / (performance.now() - started)) * 1_000;
};

let [ours, theirs] = [0, 0];
for (let left = RUNS; left > 0; left--) {
  for (let again = 0; again < RUNS; again++) ours = Math.max(ours, perSecond(verifyScene));
  theirs = Math.max(theirs, perSecond(() => verifyBatch(frames, key)));
}
console.log(`bench: verified records beside @noble libraries = ${ours.toFixed(4)} records/s`);
console.log(`bench: verified records on @noble libraries = ${theirs.toFixed(4)} records/s`);
console.log(`bench: ours over @noble libraries = ${(ours / theirs).toFixed(4)} times`);
