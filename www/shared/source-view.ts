/** What the pages of feeds and broadcasts draw alike. Everything that tests read is in `data-` attributes. */
import type { Failure, Role } from "remuda";
import type { Child } from "./dom.js";
import { byTestId, element, say } from "./dom.js";

export type Tone = "good" | "wait" | "bad" | "quiet";

const REMEDIES: Record<string, string> = {
  halt: "Nothing: whoever said it is not to be believed",
  retry: "Try again",
  "re-enter-at-boundary": "Ask again from the position",
  "split-scope": "Ask for less at a time",
  "fix-request": "Ask for something else",
  surface: "Decide: only a person can",
};

export function chip(id: string, state: string, tone: Tone, text: string): void {
  const where = byTestId(id);
  where.dataset["state"] = state;
  where.dataset["tone"] = tone;
  say(where.firstElementChild!, text);
}

export function drawStorage(storage: "ready" | "evicted" | "memory"): void {
  if (storage === "ready") chip("storage", storage, "good", "stored durably");
  else chip("storage", storage, storage === "memory" ? "wait" : "bad", storage === "memory" ? "memory only" : "storage evicted");
}

export function drawRole(role: Role): void {
  chip("role", role, role === "owner" ? "good" : "quiet", role === "owner" ? "this tab follows" : "another tab follows");
}

export function drawNotice(text: string | null, ...actions: HTMLElement[]): void {
  const where = byTestId("notice");
  where.hidden = text === null;
  if (where.dataset["text"] === (text ?? "")) return;
  where.dataset["text"] = text ?? "";
  where.replaceChildren(text ?? "", ...actions);
}

/** Shows why nothing more comes, in red, and where the position stayed. */
export function drawFailure(failure: Failure | null, held: string, again: (() => void) | null): void {
  const where = byTestId("failure");
  where.hidden = failure === null;
  const key = failure ? `${failure.code} ${failure.meaning} ${held}` : "";
  if (where.dataset["key"] === key) return;
  where.dataset["key"] = key;
  if (!failure) return where.replaceChildren();
  Object.assign(where.dataset, { code: failure.code, rule: failure.rule, remedy: failure.remedy });
  const row = (term: string, value: string) => element("div", {}, element("dt", {}, term), element("dd", {}, value));
  where.replaceChildren(
    element("h2", { id: "failure-title" }, "Refused: ", element("code", {}, failure.code)),
    element("p", { class: "meaning" }, sentence(failure.meaning)),
    element("dl", {}, row("Rule", failure.rule || "–"), row("What to do", REMEDIES[failure.remedy] ?? failure.remedy), row("Durable position", held)),
    element("p", { class: "actions" }, again && button("Try again from the position", again, "again")),
  );
}

/** A name of the wire keeps its first letter. */
function sentence(meaning: string): string {
  const isName = /^\w*_/.test(meaning);
  return `${isName ? meaning.charAt(0) : meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.`;
}

export function button(text: string, act: () => void, testId?: string): HTMLButtonElement {
  const made = element("button", { type: "button", class: "plain", "data-testid": testId }, text);
  made.addEventListener("click", act);
  return made;
}

/** The newest rows of a list: as many as a person looks at. */
export class Newest {
  readonly #where: HTMLElement;
  readonly #most: number;

  constructor(id: string, most: number) {
    this.#where = byTestId(id);
    this.#most = most;
  }

  add(row: HTMLElement): void {
    this.#where.prepend(row);
    while (this.#where.childElementCount > this.#most) this.#where.lastElementChild!.remove();
  }
}

/** A row of a list: a number, what was said, and what was verified of it. */
export function row(testId: string, data: Record<string, string>, number: string, text: Child, badge: HTMLElement): HTMLElement {
  const made = element(
    "li",
    { class: "record", "data-testid": testId },
    element("span", { class: "sequence" }, number),
    element("span", { class: "text" }, text),
    badge,
  );
  Object.assign(made.dataset, data);
  return made;
}

export function badge(assurance: "verified" | "waiting" | "refused", text: string, title?: string): HTMLElement {
  return element("span", { class: "badge", "data-assurance": assurance, title }, text);
}

/** A payload for reading: text where it is text, its length where it is not. */
export function readable(payload: Uint8Array | null): string {
  if (payload === null) return "does not open";
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(payload);
  } catch {
    return `${payload.length} bytes`;
  }
}

export async function json<T>(address: string, body?: object): Promise<T> {
  const response = await fetch(address, {
    ...(body && { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(4_000),
  });
  if (!response.ok) throw new Error(`${address}: HTTP ${response.status}`);
  return (await response.json()) as T;
}
