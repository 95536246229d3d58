/** The page of broadcasts: signs updates as one author, and receives that author's updates from a broker. */
import type { Failure } from "remuda";
import type { Publisher, Subscriber, SubscriberStatus, Update } from "remuda/bps";
import { RemudaError, openPublisher, openSubscriber, ownerOf } from "remuda/bps";
import { byTestId, digest, element, facts, grouped, say } from "../shared/dom.js";
import type { Tone } from "../shared/source-view.js";
import { Newest, badge, chip, drawFailure, drawNotice, drawRole, drawStorage, json, readable, row } from "../shared/source-view.js";

/** Rows that are drawn; the rest stays in the database. */
const SHOWN = 16;
const DRAW_MS = 120;
const RETRY_MS = 2_000;

const address = new URL(location.href).searchParams;
const node = (address.get("node") ?? location.origin).replace(/\/+$/, "");
const sockets = node.replace(/^http/, "ws");
const database = address.get("database") ?? "remuda-feeds";
const topic = address.get("topic") ?? "52656d756461".padEnd(64, "0");
const isDirect = address.get("transport") === "direct";

const STATES: Record<SubscriberStatus["state"], [Tone, string]> = {
  idle: ["quiet", "received elsewhere"],
  connecting: ["wait", "connecting"],
  open: ["good", isDirect ? "open, directly" : "open, over the node"],
  waiting: ["wait", "connects again"],
  failed: ["bad", "stopped"],
  closed: ["quiet", "closed"],
};

interface Sides {
  owner: string;
  subscriber: Subscriber;
  /** Null where the page follows another author. */
  publisher: Publisher | null;
  broker: string;
}

class Page {
  readonly #sides: Sides;
  readonly #rows = new Newest("items", SHOWN);
  #stored = 0n;
  #missing = 0n;
  #index: bigint | null = null;
  #sent: bigint | null = null;
  #failure: Failure | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(sides: Sides) {
    this.#sides = sides;
    const { subscriber, publisher } = sides;
    subscriber.addEventListener("status", () => this.draw());
    subscriber.addEventListener("role", () => this.draw());
    publisher?.addEventListener("status", () => this.draw());
    const form = byTestId("publish");
    form.hidden = publisher === null;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = byTestId<HTMLInputElement>("publish-text");
      void this.#publish(text.value);
      text.value = "";
    });
    say(byTestId("where"), `node ${node} · broker ${sides.broker} · database ${database}`);
  }

  /** Draws every update, from the first that is stored. */
  async follow(): Promise<void> {
    this.draw();
    try {
      for await (const update of this.#sides.subscriber.updates()) this.#add(update);
    } catch (thrown) {
      this.#failure = RemudaError.from(thrown).toFailure();
      this.draw();
    }
  }

  #add({ item, index, payload, gap }: Update): void {
    this.#stored = item;
    if (gap) {
      const count = gap.last - gap.first + 1n;
      this.#missing += count;
      const data = { kind: "gap", first: String(gap.first), last: String(gap.last) };
      this.#rows.add(row("item", data, `${gap.first}–${gap.last}`, `${grouped(count)} updates never came`, badge("waiting", "gap")));
    }
    const data = { kind: "update", index: String(index) };
    this.#rows.add(row("item", data, `#${index}`, readable(payload), badge("verified", "signed by the author")));
    this.draw();
  }

  async #publish(text: string): Promise<void> {
    try {
      this.#sent = await this.#sides.publisher!.publish(new TextEncoder().encode(text));
      this.draw();
    } catch (thrown) {
      drawNotice(RemudaError.from(thrown).message);
    }
  }

  // --- drawing

  draw(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      void this.#drawNow();
    }, DRAW_MS);
  }

  async #drawNow(): Promise<void> {
    const { subscriber, publisher, owner, broker } = this.#sides;
    const { status, role } = subscriber;
    const standing = await subscriber.standing().catch(() => null);
    if (standing) this.#index = standing.index;
    chip("state", status.state, ...STATES[status.state]);
    drawStorage(status.storage);
    drawRole(role);
    say(byTestId("verified"), grouped(status.verified));
    say(byTestId("stored"), grouped(standing?.lastItem ?? this.#stored));
    say(byTestId("missing"), grouped(this.#missing));
    const dropped = byTestId("dropped");
    dropped.dataset["replayed"] = String(status.replayedIndex);
    say(dropped, grouped(status.replayedIndex + status.unknownKind));
    byTestId("evidence").replaceChildren(
      facts([
        ["Author", digest(owner)],
        ["Topic", digest(topic)],
        ["Broker", digest(broker)],
        ["Claims seen", grouped(status.claims)],
      ]),
    );
    const where = byTestId("standing");
    where.dataset["index"] = String(this.#index ?? "");
    const sender = publisher?.status;
    where.replaceChildren(
      facts([
        ["Last index", this.#index === null ? "–" : grouped(this.#index)],
        ["Updates", grouped(this.#stored)],
        ["Next of ours", sender ? [grouped(sender.nextIndex), element("small", {}, "durable before it is used")] : "–"],
        ["Sent last", this.#sent === null ? "–" : `#${this.#sent}`],
      ]),
    );
    where.dataset["sender"] = sender?.state ?? "";
    const held = this.#index === null ? "nothing stored" : `stays at index ${this.#index}`;
    // A subscriber whose broker broke a rule is over, and so is a publisher that was offered what it does not derive.
    const failure = this.#failure ?? (sender?.state === "failed" ? sender.failure : null);
    drawFailure(failure, held, () => location.reload());
    const ended = status.state === "waiting" ? status.lastEnd : null;
    drawNotice(ended && `${ended.code}: ${ended.meaning}. The page connects again by itself.`);
  }
}

/** The demo's author: a key of this browser, not one to keep anything of value with. */
function demoKey(): Uint8Array {
  const slot = `remuda-bps ${database}`;
  const kept = localStorage.getItem(slot);
  if (kept) return Uint8Array.from(kept.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const key = crypto.getRandomValues(new Uint8Array(32));
  localStorage.setItem(slot, Array.from(key, (byte) => byte.toString(16).padStart(2, "0")).join(""));
  return key;
}

async function open(broker: string): Promise<Sides> {
  const endpoint = isDirect ? `${sockets}/bps/direct` : sockets;
  const common = { endpoint, allowLoopback: true, database, topic, ...(!isDirect && { broker }) };
  const followed = address.get("owner");
  const key = followed === null ? demoKey() : null;
  const owner = followed ?? (await ownerOf(key!));
  const subscriber = await openSubscriber({ ...common, owner });
  return { owner, broker, subscriber, publisher: key && (await openPublisher({ ...common, key })) };
}

async function main(): Promise<void> {
  for (;;) {
    try {
      const { broker } = await json<{ broker: string }>(`${node}/demo/bps`);
      drawNotice(null);
      await new Page(await open(broker)).follow();
      return;
    } catch (thrown) {
      if (thrown instanceof RemudaError) throw thrown;
      drawNotice(`${node} does not answer (${String(thrown)}); trying again.`);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

main().catch((thrown: unknown) => drawFailure(RemudaError.from(thrown).toFailure(), "–", () => location.reload()));
