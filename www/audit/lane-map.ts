/** The lane map of one batch as a picture, and the path of one proof down its 256 levels. */
import type { LaneProof, Outline } from "remuda/inspect";
import { digest, element, graphic, grouped } from "../shared/dom.js";
import type { Standings } from "./history.js";
import type { Node } from "./prefix.js";
import { deepest, folds, occupied, path, place } from "./prefix.js";
import type { ShownItem } from "./protocol.js";
import { counted } from "./words.js";

const ROW = 20;
const LEAF = 34;
/** Levels that are drawn: below, a block is narrower than a line. */
const MOST_LEVELS = 9;

/** The section, which shows whichever checkpoint is chosen. */
export class LaneMap {
  readonly element: HTMLElement;
  readonly #checkpoints: { item: number; text: string }[];
  readonly #load: (item: number) => Promise<ShownItem | null>;
  readonly #pick: HTMLSelectElement;
  readonly #where: HTMLElement;
  #chosen = -1;

  private constructor(outline: Outline, first: number, load: (item: number) => Promise<ShownItem | null>) {
    this.#load = load;
    this.#checkpoints = outline.timeline.rows.flatMap((link) =>
      link.kind === "checkpoint" && link.subscription !== null ? [{ item: link.item, text: `epoch ${link.epoch}, sequences ${link.first} to ${link.last}` }] : [],
    );
    this.#pick = element("select", { "data-testid": "map-pick" }, ...this.#checkpoints.map(({ item, text }) => element("option", { value: String(item) }, text)));
    this.#pick.addEventListener("change", () => void this.show(Number(this.#pick.value)));
    this.#where = element("div", { class: "map-body" });
    this.element = element(
      "section",
      { id: "map", class: "panel", "aria-labelledby": "map-title", "data-testid": "map" },
      element("div", { class: "panel-head" }, element("h2", { id: "map-title" }, "The lane map of a batch"), element("label", { class: "pick" }, "Batch ", this.#pick)),
      element(
        "p",
        { class: "lead" },
        "Every lane has a fixed place in a tree of 2²⁵⁶ places. A checkpoint signs the root of it, and a proof shows what is at the place of ",
        "one lane: its records, or nothing.",
      ),
      this.#where,
    );
    void this.show(first);
  }

  /** Null where no checkpoint of the file has proofs. */
  static of(outline: Outline, standings: Standings, load: (item: number) => Promise<ShownItem | null>): LaneMap | null {
    if (outline.checkpointWithProofs === null) return null;
    const refused = outline.timeline.rows.find((link) => link.kind === "checkpoint" && link.subscription !== null && standings.ofCheckpoint(link) === "bad");
    return new LaneMap(outline, refused?.item ?? outline.checkpointWithProofs, load);
  }

  async show(item: number): Promise<void> {
    this.#chosen = item;
    this.#pick.value = String(item);
    const shown = await this.#load(item).catch(() => null);
    if (this.#chosen !== item) return;
    this.element.dataset["item"] = String(item);
    const proofs = shown?.described?.proofs ?? [];
    this.#where.replaceChildren(proofs.length === 0 ? element("p", { class: "fine" }, "This checkpoint came without lane proofs.") : map(proofs));
  }
}

function map(proofs: readonly LaneProof[]): HTMLElement {
  const present = proofs.filter(({ payload }) => payload !== null).length;
  const beside = occupied(proofs);
  const signed = proofs.every(({ isSigned }) => isSigned);
  const detail = element("div", { class: "path", "data-testid": "path" });
  const lanes = proofs.map((proof, index) => laneButton(proof, index));
  const svg = picture(proofs, beside);
  const choose = (index: number) => {
    lanes.forEach((button, at) => button.setAttribute("aria-pressed", String(at === index)));
    svg.querySelectorAll("[data-lane]").forEach((part) => part.classList.toggle("chosen", part.getAttribute("data-lane") === String(index)));
    detail.replaceChildren(pathOf(proofs[index]!));
  };
  lanes.forEach((button, index) => button.addEventListener("click", () => choose(index)));
  svg.querySelectorAll("circle[data-lane]").forEach((mark) => mark.addEventListener("click", () => choose(Number(mark.getAttribute("data-lane")))));
  const first = proofs.findIndex(({ payload }) => payload !== null);
  choose(Math.max(first, 0));
  return element(
    "div",
    {
      "data-testid": "map-body",
      "data-present": String(present),
      "data-absent": String(proofs.length - present),
      "data-occupied": String(beside.length),
      "data-signed": String(signed),
    },
    element("div", { class: "map-picture" }, svg),
    element(
      "ul",
      { class: "legend" },
      element("li", { "data-kind": "present" }, `${counted(present, "lane")} with records`),
      element("li", { "data-kind": "absent" }, `${counted(proofs.length - present, "lane")} proven to have none`),
      element("li", { "data-kind": "occupied" }, `${counted(beside.length, "occupied part")} of lanes outside this subscription`),
    ),
    element(
      "p",
      { class: signed ? "fold good" : "fold bad" },
      signed ? "Every proof folds into the one root that this checkpoint names." : "Not every proof folds into the root that this checkpoint names.",
    ),
    element("div", { class: "map-lanes", role: "group", "aria-label": "Lanes of this batch" }, ...lanes),
    detail,
  );
}

function laneButton({ lane, payload }: LaneProof, index: number): HTMLButtonElement {
  return element(
    "button",
    { type: "button", class: `lane-chip ${payload ? "present" : "absent"}`, "data-testid": "map-lane", "data-index": String(index), "aria-pressed": "false" },
    element("code", {}, lane.slice(0, 8)),
    element("span", {}, payload ? counted(payload.records, "record") : "none"),
  );
}

/** Across in per cent of the key space, so that it fits any width; down in pixels. */
function picture(proofs: readonly LaneProof[], beside: readonly Node[]): SVGElement {
  const levels = Math.min(deepest(proofs), MOST_LEVELS);
  const height = levels * ROW + ROW + LEAF;
  const present = proofs.filter(({ payload }) => payload !== null).length;
  const lanes = `${counted(present, "lane")} with records, ${counted(proofs.length - present, "lane")} without`;
  const label = `${lanes}, ${counted(beside.length, "part")} of the key space occupied by others`;
  const svg = graphic("svg", { height, role: "img", "aria-label": label, class: "tree" });
  const block = (node: Node, className: string, lane?: number) => {
    const { from, width } = place(node);
    return graphic("rect", {
      class: className,
      x: `${from * 100}%`,
      y: node.depth * ROW,
      width: `${width * 100}%`,
      height: ROW,
      rx: 3,
      ...(lane !== undefined && { "data-lane": lane }),
    });
  };
  const drawn = new Set<string>();
  for (const proof of proofs) {
    for (const node of path(proof, levels)) {
      if (drawn.has(node.prefix)) continue;
      drawn.add(node.prefix);
      svg.append(block(node, "known"));
    }
  }
  for (const node of beside) {
    if (node.depth > levels) continue;
    const rect = block(node, "occupied");
    rect.append(graphic("title", {}, `Occupied: lanes that begin with ${node.prefix}, outside this subscription`));
    svg.append(rect);
  }
  // The chosen path lies over the rest.
  proofs.forEach((proof, index) => path(proof, levels).forEach((node) => svg.append(block(node, "way", index))));
  const ground = (levels + 1) * ROW + LEAF / 2;
  svg.append(graphic("line", { class: "ground", x1: 0, x2: "100%", y1: ground, y2: ground }));
  proofs.forEach(({ lane, payload }, index) => {
    const at = `${(parseInt(lane.slice(0, 8), 16) / 2 ** 32) * 100}%`;
    svg.append(graphic("line", { class: "stem", x1: at, x2: at, y1: (levels + 1) * ROW, y2: ground, "data-lane": index }));
    const mark = graphic("circle", { class: payload ? "present" : "absent", cx: at, cy: ground, r: 7, "data-lane": index });
    mark.append(graphic("title", {}, `Lane ${lane.slice(0, 8)}…: ${payload ? counted(payload.records, "record") : "no record"}`));
    svg.append(mark);
  });
  return svg;
}

function pathOf(proof: LaneProof): HTMLElement {
  const { lane, payload, leaf, mapRoot, isSigned } = proof;
  const rows = folds(proof).map((fold) =>
    fold.kind === "level"
      ? element(
          "tr",
          {},
          element("td", {}, String(fold.level.depth)),
          element("td", {}, fold.level.goes === 0 ? "left" : "right"),
          element("td", {}, digest(fold.level.sibling)),
          element("td", {}, digest(fold.level.node)),
        )
      : element(
          "tr",
          { class: "folded" },
          element("td", {}, fold.from === fold.to ? String(fold.from) : `${fold.from}–${fold.to}`),
          element("td", { colspan: "3" }, `${counted(fold.to - fold.from + 1, "empty subtree")} beside it, folded`),
        ),
  );
  const says = payload
    ? `It is there: ${counted(payload.records, "record")}, sequences ${grouped(payload.first)} to ${grouped(payload.last)}.`
    : "It is not there: the batch has no record of this lane.";
  return element(
    "div",
    { "data-testid": "path-of", "data-lane": lane, "data-signed": String(isSigned), "data-levels": String(proof.levels.length) },
    element("h3", {}, "Lane ", digest(lane)),
    element("p", {}, says),
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "The path of this proof, from the root down" },
      element(
        "table",
        { class: "levels" },
        element("thead", {}, element("tr", {}, ...["Level", "Goes", "Beside it", "On the path"].map((name) => element("th", { scope: "col" }, name)))),
        element("tbody", {}, ...rows),
      ),
    ),
    element(
      "p",
      { class: isSigned ? "fold good" : "fold bad" },
      leaf ? "From the leaf " : "From an empty place",
      leaf && digest(leaf),
      " it folds to ",
      digest(mapRoot),
      isSigned ? ", the root that the checkpoint names." : ", which is not what the checkpoint names.",
    ),
  );
}
