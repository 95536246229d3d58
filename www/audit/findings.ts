/** What failed, item by item: the rule and the bytes side by side. And what contradicts itself, to be taken away. */
import type { AuditEvidence, AuditFinding } from "remuda/verify";
import { element } from "../shared/dom.js";
import { differenceOf, differenceView } from "./difference.js";
import { laterItem } from "./item-view.js";
import type { Judged, ShownItem } from "./protocol.js";
import { counted, plain, ruleOf } from "./words.js";

/** How many are drawn; the rest is in the report. */
const SHOWN = 50;

export interface Open {
  item(item: number): Promise<ShownItem | null>;
  saveEvidence(evidence: AuditEvidence, index: number): void;
}

function rule(code: string, where: string, detail: string): HTMLElement {
  return element(
    "dl",
    { class: "rule" },
    element("div", {}, element("dt", {}, "Code"), element("dd", {}, element("code", {}, code))),
    element("div", {}, element("dt", {}, "Rule"), element("dd", {}, where)),
    detail !== "" && element("div", {}, element("dt", {}, "In the words of the rule"), element("dd", {}, detail)),
  );
}

function findingCard({ item, code, rule: where, detail }: AuditFinding, isItem: boolean, open: Open): HTMLElement {
  return element(
    "li",
    { class: "card bad", "data-testid": "finding", "data-code": code, "data-item": String(item ?? "") },
    element(
      "div",
      { class: "card-head" },
      element("h3", {}, plain(code, detail)),
      element("span", { class: "tag" }, item === null ? "in the file’s head" : `item ${item}`),
    ),
    rule(code, where, detail),
    item !== null && isItem && laterItem(() => open.item(item)),
  );
}

/** Where two items differ: empty until both are there, and where they are of different kinds. */
function laterDifference([a, b]: [number, number], open: Open): HTMLElement {
  const where = element("div", {});
  void Promise.all([open.item(a), open.item(b)]).then(
    ([left, right]) => {
      const found = left?.described && right?.described ? differenceOf(left.described, right.described) : null;
      if (found) where.append(differenceView(found, [a, b]));
    },
    // Each item says for itself that it could not be read.
    () => undefined,
  );
  return where;
}

function evidenceCard(evidence: AuditEvidence, index: number, family: Judged["family"], open: Open): HTMLElement {
  const { code, items: [a, b] } = evidence;
  const save = element("button", { type: "button", "data-testid": "save-evidence" }, "Save this evidence");
  save.addEventListener("click", () => open.saveEvidence(evidence, index));
  return element(
    "li",
    { class: "card bad", "data-testid": "evidence", "data-code": code, "data-items": `${a},${b}` },
    element(
      "div",
      { class: "card-head" },
      element("h3", {}, plain(code)),
      element("span", { class: "tag" }, family === "audit" ? `items ${a} and ${b}` : "both in this file"),
    ),
    rule(code, ruleOf(code), ""),
    family === "audit" && laterDifference(evidence.items, open),
    family === "audit" && element("div", { class: "pair" }, laterItem(() => open.item(a)), laterItem(() => open.item(b))),
    element(
      "p",
      { class: "actions" },
      save,
      element("span", { class: "fine" }, "A small file with the two signed statements: anybody can judge it, here or with another verifier."),
    ),
  );
}

export function findings({ report, family }: Judged, canShow: boolean, open: Open): HTMLElement[] {
  const parts: HTMLElement[] = [];
  if (report.evidence.length > 0) {
    parts.push(
      element(
        "section",
        { id: "contradictions", "aria-labelledby": "contradictions-title" },
        element("h2", { id: "contradictions-title" }, counted(report.evidence.length, "contradiction")),
        element("ol", { class: "cards" }, ...report.evidence.slice(0, SHOWN).map((it, index) => evidenceCard(it, index, family, open))),
        rest(report.evidence.length),
      ),
    );
  }
  if (report.findings.length > 0) {
    parts.push(
      element(
        "section",
        { id: "findings", "aria-labelledby": "findings-title" },
        element("h2", { id: "findings-title" }, counted(report.findings.length, "finding")),
        element("ol", { class: "cards" }, ...report.findings.slice(0, SHOWN).map((it) => findingCard(it, canShow, open))),
        rest(report.findings.length),
      ),
    );
  }
  return parts;
}

function rest(count: number): HTMLElement | string {
  return count > SHOWN ? element("p", { class: "fine" }, `${counted(count - SHOWN, "more")} in the saved report.`.replace("mores", "more")) : "";
}
