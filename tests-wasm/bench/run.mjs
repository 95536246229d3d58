// Measures under Node.js: node run.mjs GLUE, the wasm-bindgen output with `--target nodejs`.
import { createRequire } from "node:module";

import { measure } from "./measure.mjs";

measure(createRequire(import.meta.url)(process.argv[2]), (line) => console.log(line));
