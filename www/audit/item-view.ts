/** One item: where it is, what it says field by field, and its bytes beside that. */
import type { Child } from "../shared/dom.js";
import { element } from "../shared/dom.js";
import type { ShownItem } from "./protocol.js";
import { KINDS, size } from "./words.js";

const BYTES_PER_ROW = 16;
/** Rows of bytes before "more". */
const FIRST_ROWS = 12;

/** Offset, hexadecimal and text, as a hex editor shows them. */
export function hexRows(bytes: Uint8Array, from: number, rows: number): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length && lines.length < rows; at += BYTES_PER_ROW) {
    const row = bytes.subarray(at, at + BYTES_PER_ROW);
    const hexadecimal = Array.from(row, (byte) => byte.toString(16).padStart(2, "0"));
    const halves = [hexadecimal.slice(0, 8).join(" "), hexadecimal.slice(8).join(" ")];
    const text = Array.from(row, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${(from + at).toString(16).padStart(8, "0")}  ${halves.join("  ").padEnd(BYTES_PER_ROW * 3)}  ${text}`);
  }
  return lines.join("\n");
}

/** Nested fields, indented by as little as still shows what is in what. */
function narrow(text: string): string {
  return text.replace(/^ +/gm, (indent) => indent.slice(indent.length / 2));
}

/** A block of text that scrolls, also by the keyboard. */
function scrolled(label: string, text: string): HTMLElement {
  return element("pre", { class: "bytes", tabindex: "0", role: "region", "aria-label": label }, text);
}

export function itemView({ row, bytes, described }: ShownItem): HTMLElement {
  const short = hexRows(bytes, row.offset, FIRST_ROWS);
  const dump = scrolled(`Bytes of item ${row.item}`, short);
  const rows = Math.ceil(bytes.length / BYTES_PER_ROW);
  let more: HTMLButtonElement | null = null;
  if (rows > FIRST_ROWS) {
    more = element("button", { type: "button", class: "plain" }, `All ${size(bytes.length)}`);
    more.addEventListener("click", () => {
      dump.textContent = hexRows(bytes, row.offset, rows);
      more?.remove();
    });
  }
  const cut = bytes.length < row.length ? `, the first ${size(bytes.length)}` : "";
  const where: Child = element(
    "p",
    { class: "fine" },
    `${KINDS[row.kind]} · item ${row.item} · ${size(row.length)} at byte ${row.offset.toLocaleString("en")}`,
  );
  return element(
    "div",
    { class: "item", "data-testid": "shown-item", "data-item": String(row.item), "data-kind": row.kind },
    where,
    element(
      "div",
      { class: "beside" },
      element("div", {}, element("h4", {}, "What it says"), scrolled(`Fields of item ${row.item}`, narrow(described?.text ?? "It cannot be read."))),
      element("div", {}, element("h4", {}, `Its bytes${cut}`), dump, more),
    ),
  );
}

/** A place for an item, filled when it comes. */
export function laterItem(load: () => Promise<ShownItem | null>): HTMLElement {
  const where = element("div", { class: "later" }, element("p", { class: "fine" }, "Reading the item…"));
  void load().then(
    (item) => where.replaceChildren(item ? itemView(item) : element("p", { class: "fine" }, "The item is not there any more.")),
    () => where.replaceChildren(element("p", { class: "fine" }, "The item could not be read.")),
  );
  return where;
}
