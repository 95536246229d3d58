// Runs vector files in WebAssembly: node run.mjs GLUE [--json] FILE…
//
// GLUE is the wasm-bindgen output (`--target nodejs`) of the crate beside this file, which exports
//
//     run_file(text: string, on_line: (line: string) => void): void
//
// It calls `on_line` once for each vector, in order, with a JSON object, and throws where the text is no vector file:
//
//     { "name": "op/what", "op": "decode", "verdict": "pass" | "fail" | "not run", "expected": {…}, "got": {…} | null }
//
// What is printed is what the native runner prints, the closing line included.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [glue, ...rest] = process.argv.slice(2);
const json = rest.includes("--json");
const files = rest.filter((argument) => argument !== "--json");
const { run_file } = createRequire(import.meta.url)(glue);

const counts = { pass: 0, fail: 0, "not run": 0 };
const unknown = new Map();

for (const file of files) {
  const text = readFileSync(file, "utf8");
  let reported = 0;
  run_file(text, (line) => {
    const { name, op, verdict, expected, got } = JSON.parse(line);
    if (!Object.hasOwn(counts, verdict)) throw new Error(`${name}: verdict ${verdict}`);
    reported += 1;
    counts[verdict] += 1;
    if (verdict === "not run") unknown.set(op, (unknown.get(op) ?? 0) + 1);
    if (json) console.log(JSON.stringify({ name, got }));
    else if (verdict === "fail") console.log(`${name}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(got)}`);
  });
  // A trap in the middle of a file must not pass for its end.
  const present = JSON.parse(text).vectors.length;
  if (reported !== present) throw new Error(`${file}: ${reported} of ${present} vectors were reported`);
}

if (!json) {
  const operations = [...unknown].sort().map(([op, count]) => `${op} ${count}`);
  const suffix = operations.length > 0 ? ` (unknown operations: ${operations.join(", ")})` : "";
  console.log(`vectors: ${counts.pass} passed, ${counts.fail} failed, ${counts["not run"]} not run${suffix}`);
}
process.exitCode = counts.fail > 0 ? 1 : 0;
