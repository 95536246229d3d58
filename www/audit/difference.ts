/** Where two signed statements of one kind differ: field by field, in the names of the specification. */
import type { Description } from "remuda/inspect";
import { digest, element } from "../shared/dom.js";

export interface Difference {
  field: string;
  values: [string, string];
}

const FIELD = /^ *(\w+): (.*?),?$/;

/** The fields that differ; null where the two are not of one kind, or not shaped alike. */
export function differences(a: string, b: string): Difference[] | null {
  const [left, right] = [a.split("\n"), b.split("\n")];
  if (left[0] !== right[0] || left.length !== right.length) return null;
  let field = "";
  const found: Difference[] = [];
  for (const [index, line] of left.entries()) {
    const other = right[index]!;
    const named = FIELD.exec(line);
    if (named) field = named[1]!;
    if (line === other) continue;
    const value = (text: string) => FIELD.exec(text)?.[2] ?? text.trim().replace(/,$/, "");
    found.push({ field, values: [value(line), value(other)] });
  }
  return found;
}

/** Those of the first two objects, one of each item, that are of one kind and not one and the same. */
export function differenceOf(a: Description, b: Description): Difference[] | null {
  for (const left of a.objects) {
    for (const right of b.objects) {
      const found = left.digest === right.digest ? null : differences(left.text, right.text);
      if (found) return found;
    }
  }
  return null;
}

export function differenceView(found: readonly Difference[], items: readonly [number, number]): HTMLElement {
  const value = (text: string) => (/^[0-9a-f]{32,}$/.test(text) ? digest(text) : element("span", {}, text));
  return element(
    "div",
    { class: "scroll difference", tabindex: "0", role: "region", "aria-label": "Where the two differ", "data-testid": "difference" },
    element(
      "table",
      {},
      element("caption", {}, "Where the two differ"),
      element("thead", {}, element("tr", {}, ...["Field", `Item ${items[0]}`, `Item ${items[1]}`].map((name) => element("th", { scope: "col" }, name)))),
      element(
        "tbody",
        {},
        ...found.map(({ field, values }) =>
          element("tr", {}, element("td", {}, element("code", {}, field)), ...values.map((text) => element("td", {}, value(text)))),
        ),
      ),
    ),
  );
}
