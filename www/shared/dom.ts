/** Making elements. Text is always set as text. */

export type Child = Node | string | null | false;

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Record<string, string | undefined> = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  made.append(...children.filter((child): child is Node | string => child !== null && child !== false));
  return made;
}

export function graphic(name: string, attributes: Record<string, string | number>, ...children: Child[]): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children.filter((child): child is Node | string => child !== null && child !== false));
  return made;
}

export function byTestId<E extends Element = HTMLElement>(id: string): E {
  const found = document.querySelector<E>(`[data-testid="${id}"]`);
  if (!found) throw new Error(`the page has no ${id}`);
  return found;
}

/** Sets text only when it differs, so that a screen reader hears each change once. */
export function say(where: Element, text: string): void {
  if (where.textContent !== text) where.textContent = text;
}

/** A digest for reading: its ends, the whole of it on hover and for copying. */
export function digest(text: string | null | undefined): HTMLElement {
  if (!text) return element("span", {}, "–");
  return element("span", { class: "digest", title: text, "data-digest": text }, text.slice(0, 8), element("i", {}, "…"), text.slice(-6));
}

export function facts(rows: [string, Child | Child[]][]): HTMLElement {
  return element(
    "dl",
    { class: "facts" },
    ...rows.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, ...(Array.isArray(value) ? value : [value])))),
  );
}

export const grouped = (value: number | bigint): string => value.toLocaleString("en");
