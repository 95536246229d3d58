/** The auditor's page: opens a file, has it judged in a worker, and shows what the verdict is of. */
import type { AuditEvidence } from "remuda/verify";
import type { Outline } from "remuda/inspect";
import { byTestId, element, grouped, say } from "../shared/dom.js";
import { groupHistories, receiptChains } from "./chains.js";
import { findings } from "./findings.js";
import { Standings } from "./history.js";
import { itemsList } from "./items-list.js";
import { Job, JobFailure } from "./job.js";
import { LaneMap } from "./lane-map.js";
import { keepOffline } from "./offline.js";
import type { Judged, Progress, ShownItem } from "./protocol.js";
import type { Sample } from "./samples.js";
import { loadSamples, openSample, samplesView } from "./samples.js";
import { save } from "./save.js";
import { side } from "./side.js";
import { snapshots } from "./snapshots.js";
import { timeline } from "./timeline.js";
import { counted, duration, records, size, verdictWords } from "./words.js";

const story = byTestId("story");
const aside = byTestId("side");

/** A file that is open: what was said of it, and the worker that knows it. */
class Audit {
  readonly job = new Job();
  readonly name: string;
  readonly #file: Blob;
  #judged: Judged | null = null;

  constructor(file: Blob, name: string) {
    this.#file = file;
    this.name = name;
  }

  async run(): Promise<void> {
    const judging = this.job.ask("judge", { file: this.#file }, (progress) => drawProgress("Auditing", this.name, progress));
    drawProgress("Auditing", this.name, { bytes: 0, totalBytes: this.#file.size, items: 0, declaredItems: null });
    const judged = await judging;
    this.#judged = judged;
    this.#drawVerdict(judged);
    if (judged.family !== "audit") {
      this.#draw(judged, null);
      return;
    }
    // The verdict is there; the pictures follow.
    aside.replaceChildren(...side(judged, null));
    drawProgress("Drawing what is in it", this.name, { bytes: 0, totalBytes: this.#file.size, items: 0, declaredItems: null });
    const outline = await this.job.ask("outline", {}, (progress) => drawProgress("Drawing what is in it", this.name, progress));
    this.#draw(judged, outline);
  }

  get item(): (item: number) => Promise<ShownItem | null> {
    return (item) => this.job.ask("item", { item });
  }

  #drawVerdict(judged: Judged): void {
    const { report, family, elapsedMs } = judged;
    const { tone, title, lead } = verdictWords(report, family);
    const { proven } = records(report);
    const figure = (name: string, value: string, id: string) => element("div", {}, element("dt", {}, name), element("dd", { "data-testid": id }, value));
    const saveReport = element("button", { type: "button", class: "plain", "data-testid": "save-report" }, "Save the report");
    saveReport.addEventListener("click", () => save(`${this.#stem}-report.json`, new Blob([`${JSON.stringify(report, null, 2)}\n`], { type: "application/json" })));
    const again = element("button", { type: "button", class: "plain", "data-testid": "again" }, "Open another file");
    again.addEventListener("click", () => close());
    const where = byTestId("verdict");
    Object.assign(where.dataset, { verdict: report.verdict, tone, family });
    where.replaceChildren(
      element("span", { class: "seal", "aria-hidden": "true" }),
      element(
        "div",
        { class: "verdict-words" },
        element("p", { class: "of" }, this.name),
        element("h2", { id: "verdict-title", "data-testid": "verdict-title" }, title),
        element("p", { class: "verdict-lead" }, lead),
        element("p", { class: "actions" }, again, saveReport),
      ),
      element(
        "dl",
        { class: "figures" },
        figure("Items", grouped(report.items), "items-count"),
        family === "audit" && figure("Records proven", `${grouped(proven)} of ${grouped(report.records)}`, "records-count"),
        figure("Signatures verified", grouped(report.signatures), "signatures-count"),
        figure("Judged in", duration(elapsedMs), "elapsed"),
      ),
    );
    byTestId("open").hidden = true;
    byTestId("result").hidden = false;
    say(byTestId("live"), `${title}. ${lead}`);
    where.focus({ preventScroll: true });
    scrollTo({ top: 0 });
  }

  #draw(judged: Judged, outline: Outline | null): void {
    byTestId("progress").hidden = true;
    const { report } = judged;
    const isRead = report.verdict !== "undecodable";
    const standings = new Standings(report, outline?.firstEnd ?? null);
    const open = { item: this.item, saveEvidence: (evidence: AuditEvidence, index: number) => void this.#saveEvidence(evidence, index) };
    const parts: HTMLElement[] = findings(judged, outline !== null && isRead, open);
    if (outline && isRead) parts.push(...this.#pictures(outline, report.findings, standings));
    if (outline) {
      const list = itemsList(outline, standings, { item: this.item, rows: (first, count) => this.job.ask("items", { first, count }) });
      if (list) parts.push(list);
    }
    story.replaceChildren(...parts);
    aside.replaceChildren(...side(judged, outline));
    jump(parts);
    byTestId("result").dataset["state"] = "drawn";
  }

  #pictures(outline: Outline, found: Judged["report"]["findings"], standings: Standings): HTMLElement[] {
    const map = LaneMap.of(outline, standings, this.item);
    const choose = (item: number) => {
      void map?.show(item);
      map?.element.scrollIntoView({ block: "nearest" });
    };
    const parts = [
      timeline(outline, standings, choose),
      map?.element ?? null,
      receiptChains(outline, standings),
      groupHistories(outline, standings),
      snapshots(outline, found),
    ];
    return parts.filter((part): part is HTMLElement => part !== null);
  }

  async #saveEvidence({ items }: AuditEvidence, index: number): Promise<void> {
    const name = `${this.#stem}-evidence-${index + 1}.audit`;
    // A file of evidence of another family is the evidence already.
    if (this.#judged?.family !== "audit") return save(name, this.#file);
    const bytes = await this.job.ask("evidence", { items });
    if (bytes) save(name, new Blob([bytes as Uint8Array<ArrayBuffer>]));
    else notice("The two statements could not be taken out of this file.");
  }

  get #stem(): string {
    return this.name.replace(/\.[^.]*$/, "").replace(/[^\w-]+/g, "-") || "audit";
  }
}

let current: Audit | null = null;

async function open(file: Blob, name: string): Promise<void> {
  current?.job.cancel();
  notice(null);
  reset();
  byTestId("progress").hidden = false;
  byTestId("open").hidden = true;
  const audit = new Audit(file, name);
  current = audit;
  try {
    await audit.run();
  } catch (thrown) {
    if (current !== audit) return;
    close();
    if (thrown instanceof DOMException && thrown.name === "AbortError") notice(`Cancelled: nothing is said of ${name}.`);
    else notice(thrown instanceof JobFailure ? `${name} could not be read (${thrown.code}). It may have been moved or changed meanwhile; open it again.` : String(thrown));
  }
}

/** Back to where a file is chosen. */
function close(): void {
  current?.job.cancel();
  current = null;
  reset();
  byTestId("open").hidden = false;
  byTestId("file").focus();
}

function reset(): void {
  byTestId("progress").hidden = true;
  byTestId("result").hidden = true;
  delete byTestId("result").dataset["state"];
  story.replaceChildren(...[0, 1].map(() => element("div", { class: "panel ghost", "aria-hidden": "true" })));
  aside.replaceChildren();
  byTestId("jump").replaceChildren();
}

function jump(parts: readonly HTMLElement[]): void {
  const links = parts.map((part) => element("a", { href: `#${part.id}` }, part.querySelector("h2")?.textContent ?? part.id));
  const where = byTestId("jump");
  where.hidden = links.length < 2;
  where.replaceChildren(...links);
}

function drawProgress(what: string, name: string, { bytes, totalBytes, items, declaredItems }: Progress): void {
  const where = byTestId("progress");
  where.hidden = false;
  where.dataset["bytes"] = String(bytes);
  say(byTestId("progress-title"), `${what}: ${name}`);
  byTestId<HTMLProgressElement>("progress-bar").value = totalBytes === 0 ? 1 : bytes / totalBytes;
  const of = declaredItems === null ? "" : ` of ${grouped(declaredItems)}`;
  say(byTestId("progress-text"), `${size(bytes)} of ${size(totalBytes)} · ${grouped(items)}${of} items`);
}

function notice(text: string | null): void {
  const where = byTestId("notice");
  where.hidden = text === null;
  say(where, text ?? "");
}

async function tryOut(sample: Sample): Promise<void> {
  try {
    await open(await openSample(sample), sample.title);
  } catch (thrown) {
    notice(`The sample did not load (${thrown instanceof Error ? thrown.message : String(thrown)}). Try again.`);
  }
}

function drops(): void {
  const veil = byTestId("veil");
  const hasFile = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
  addEventListener("dragover", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    veil.hidden = false;
  });
  addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) veil.hidden = true;
  });
  addEventListener("drop", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    veil.hidden = true;
    const file = event.dataTransfer?.files[0];
    if (file) void open(file, file.name);
  });
  const input = byTestId<HTMLInputElement>("file");
  input.addEventListener("change", () => {
    const file = input.files?.[0];
    // The same file can be chosen again.
    input.value = "";
    if (file) void open(file, file.name);
  });
}

/** Recording: the client is loaded only for whoever wants it. */
function recording(): void {
  const form = byTestId<HTMLFormElement>("record");
  const toggle = byTestId("record-toggle");
  toggle.addEventListener("click", () => {
    form.hidden = !form.hidden;
    toggle.setAttribute("aria-expanded", String(!form.hidden));
    if (!form.hidden) byTestId("record-node").focus();
  });
  const node = byTestId<HTMLInputElement>("record-node");
  node.value = new URL(location.href).searchParams.get("node") ?? location.origin;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const seconds = Number(byTestId<HTMLSelectElement>("record-seconds").value);
    void record(node.value.replace(/\/+$/, ""), seconds);
  });
}

let recorder: AbortController | null = null;

async function record(node: string, seconds: number): Promise<void> {
  const start = byTestId<HTMLButtonElement>("record-start");
  const end = new AbortController();
  recorder = end;
  start.disabled = true;
  notice(null);
  byTestId("progress").hidden = false;
  byTestId<HTMLProgressElement>("progress-bar").removeAttribute("value");
  say(byTestId("progress-title"), `Recording from ${node}`);
  say(byTestId("progress-text"), `What it serves for ${counted(seconds, "second")}; then it is audited.`);
  try {
    const { recordFrom } = await import("./provider.js");
    const { file, isComplete } = await recordFrom(node, seconds * 1_000, end.signal);
    await open(file, `recording of ${new URL(node).host}`);
    if (!isComplete) notice("The recording is not complete: there was no room for all of it. What it has was audited.");
  } catch (thrown) {
    byTestId("progress").hidden = true;
    const why = (thrown as { code?: string | number }).code;
    const said = typeof why === "string" ? why : thrown instanceof Error ? thrown.message : String(thrown);
    notice(end.signal.aborted ? `Cancelled: nothing was recorded from ${node}.` : `Nothing was recorded from ${node}: ${said}.`);
  } finally {
    recorder = null;
    start.disabled = false;
  }
}

byTestId("cancel").addEventListener("click", () => {
  recorder?.abort();
  current?.job.cancel();
});
reset();
drops();
recording();
loadSamples().then(
  (samples) => byTestId("samples").replaceChildren(samplesView(samples, (sample) => void tryOut(sample))),
  () => byTestId("samples").replaceChildren(element("p", { class: "fine" }, "The samples cannot be reached. Files of your own can be opened all the same.")),
);
void keepOffline();
