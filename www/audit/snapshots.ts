/** Snapshots: the verifier's checks one by one, as far as its verdict says how far they came. */
import type { Outline, SnapshotRow } from "remuda/inspect";
import type { AuditFinding } from "remuda/verify";
import { digest, element, facts, grouped } from "../shared/dom.js";
import { counted, size } from "./words.js";

/** A check, in the order in which they are made (CIP-39 §15), and the codes under which it fails. */
interface Check {
  says: string;
  codes: readonly string[];
}

const CHECKS: readonly Check[] = [
  { says: "It is of this chain", codes: ["verify/context-mismatch"] },
  { says: "It is of this stream", codes: ["verify/stream-mismatch"] },
  { says: "The application’s key in the file signed its description", codes: ["verify/signature"] },
  { says: "Its bytes hash to what was signed", codes: ["verify/snapshot-hash"] },
  { says: "The receipt with it is of the same chain and stream", codes: ["verify/snapshot-receipt-binding"] },
  { says: "The provider signed that receipt", codes: ["verify/signature", "verify/key-unresolved", "verify/served-at-mismatch"] },
  { says: "It names exactly that receipt", codes: ["verify/snapshot-anchor"] },
  { says: "It covers the history up to exactly there", codes: ["verify/snapshot-coverage"] },
];

export type Outcome = "passed" | "failed" | "unknown";

/**
 * What is known of each check. A signature that fails is of the application or of the provider: the report does not say which, so both are
 * unknown, and what lies between.
 */
export function outcomes(code: string | null): Outcome[] {
  if (code === null) return CHECKS.map(() => "passed");
  const failing = CHECKS.flatMap(({ codes }, index) => (codes.includes(code) ? [index] : []));
  const [first, second] = failing;
  if (first === undefined || second !== undefined) return CHECKS.map((_, index) => (first !== undefined && index < first ? "passed" : "unknown"));
  return CHECKS.map((_, index) => (index < first ? "passed" : index === first ? "failed" : "unknown"));
}

const WORDS: Record<Outcome, string> = { passed: "holds", failed: "does not hold", unknown: "not known to hold" };

export function snapshots({ snapshots: listed }: Outline, findings: readonly AuditFinding[]): HTMLElement | null {
  if (listed.total === 0) return null;
  const codes = new Map(findings.flatMap(({ item, code }) => (item === null ? [] : [[item, code] as const])));
  return element(
    "section",
    { id: "snapshots", class: "panel", "aria-labelledby": "snapshots-title", "data-testid": "snapshots" },
    element("h2", { id: "snapshots-title" }, counted(listed.total, "snapshot")),
    element(
      "p",
      { class: "lead" },
      "An application’s summary of a history, bound to a receipt of the provider. That the summary is what the records make cannot be checked by anybody but the application.",
    ),
    ...listed.rows.slice(0, 20).map((row) => snapshot(row, codes.get(row.item) ?? null)),
  );
}

function snapshot(row: SnapshotRow, code: string | null): HTMLElement {
  const all = outcomes(code);
  const same = row.hash === row.computedHash;
  return element(
    "div",
    { class: "snapshot", "data-testid": "snapshot", "data-item": String(row.item) },
    element("h3", {}, row.lane === null ? "Of the whole stream" : "Of one lane", ` · ${size(row.bytes)}`),
    element(
      "ol",
      { class: "checks" },
      ...CHECKS.map(({ says }, index) =>
        element("li", { "data-testid": "check", "data-outcome": all[index]! }, element("span", {}, says), element("strong", {}, WORDS[all[index]!])),
      ),
    ),
    facts([
      ["Signed hash", digest(row.hash)],
      ["Hash of bytes", [digest(row.computedHash), element("small", {}, same ? "the same" : "another one")]],
      ["Through", row.throughSequence !== null ? `sequence ${grouped(row.throughSequence)}` : ["checkpoint ", digest(row.throughCheckpoint)]],
      ["Receipt", digest(row.receiptDigest)],
      ["Signer", digest(row.signer)],
    ]),
  );
}
