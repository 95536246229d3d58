#!/usr/bin/env node
// remuda audit FILE [--json]: judges an audit file, or a file of evidence of another family. Exit code 0 consistent, 1 violations, 2 undecodable, 3 not judged.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Readable } from "node:stream";

import { audit } from "remuda/verify";

import { auditText } from "./audit-text.mjs";
import { evidenceText, judgeEvidence } from "./evidence.mjs";

const EXIT_CODES = { consistent: 0, violations: 1, undecodable: 2 };
const NOT_JUDGED = 3;
const PROGRESS_MS = 500;

async function main([command, ...rest]) {
  const json = rest.includes("--json");
  const files = rest.filter((argument) => argument !== "--json");
  if (command !== "audit" || files.length !== 1 || files[0].startsWith("-")) {
    console.error("usage: remuda audit FILE [--json]");
    return NOT_JUDGED;
  }
  const [file] = files;
  const judged = await judgeEvidence(file);
  if (judged) {
    console.log(json ? JSON.stringify(judged) : evidenceText(judged));
    return EXIT_CODES[judged.verdict];
  }
  const totalBytes = (await stat(file)).size;
  const stream = Readable.toWeb(createReadStream(file, { highWaterMark: 1 << 20 }));
  const report = await audit(stream, { onProgress: progress(totalBytes) });
  console.log(json ? JSON.stringify(report) : auditText(report));
  return EXIT_CODES[report.verdict];
}

/** A line that is written over, where somebody watches a long audit. */
function progress(totalBytes) {
  if (!process.stderr.isTTY) return () => undefined;
  let next = performance.now() + PROGRESS_MS;
  return ({ bytes, items, declaredItems }) => {
    const isLast = Number(bytes) >= totalBytes;
    if (!isLast && performance.now() < next) return;
    next = performance.now() + PROGRESS_MS;
    const percent = Math.floor((Number(bytes) / totalBytes) * 100);
    process.stderr.write(isLast ? "\r\x1b[K" : `\r${percent} %, item ${items} of ${declaredItems ?? "?"}\x1b[K`);
  };
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(`remuda: ${error.message}`);
  process.exitCode = NOT_JUDGED;
}
