/** Beside the story: what was proven for each subscription, what was not checked, and what the file is of. */
import type { Outline } from "remuda/inspect";
import { digest, element, facts, grouped } from "../shared/dom.js";
import type { Judged } from "./protocol.js";
import { records } from "./words.js";

/** How many subscriptions and reads are listed. */
const SHOWN = 12;

const MODES = { none: "no checkpoint proofs asked for", scoped: "proofs of its lanes", full: "every record of every batch" };

function panel(id: string, title: string, ...children: (HTMLElement | string | false)[]): HTMLElement {
  return element("section", { class: "panel", "aria-labelledby": `${id}-title`, "data-testid": id }, element("h2", { id: `${id}-title` }, title), ...children);
}

function proven({ report }: Judged): HTMLElement | false {
  if (report.assurance.length === 0) return false;
  const { proven: all, unproven } = records(report);
  const rows = report.assurance.slice(0, SHOWN).map(({ subscription, mode, verified, unverified }) => {
    const total = verified + unverified;
    const meter = element("meter", { min: "0", max: String(Math.max(total, 1)), value: String(verified), "aria-label": `${verified} of ${total} records proven` });
    return element(
      "li",
      { "data-testid": "assurance", "data-verified": String(verified), "data-unverified": String(unverified) },
      element("div", { class: "assured" }, digest(subscription), element("strong", {}, `${grouped(verified)} of ${grouped(total)}`)),
      meter,
      element("small", {}, MODES[mode]),
    );
  });
  return panel(
    "proven",
    "What is proven",
    element("p", { class: "fine" }, provenWords(all, unproven)),
    element("ol", { class: "assurance" }, ...rows),
    report.assurance.length > SHOWN && element("p", { class: "fine" }, `${grouped(report.assurance.length - SHOWN)} more subscriptions are in the saved report.`),
  );
}

function provenWords(proven: number, unproven: number): string {
  if (unproven > 0) {
    const not = unproven === 1 ? "is not, or belongs to no subscription" : "are not, or belong to no subscription";
    return `${grouped(proven)} ${proven === 1 ? "record is" : "records are"}; ${grouped(unproven)} ${not}.`;
  }
  return proven > 0 ? "Every record in this file." : "There is no record in this file.";
}

function notChecked({ report }: Judged): HTMLElement {
  const read = report.verdict === "undecodable";
  const items = read ? ["anything: the file is no audit file"] : report.not_checked;
  return panel(
    "not-checked",
    "What was not checked",
    element("ul", { class: "unchecked" }, ...items.map((text) => element("li", {}, text))),
  );
}

function about({ about: given }: Judged, outline: Outline | null): HTMLElement | false {
  const head = outline?.head;
  if (given.length > 0) {
    return panel("about", "What the file says it is of", facts(given.map(([name, value]) => [name, value.length > 40 ? digest(value) : value])));
  }
  if (!head) return false;
  const stream = head.chain.find((read) => read.stream)?.stream;
  const heights = head.chain.map(({ height }) => height).sort((a, b) => (a < b ? -1 : 1));
  const view = heights.length === 0 ? "none" : heights.length === 1 ? grouped(heights[0]!) : `${grouped(heights[0]!)} to ${grouped(heights.at(-1)!)}`;
  return panel(
    "about",
    "What the file says it is of",
    facts([
      ["Stream", digest(head.stream)],
      ["Kind", stream ? `${stream.class.toLowerCase()}, ${stream.encrypted ? "encrypted" : "readable"}` : "–"],
      ["Provider", stream ? digest(stream.provider) : "–"],
      ["Signs with", stream ? digest(stream.providerKey) : "–"],
      ["Chain", `number ${grouped(head.chainId)}`],
      ["Chain reads", [`${grouped(head.chainReads)}`, element("small", {}, `at height ${view}`)]],
    ]),
    element("p", { class: "fine" }, "The chain reads are taken as the file gives them. Compare stream and key with what you know from elsewhere."),
  );
}

export function side(judged: Judged, outline: Outline | null): HTMLElement[] {
  return [proven(judged), notChecked(judged), about(judged, outline)].filter((part): part is HTMLElement => part !== false);
}
