/** The lanes page: connects, draws what is stored, then what comes. */
import type { Boundary, FailureEvent, HolderKey, Item, Remuda, Subscription, SubscriptionStatus } from "remuda";
import { RemudaError, connect, holderKey } from "remuda";
import { byTestId, element, grouped, say } from "../shared/dom.js";
import type { OwnRecord } from "./model.js";
import { Model, textOf } from "./model.js";
import { line, recount, stored } from "./recount.js";
import type { Setup } from "./setup.js";
import { chosenLanes, endpoints, fetched, hex, parameters, remembered, subscription, unhex } from "./setup.js";
import type { Refusal } from "./view.js";
import * as view from "./view.js";

/** Items before the last one that are drawn at the start; the ones before are counted behind it. */
const WINDOW = 400n;
const DRAW_MS = 120;
const RETRY_MS = 2_000;
const TOLD_MS = 8_000;
/** Planes of the peer's faults: they are shown in red, whatever the remedy. */
const FAULTS = ["verify", "decode", "protocol", "evidence"];

const asked = parameters(new URL(location.href));
/** Only who has every lane can say that no sequence is missing: the gaps of some lanes are the records of others (CIP-39 §12.2.1). */
const isWhole = asked.lanes === "all";

class Page {
  readonly #setup: Setup;
  readonly #remuda: Remuda;
  readonly #subscription: Subscription;
  readonly #model: Model;
  readonly #end = new AbortController();
  #key = "";
  /** The position as the database has it. */
  #boundary: Boundary | null = null;
  #isReading = false;
  #refusal: Refusal | null = null;
  /** A word about the connection, for a while. */
  #told: { text: string; atMs: number } | null = null;
  #hasEnded = false;
  #isCounted = false;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #lastDrawMs = 0;

  constructor(setup: Setup, remuda: Remuda) {
    this.#setup = setup;
    this.#remuda = remuda;
    this.#model = new Model(chosenLanes(asked, setup.info));
    this.#subscription = remuda.subscribe(subscription(asked, setup.info));
    const { signal } = this.#end;
    remuda.addEventListener("status", () => this.draw(), { signal });
    remuda.addEventListener("role", () => this.draw(), { signal });
    remuda.addEventListener(
      "batch",
      ({ detail }) => {
        if (detail.key !== this.#key) return;
        this.#model.last = detail;
        if (this.#refusal) this.#refusal.batchesSince += 1;
        this.draw();
      },
      { signal },
    );
    remuda.addEventListener(
      "transition",
      ({ detail }) => {
        if (detail.key === this.#key) this.#model.discarded.set(detail.toEpoch, detail.discarded);
      },
      { signal },
    );
    remuda.addEventListener(
      "append",
      ({ detail }) => {
        this.#model.advance(detail);
        this.draw();
      },
      { signal },
    );
    remuda.addEventListener(
      "failure",
      ({ detail }) => {
        if (detail.key === null || detail.key === this.#key) void this.#refused(detail);
      },
      { signal },
    );
    this.#forms(signal);
    const tick = setInterval(() => this.draw(), 1_000);
    signal.addEventListener("abort", () => clearInterval(tick));
    const tell = setInterval(() => this.#tell(), 15_000);
    signal.addEventListener("abort", () => clearInterval(tell));
    addEventListener("online", () => this.draw(), { signal });
    addEventListener("offline", () => this.draw(), { signal });
  }

  get setup(): Setup {
    return this.#setup;
  }

  async close(): Promise<void> {
    this.#end.abort();
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#remuda.close();
    view.forgetLanes();
  }

  /** Draws what is stored, then follows. */
  async run(): Promise<void> {
    this.draw();
    this.#key = await this.#subscription.key();
    this.#boundary = await this.#subscription.boundary();
    await this.#showOutbox();
    const last = this.#boundary?.lastItem ?? 0n;
    const first = last > WINDOW ? last - WINDOW : 0n;
    void this.#countEarlier(first);
    await this.#follow(first, last);
  }

  async #follow(after: bigint, storedThrough: bigint): Promise<void> {
    this.#hasEnded = false;
    const { signal } = this.#end;
    try {
      const items = this.#remuda.subscribe({ ...subscription(asked, this.#setup.info), after, signal });
      for await (const item of items) {
        this.#model.add(item, item.item > storedThrough);
        this.draw();
      }
    } catch (thrown) {
      if (signal.aborted) return;
      this.#hasEnded = true;
      await this.#refused({ type: "failure", key: this.#key, failure: RemudaError.from(thrown).toFailure() });
    }
    this.draw();
  }

  async #countEarlier(through: bigint): Promise<void> {
    try {
      for await (const item of stored(this.#subscription, through)) {
        if (this.#end.signal.aborted) return;
        this.#model.count(item);
      }
      this.#isCounted = true;
      this.draw();
    } catch (thrown) {
      if (!this.#end.signal.aborted) await this.#refused({ type: "failure", key: null, failure: RemudaError.from(thrown).toFailure() });
    }
  }

  get #status(): SubscriptionStatus | undefined {
    return this.#remuda.status.subscriptions.find(({ key }) => key === this.#key);
  }

  async #readPosition(): Promise<void> {
    if (this.#isReading || this.#key === "") return;
    this.#isReading = true;
    try {
      const boundary = await this.#subscription.boundary();
      const hasMoved = boundary?.revision !== this.#boundary?.revision;
      this.#boundary = boundary;
      if (hasMoved) this.draw();
    } catch (thrown) {
      if (!this.#end.signal.aborted) await this.#refused({ type: "failure", key: null, failure: RemudaError.from(thrown).toFailure() });
    } finally {
      this.#isReading = false;
    }
  }

  async #refused({ key, failure }: FailureEvent): Promise<void> {
    const plane = failure.code.split("/")[0] ?? "";
    // What time mends is said by the chip of the connection.
    if (failure.remedy === "retry" && !FAULTS.includes(plane)) return;
    // So is a session that the provider gave up: the client asks for another. It is told, not alarmed about, unless that was the last one.
    if (key === null && plane === "provider" && this.#remuda.status.connection !== "closed") {
      this.#told = { text: `${failure.code}: ${failure.meaning}. The client asks for a new session.`, atMs: Date.now() };
      this.draw();
      return;
    }
    const known = this.#refusal;
    if (known?.failure.code === failure.code && known.failure.meaning === failure.meaning) {
      if (known.failure.atMs !== failure.atMs) known.times += 1;
      known.failure = failure;
    } else {
      this.#refusal = { failure, held: await this.#subscription.boundary().catch(() => this.#boundary), batchesSince: 0, times: 1 };
    }
    this.draw();
  }

  #tell(): void {
    const { connection } = this.#remuda.status;
    say(byTestId("live"), `${grouped(this.#model.records)} records verified, connection ${connection}`);
  }

  // --- drawing

  draw(): void {
    if (this.#timer !== null || this.#end.signal.aborted) return;
    const wait = Math.max(0, this.#lastDrawMs + DRAW_MS - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#lastDrawMs = performance.now();
      this.#drawNow();
    }, wait);
  }

  #drawNow(): void {
    const { status, role } = this.#remuda;
    const model = this.#model;
    const now = Date.now();
    void this.#readPosition();
    view.drawConnection(status, navigator.onLine, now);
    if (this.#told && now - this.#told.atMs > TOLD_MS) this.#told = null;
    view.drawNotice(this.#told?.text ?? null);
    view.drawStorage(status.storage);
    view.drawRole(role);
    view.drawFigures(model, this.#status?.waiting ?? 0, this.#isCounted);
    view.drawChain(model.links);
    view.drawLanes(model, now);
    view.drawEvidence(model, this.#setup.info, this.#boundary);
    view.drawPosition(this.#boundary);
    view.drawEpochs(model, this.#boundary);
    view.drawOwn(model, (own) => void this.#appendAgain(own).catch(failed));
    const again = this.#hasEnded ? () => this.#tryAgain() : null;
    const isBehind = this.#hasEnded && this.#refusal?.failure.code === "provider/cursor-too-old";
    const acceptGap = isBehind ? () => void this.#acceptGap() : null;
    view.drawRefusal(this.#refusal, this.#boundary, { again, acceptGap, dismiss: () => this.#dismiss() });
    // Before the first batch a record could be durable ahead of where the subscription begins, and would never be shown so.
    byTestId<HTMLButtonElement>("append-send").disabled = this.#boundary === null && this.#status?.state !== "live";
    document.body.dataset["subscription"] = this.#hasEnded ? "failed" : (this.#status?.state ?? "");
  }

  #dismiss(): void {
    this.#refusal = null;
    this.draw();
  }

  /** A reader behind the signed floor goes on from there: what is missing becomes an item of its own. */
  async #acceptGap(): Promise<void> {
    try {
      await this.#subscription.acceptGap();
      this.#tryAgain();
    } catch (thrown) {
      await this.#refused({ type: "failure", key: null, failure: RemudaError.from(thrown).toFailure() });
    }
  }

  #tryAgain(): void {
    this.#refusal = null;
    void this.#follow(this.#model.lastItem, this.#model.lastItem);
    this.draw();
  }

  // --- what a person can do

  #forms(signal: AbortSignal): void {
    const form = byTestId<HTMLFormElement>("append");
    const lane = byTestId<HTMLSelectElement>("append-lane");
    const text = byTestId<HTMLInputElement>("append-text");
    lane.replaceChildren(...chosenLanes(asked, this.#setup.info).map(({ id, name }) => element("option", { value: id }, name)));
    lane.disabled = false;
    form.addEventListener(
      "submit",
      (event) => {
        event.preventDefault();
        if (text.value.trim() === "") return;
        void this.#append(lane.value, text.value.trim());
        text.value = "";
      },
      { signal },
    );
    byTestId("recount").addEventListener("click", () => void this.#recount(null), { signal });
    byTestId("export").addEventListener("click", () => void this.#export(), { signal });
  }

  async #append(lane: string, text: string): Promise<void> {
    const messageId = hex(crypto.getRandomValues(new Uint8Array(32)));
    const own: OwnRecord = { messageId, lane, text, entry: null, state: "storing", record: null, why: "" };
    this.#model.addOwn(own);
    this.draw();
    try {
      const { entry } = await this.#remuda.append({ lane, messageId, payload: new TextEncoder().encode(JSON.stringify({ text })) });
      if (own.state === "storing") Object.assign(own, { entry, state: "queued" });
    } catch (thrown) {
      own.state = "failed";
      own.why = RemudaError.from(thrown).code;
    }
    this.draw();
  }

  /** What failed is a message of its own from here on. */
  async #appendAgain({ lane, text, entry }: OwnRecord): Promise<void> {
    if (entry !== null) await this.#remuda.dismiss(entry);
    await this.#append(lane, text);
  }

  /** What an earlier life of this page has left in the outbox. */
  async #showOutbox(): Promise<void> {
    for await (const { entry, messageId, lane, state, record, failure, payload } of this.#remuda.outbox()) {
      if (state === "durable" || this.#model.own.some((own) => own.messageId === messageId)) continue;
      const { text } = textOf(payload ?? new Uint8Array());
      this.#model.addOwn({ messageId, lane, text, entry, state, record, why: failure?.code ?? "" });
    }
    this.draw();
  }

  async #recount(onItem: ((item: Item) => void) | null): Promise<void> {
    const where = byTestId("recounted");
    const buttons = [byTestId<HTMLButtonElement>("recount"), byTestId<HTMLButtonElement>("export")];
    for (const button of buttons) button.disabled = true;
    delete where.dataset["verdict"];
    try {
      const counted = await recount(this.#subscription, isWhole, (item) => onItem?.(item));
      const { items, records, transitions, problems, boundary } = counted;
      Object.assign(where.dataset, { items: String(items), records: String(records), transitions: String(transitions) });
      Object.assign(where.dataset, view.positionData(boundary));
      where.dataset["verdict"] = problems.length === 0 ? "good" : "bad";
      const whole = isWhole ? ", no sequence missing" : "";
      say(
        where,
        problems.length === 0
          ? `${grouped(items)} items: ${grouped(records)} records and ${grouped(transitions)} changes of epoch. In order, none twice${whole}; the position is where they end.`
          : `Not as it should be: ${problems.join("; ")}.`,
      );
    } catch (thrown) {
      where.dataset["verdict"] = "bad";
      say(where, RemudaError.from(thrown).message);
    }
    where.hidden = false;
    for (const button of buttons) button.disabled = false;
  }

  async #export(): Promise<void> {
    const lines: string[] = [];
    await this.#recount((item) => lines.push(line(item)));
    const address = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
    element("a", { href: address, download: `${asked.database}.jsonl` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  }
}

async function open(setup: Setup, holder: HolderKey): Promise<Page> {
  const { info, grant } = setup;
  const remuda = await connect({
    database: asked.database,
    node: [asked.node, ...asked.chainNodes],
    context: info.context,
    streamId: info.streamId,
    endpoint: endpoints(info, asked.transport),
    allowLoopback: true,
    grant: unhex(grant),
    renewGrant: async () => unhex((await fetched(asked, holder)).grant),
    signer: holder.privateKey,
  });
  return new Page(setup, remuda);
}

/** Opens with what is remembered, so that stored rows are there at once, and again if the node says otherwise. */
async function main(): Promise<void> {
  say(byTestId("where"), `node ${asked.node} · database ${asked.database}`);
  view.drawConnection(null, navigator.onLine, 0);
  const holder = await holderKey("demo");
  let page: Page | null = null;
  const start = async (setup: Setup) => {
    await page?.close();
    page = await open(setup, holder);
    void page.run().catch(failed);
  };

  const kept = remembered(asked);
  if (kept) await start(kept);
  for (;;) {
    try {
      const setup = await fetched(asked, holder);
      const current = (page as Page | null)?.setup;
      if (!current || current.info.streamId !== setup.info.streamId || current.info.context !== setup.info.context) {
        await start(setup);
      }
      view.drawNotice(null);
      return;
    } catch (thrown) {
      if (thrown instanceof RemudaError) throw thrown;
      if (!page) {
        view.drawConnection(null, false, 0);
        view.drawNotice(`${asked.node} does not answer (${String(thrown)}). Nothing is stored for it yet; trying again.`);
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

function failed(thrown: unknown): void {
  const failure = RemudaError.from(thrown).toFailure();
  view.drawRefusal({ failure, held: null, batchesSince: 0, times: 1 }, null, { again: null, acceptGap: null, dismiss: () => location.reload() });
}

main().catch(failed);
