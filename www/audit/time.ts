/** Times of the file in the reader's own form. What a provider writes is its word, and any number at all. */
import { element } from "../shared/dom.js";

const WHOLE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
/** The furthest that a `Date` goes. */
const MAX_MS = 8_640_000_000_000_000n;

export function time(ms: bigint, form: "whole" | "clock" = "whole"): HTMLElement {
  if (ms > MAX_MS) return element("span", {}, `millisecond ${ms}`);
  const date = new Date(Number(ms));
  return element("time", { datetime: date.toISOString(), title: WHOLE.format(date) }, (form === "whole" ? WHOLE : CLOCK).format(date));
}

/** How long from one to the other, roughly. */
export function span(fromMs: bigint, toMs: bigint): string {
  const seconds = Number(toMs - fromMs) / 1_000;
  if (seconds < 0) return "backwards in time";
  if (seconds < 1) return "less than a second";
  for (const [unit, name] of [[86_400, "day"], [3_600, "hour"], [60, "minute"]] as const) {
    if (seconds >= unit * 2) return `${Math.round(seconds / unit)} ${name}s`;
  }
  return `${Math.round(seconds)} seconds`;
}
