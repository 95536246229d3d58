// Measures in WebAssembly: node run.mjs GLUE
//
// GLUE is the wasm-bindgen output (`--target nodejs`) of the crate beside this file, which exports
//
//     run(on_line: (line: string) => void): void
//
// It calls `on_line` with each line to print; measurements are lines `bench: NAME = VALUE UNIT`.
import { createRequire } from "node:module";

const { run } = createRequire(import.meta.url)(process.argv[2]);
run((line) => console.log(line));
