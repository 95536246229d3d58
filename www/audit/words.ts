/** The verdict and every code in plain words. Nothing is said that the report does not show. */
import type { AuditReport } from "remuda/verify";
import type { ItemKind } from "remuda/inspect";
import { grouped } from "../shared/dom.js";
import type { Family } from "./protocol.js";

export type Tone = "good" | "wait" | "bad" | "quiet";

export interface VerdictWords {
  tone: Tone;
  title: string;
  lead: string;
}

export const counted = (count: number, one: string, many = `${one}s`): string => `${grouped(count)} ${count === 1 ? one : many}`;

/** Records that are proven, and those that are not. */
export function records({ assurance, records: all }: AuditReport): { proven: number; unproven: number } {
  const proven = assurance.reduce((sum, { verified }) => sum + verified, 0);
  return { proven, unproven: Math.max(all - proven, 0) };
}

export function verdictWords(report: AuditReport, family: Family): VerdictWords {
  if (report.verdict === "undecodable") {
    const isOther = report.findings.some(({ code }) => code === "decode/unknown-version");
    return isOther
      ? { tone: "wait", title: "This is not an audit file", lead: "Nothing in it was judged. It says nothing about any provider." }
      : {
          tone: "wait",
          title: "This file cannot be read to its end",
          lead: "It is damaged or cut off, so it is no audit file and nothing of it counts. That may be whoever made or copied it.",
        };
  }
  if (family !== "audit") return evidenceWords(report, family);
  const contradictions = report.evidence.length;
  const findings = report.findings.length;
  if (contradictions > 0) {
    const also = findings > 0 ? ` ${counted(findings, "item")} also failed a check.` : "";
    return {
      tone: "bad",
      title: contradictions === 1 ? "The provider signed two things that exclude each other" : `The provider contradicted itself ${grouped(contradictions)} times`,
      lead: `Both carry its valid signature, so anybody can check it from the two alone.${also}`,
    };
  }
  if (findings > 0) {
    return {
      tone: "bad",
      title: findings === 1 ? "One thing in this file does not hold" : `${grouped(findings)} things in this file do not hold`,
      lead: `${what(report)}${report.assurance.length > 0 ? " Records proven before it stay proven; later ones of the same subscription do not count." : ""}`,
    };
  }
  const { proven, unproven } = records(report);
  if (report.items === 0) return { tone: "quiet", title: "An empty audit file", lead: "It is well-formed, and holds nothing to judge." };
  const tail = unproven > 0 ? ` ${counted(unproven, "record")} ${unproven === 1 ? "has" : "have"} no proof in this file: taken on the provider’s word.` : "";
  const head =
    proven > 0
      ? `${counted(proven, "record")} ${proven === 1 ? "is" : "are"} proven, and no two signed statements contradict each other.`
      : `${counted(report.signatures, "signature")} verified, and no two signed statements contradict each other.`;
  return { tone: "good", title: "No violation found", lead: `${head}${tail}` };
}

function evidenceWords(report: AuditReport, family: Family): VerdictWords {
  const who = family === "feed" ? "publisher" : "owner";
  if (report.verdict === "consistent") return { tone: "good", title: "No contradiction", lead: `The ${who} signed both, and they get along.` };
  if (report.evidence.length > 0) {
    return {
      tone: "bad",
      title: `The ${who} signed two things that exclude each other`,
      lead: `Two ${family === "feed" ? "messages for one sequence" : "updates for one index"}, both under its key. Anybody can check it from this file.`,
    };
  }
  return { tone: "wait", title: "This proves nothing", lead: `At least one of the two is not signed by the ${who} that the file names: nobody is shown to have lied.` };
}

function what({ findings }: AuditReport): string {
  const first = findings[0]!;
  return findings.length === 1 ? `${plain(first.code, first.detail)}` : `The first: ${lower(plain(first.code, first.detail))}`;
}

const lower = (text: string) => `${text.charAt(0).toLowerCase()}${text.slice(1)}`;

/** What a code means to somebody who does not know the protocol. */
const PLAIN: Record<string, string> = {
  "decode/truncated": "It ends in the middle of something.",
  "decode/unknown-version": "It does not begin as such a file does.",
  "decode/trailing-bytes": "Something follows where the file should be over.",
  "decode/payload-hash": "A record’s content is not what its receipt was signed for.",
  "decode/header-hash": "A record’s header is not what its receipt was signed for.",
  "protocol/epoch-without-transition": "The provider’s broker restarted, and the signed explanation of it was withheld.",
  "protocol/unknown-subscription": "Something was sent for a subscription that nobody opened.",
  "protocol/unknown-group": "A group’s state came though nobody follows that group.",
  "protocol/unexpected-checkpoint": "A checkpoint came where none belongs.",
  "protocol/unexpected-frame": "Something came that this subscription never receives.",
  "protocol/out-of-scope-record": "A record came of a lane that was not asked for.",
  "protocol/record-order": "Records came out of order.",
  "protocol/coverage-missing": "A lane has no proof in a checkpoint.",
  "protocol/transition-mid-batch": "A restart came while records still waited for their checkpoint.",
  "protocol/anchor-missing": "The provider said that a position is gone, and showed no signed floor for it.",
  "verify/signature": "A signature was not made by the key that it should be of.",
  "verify/key-unresolved": "The file has no chain read that says which key signed this.",
  "verify/chain-inconsistent": "Two chain reads in the file contradict each other.",
  "verify/context-mismatch": "Something signed for another chain is in here.",
  "verify/stream-mismatch": "Something signed for another stream is in here.",
  "verify/checkpoint-predecessor": "A checkpoint does not follow the one before it: something between them is missing or was replaced.",
  "verify/checkpoint-gap": "Sequences are missing between two checkpoints.",
  "verify/transition-lineage": "A restart does not follow the epoch that was known.",
  "verify/transition-checkpoint": "A restart names another last durable checkpoint than the one that was served.",
  "verify/record-outside-batch": "A record lies outside the batch that should prove it.",
  "verify/proof-disagreement": "Two lane proofs of one checkpoint cannot both be true.",
  "verify/range-root": "The lane proofs do not fold into the root that the checkpoint signs.",
  "verify/lane-count": "The checkpoint commits to another number of records than were served: some were withheld, or made up.",
  "verify/lane-range": "A lane’s first or last record is not the committed one.",
  "verify/lane-root": "A lane’s records are not those that were committed: at least one was changed or replaced.",
  "verify/batch-incomplete": "A sequence of the batch is missing.",
  "verify/global-chain": "The chain of receipts has a hole: a record of the stream is missing.",
  "verify/lane-chain": "The chain of receipts of a lane has a hole: a record of it is missing.",
  "verify/group-chain": "A group’s history has a hole: a change of its state is missing.",
  "verify/snapshot-hash": "The snapshot’s bytes are not those whose hash was signed.",
  "verify/snapshot-anchor": "The snapshot names another receipt than the one bundled with it.",
  "verify/snapshot-coverage": "The snapshot says that it covers another position than its receipt does.",
  "verify/unjustified-refusal": "The provider turned a reader away, though its own signed floor does not justify it.",
  "evidence/append-fork": "Two receipts were signed for one record.",
  "evidence/global-fork": "Two receipts were signed to follow one and the same in the stream.",
  "evidence/lane-fork": "Two receipts were signed to follow one and the same in a lane.",
  "evidence/checkpoint-fork": "Two checkpoints were signed for one place in the history: two histories exist.",
  "evidence/transition-fork": "Two different restarts of one epoch were signed.",
  "evidence/transition-contradicts-checkpoint": "A checkpoint was signed as durable, and then a restart was signed that drops it.",
  "evidence/group-fork": "Two changes of a group’s state were signed for one place in its history.",
  "evidence/key-batch-fork": "Two key batches were signed for one place.",
  "evidence/floor-regression": "A later floor says that records are there which an earlier one said were gone.",
  "evidence/anchor-fork": "Two floors at one place name different predecessors.",
  "evidence/anchor-contradicts-receipt": "A floor names another predecessor than the receipt that was signed for it.",
  "evidence/view-conflict": "Two things were signed at one height of the chain under different blocks.",
  "watchtower/equivocation": "Two messages were signed for one sequence.",
  "bps contradiction": "Two updates were signed for one index.",
};

/** Sections of CIP-39 of contradictions: a report has their codes alone. */
const SECTIONS: Record<string, string> = {
  "evidence/append-fork": "CIP-39 §14.1",
  "evidence/global-fork": "CIP-39 §14.1",
  "evidence/lane-fork": "CIP-39 §14.1",
  "evidence/checkpoint-fork": "CIP-39 §12.2",
  "evidence/transition-fork": "CIP-39 §12.1",
  "evidence/transition-contradicts-checkpoint": "CIP-39 §12.1",
  "evidence/group-fork": "CIP-39 §14.2",
  "evidence/key-batch-fork": "CIP-39 §9.3",
  "evidence/floor-regression": "CIP-39 §15",
  "evidence/anchor-fork": "CIP-39 §15",
  "evidence/anchor-contradicts-receipt": "CIP-39 §15",
  "evidence/view-conflict": "CIP-39 §17",
  "watchtower/equivocation": "CIP-7: sequences",
  "bps contradiction": "SWIP-74: client rules",
};

export function plain(code: string, detail = ""): string {
  return PLAIN[code] ?? (detail === "" ? "A rule of the protocol is broken." : `${detail.charAt(0).toUpperCase()}${detail.slice(1)}.`);
}

export const ruleOf = (code: string): string => SECTIONS[code] ?? "–";

export const KINDS: Record<ItemKind, string> = {
  subscription: "what was asked for",
  session: "session",
  response: "response",
  record: "record",
  checkpoint: "checkpoint",
  transition: "restart",
  error: "error",
  group: "group state",
  snapshot: "snapshot",
  undecodable: "unreadable frame",
  "held-receipt": "receipt, from elsewhere",
  "held-checkpoint": "checkpoint, from elsewhere",
  "held-transition": "restart, from elsewhere",
  "held-group-receipt": "group receipt, from elsewhere",
  "held-floor": "retention floor",
  "held-key-batch": "key-batch receipt",
};

/** What a group's receipt did, in the names of the specification. */
const ACTIONS: Record<string, string> = {
  Ack: "acknowledged",
  Nack: "given back",
  Extend: "lease extended",
  Reject: "rejected",
  Redrive: "queued again",
  GroupCreate: "group created",
  GroupUpdate: "group changed",
  GroupDelete: "group deleted",
  LeaseIssue: "leased",
  LeaseExpire: "lease ran out",
  AttemptsExhaust: "gave up after too many attempts",
  RecordExpire: "record expired",
};

export const actionWords = (action: string): string => ACTIONS[action] ?? action;

export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  const [unit, name] = bytes < 1_000_000 ? [1_000, "kB"] : [1_000_000, "MB"];
  return `${(bytes / unit).toLocaleString("en", { maximumFractionDigits: 1 })} ${name}`;
}

export function duration(ms: number): string {
  return ms < 1_000 ? `${Math.max(1, Math.round(ms))} ms` : `${(ms / 1_000).toLocaleString("en", { maximumFractionDigits: 1 })} s`;
}
