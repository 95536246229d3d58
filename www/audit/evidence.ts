/** Files of evidence of feeds and broadcasts: by their magic, each is judged by its own entry of the package. */
import type { AuditReport } from "remuda/verify";
import type { Judged } from "./protocol.js";

const MAGIC_BYTES = 8;
/** Two messages and a whole schedule, or two chunks. */
const MAX_FILE_BYTES = 4 << 20;

/** The judgement of a file of evidence; null for a file of another kind. */
export async function judgeEvidence(file: Blob): Promise<Omit<Judged, "elapsedMs"> | null> {
  const magic = await file.slice(0, MAGIC_BYTES).text();
  if (file.size > MAX_FILE_BYTES) return null;
  if (magic === "WATCHEV1") {
    const { checkEvidence } = await import("remuda/watchtower");
    const { contradicts, code, stream } = await checkEvidence(new Uint8Array(await file.arrayBuffer()));
    const name = typeof stream === "string" ? stream : stream && hexadecimal(stream);
    return {
      family: "feed",
      about: name === null ? [] : [["Stream", name]],
      report: report(name !== null, contradicts, code, {
        rule: "CIP-7: sequences",
        contradiction: "watchtower/equivocation",
        notChecked: "whether the key schedule in the file is the publisher's: compare it with one that you trust",
      }),
    };
  }
  if (magic === "BPSLTEV1") {
    const { checkEvidence } = await import("remuda/bps");
    const { contradicts, code, topic, owner } = await checkEvidence(new Uint8Array(await file.arrayBuffer()));
    return {
      family: "broadcast",
      about: owner === null ? [] : [["Owner", owner], ["Topic", topic ?? ""]],
      report: report(owner !== null, contradicts, code, {
        rule: "SWIP-74: client rules",
        contradiction: "bps contradiction",
        notChecked: "who the owner is: an address says only that one key signed both",
      }),
    };
  }
  return null;
}

interface Rules {
  rule: string;
  contradiction: string;
  notChecked: string;
}

function report(isRead: boolean, contradicts: boolean, code: string | null, { rule, contradiction, notChecked }: Rules): AuditReport {
  const isSigned = contradicts || code === null;
  return {
    verdict: !isRead ? "undecodable" : contradicts || code !== null ? "violations" : "consistent",
    items: 2,
    records: 0,
    signatures: isSigned ? 2 : 0,
    findings: isSigned ? [] : [{ item: null, code, rule: rule.replace(/:.*/, ""), detail: "" }],
    evidence: contradicts ? [{ code: contradiction, items: [0, 1] }] : [],
    assurance: [],
    not_checked: [notChecked],
  };
}

function hexadecimal(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
