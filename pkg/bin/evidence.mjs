/** Files of evidence of feeds and broadcasts, as `cargo xtask audit` judges them. */
import { open } from "node:fs/promises";

const MAGIC_BYTES = 8;
/** Two messages and a whole schedule, or two chunks. */
const MAX_FILE_BYTES = 4 << 20;

/** By the magic of its file, what judges a family: its module, its document, and what no reader of the file alone can check. */
const FAMILIES = {
  WATCHEV1: {
    module: "remuda/watchtower",
    rule: "CIP-7: sequences",
    contradiction: "watchtower/equivocation",
    notChecked: "whether the key schedule in the file is the publisher's: compare it with one that you trust",
    isRead: ({ stream }) => stream !== null,
  },
  BPSLTEV1: {
    module: "remuda/bps",
    rule: "SWIP-74: client rules",
    contradiction: "bps contradiction",
    notChecked: "who the owner is: an address says only that one key signed both",
    isRead: ({ owner }) => owner !== null,
  },
};

/** The report on a file of evidence; null for a file of another kind. */
export async function judgeEvidence(path) {
  const handle = await open(path);
  try {
    const magic = Buffer.alloc(MAGIC_BYTES);
    await handle.read(magic, 0, MAGIC_BYTES, 0);
    const name = magic.toString("latin1");
    if (!Object.hasOwn(FAMILIES, name) || (await handle.stat()).size > MAX_FILE_BYTES) return null;
    const family = FAMILIES[name];
    const { checkEvidence } = await import(family.module);
    return report(family, await checkEvidence(new Uint8Array(await handle.readFile())));
  } finally {
    await handle.close();
  }
}

function report({ rule, contradiction, notChecked, isRead }, judgement) {
  const { contradicts, code } = judgement;
  const verdict = !isRead(judgement) ? "undecodable" : contradicts || code !== null ? "violations" : "consistent";
  return {
    verdict,
    items: 2,
    records: 0,
    signatures: contradicts || code === null ? 2 : 0,
    findings: contradicts || code === null ? [] : [{ item: null, code, rule: rule.replace(/:.*/, ""), detail: "" }],
    evidence: contradicts ? [{ code: contradiction, rule, items: [0, 1] }] : [],
    assurance: [],
    not_checked: [notChecked],
  };
}

/** For people. */
export function evidenceText({ verdict, findings, evidence, not_checked: notChecked }) {
  return [
    `verdict: ${verdict}`,
    ...evidence.map(({ code, rule, items }) => `evidence: items ${items[0]} and ${items[1]}: ${code} (${rule})`),
    ...findings.map(({ code, rule }) => `finding: ${code} (${rule})`),
    ...notChecked.map((text) => `not checked: ${text}`),
  ].join("\n");
}
