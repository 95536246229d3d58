// The measurements wherever WebAssembly runs, and the same checks on the @noble libraries beside them.
//
// `glue` is the wasm-bindgen output of the crate beside this file, which exports
//
//     run(on_line: (line: string) => void): void
//     scene(): [frames: Uint8Array[], key: Uint8Array]
//     verifyScene(): void
//
// `run` calls `on_line` with each line to print; measurements are lines `bench: NAME = VALUE UNIT`. `scene` is the batch of the
// first measurement, which both verify turn by turn, so that whatever disturbs one disturbs the other.
import { verifyBatch } from "./noble.mjs";

const RUNS = 10;

export function measure({ run, scene, verifyScene }, print) {
  run(print);

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
  print(`bench: verified records beside @noble libraries = ${ours.toFixed(4)} records/s`);
  print(`bench: verified records on @noble libraries = ${theirs.toFixed(4)} records/s`);
  print(`bench: ours over @noble libraries = ${(ours / theirs).toFixed(4)} times`);
}
