// Runs vector files in WebAssembly: node run.mjs GLUE [--json] FILE…
//
// GLUE is the wasm-bindgen output (`--target nodejs`) of the crate beside this file, which exports
//
//     run_file(text: string, on_line: (line: string) => void): void
//
// It calls `on_line` once for each vector, in order, with a JSON object:
//
//     { "name": "op/what", "op": "decode", "verdict": "passed" | "failed" | "not run", "got": {…}, "why": "what differs" }
//
// `got` is absent where the vector was not run, `why` where it passed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [glue, ...rest] = process.argv.slice(2);
const json = rest.includes("--json");
const files = rest.filter((argument) => argument !== "--json");
const { run_file } = createRequire(import.meta.url)(glue);

const counts = { passed: 0, failed: 0, "not run": 0 };
const unknown = new Map();

for (const file of files) {
  let seen = 0;
  run_file(readFileSync(file, "utf8"), (line) => {
    const { name, op, verdict, got, why } = JSON.parse(line);
    if (!(verdict in counts)) throw new Error(`${name}: verdict ${verdict}`);
    counts[verdict] += 1;
    seen += 1;
    if (verdict === "not run") unknown.set(op, (unknown.get(op) ?? 0) + 1);
    if (json && got !== undefined) console.log(JSON.stringify({ name, got }));
    if (!json && verdict === "failed") console.log(`${name}: ${why}`);
  });
  const expected = JSON.parse(readFileSync(file, "utf8")).vectors.length;
  if (seen !== expected) throw new Error(`${file}: ${seen} of ${expected} vectors were reported`);
}

if (!json) {
  for (const [op, count] of [...unknown].sort()) console.log(`not run: ${op}: ${count} vectors`);
  console.log(`vectors: ${counts.passed} passed, ${counts.failed} failed, ${counts["not run"]} not run`);
}
process.exitCode = counts.failed > 0 ? 1 : 0;
