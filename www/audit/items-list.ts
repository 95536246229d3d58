/** Every item of the file, a page at a time: what the verifier read, in the order in which it was seen. */
import type { ItemRow, Outline } from "remuda/inspect";
import { element, grouped } from "../shared/dom.js";
import type { Standings } from "./history.js";
import { laterItem } from "./item-view.js";
import type { ShownItem } from "./protocol.js";
import { KINDS, counted, size } from "./words.js";

const PAGE = 25;

export interface Load {
  rows(first: number, count: number): Promise<ItemRow[]>;
  item(item: number): Promise<ShownItem | null>;
}

export function itemsList({ items, kinds }: Outline, standings: Standings, load: Load): HTMLElement | null {
  if (items === 0) return null;
  let first = 0;
  const list = element("ol", { class: "items", "data-testid": "items" });
  const where = element("span", { class: "fine", role: "status" });
  const step = (text: string, by: number) => {
    const made = element("button", { type: "button", class: "plain" }, text);
    made.addEventListener("click", () => void show(first + by));
    return made;
  };
  const [before, after] = [step("Earlier", -PAGE), step("Later", PAGE)];
  const goto = element("input", { type: "number", min: "0", max: String(items - 1), inputmode: "numeric", "aria-label": "Go to item", placeholder: "item" });
  goto.addEventListener("change", () => void show(Math.floor(Number(goto.value) / PAGE) * PAGE));
  const show = async (from: number) => {
    first = Math.min(Math.max(from, 0), Math.floor((items - 1) / PAGE) * PAGE);
    before.disabled = first === 0;
    after.disabled = first + PAGE >= items;
    where.textContent = `${grouped(first)} to ${grouped(Math.min(first + PAGE, items) - 1)} of ${grouped(items)}`;
    const rows = await load.rows(first, PAGE).catch(() => []);
    list.replaceChildren(...rows.map((row) => entry(row, standings, load)));
  };
  const section = element(
    "details",
    { id: "items", class: "panel items-panel", "data-testid": "items-panel" },
    element("summary", {}, element("h2", {}, `All ${counted(items, "item")}`), element("span", { class: "fine" }, inventory(kinds))),
    element("div", { class: "pager" }, before, after, goto, where),
    list,
  );
  section.addEventListener("toggle", () => {
    if (section.open && list.childElementCount === 0) void show(0);
  });
  return section;
}

function inventory(kinds: Outline["kinds"]): string {
  const rows = Object.entries(kinds) as [keyof typeof KINDS, number][];
  return rows
    .sort(([, a], [, b]) => b - a)
    .slice(0, 4)
    .map(([kind, count]) => `${grouped(count)} × ${KINDS[kind]}`)
    .join(", ");
}

function entry({ item, kind, length, offset }: ItemRow, standings: Standings, load: Load): HTMLElement {
  const made = element(
    "details",
    { class: standings.alone(item) },
    element(
      "summary",
      {},
      element("span", { class: "number" }, String(item)),
      element("span", { class: "kind" }, KINDS[kind]),
      element("span", { class: "fine" }, `${size(length)} at byte ${grouped(offset)}`),
      standings.alone(item) === "bad" && element("span", { class: "tag" }, "does not hold"),
    ),
  );
  made.addEventListener("toggle", () => {
    if (made.open && made.childElementCount === 1) made.append(laterItem(() => load.item(item)));
  });
  return element("li", {}, made);
}
