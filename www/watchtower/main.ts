/** The Watchtower page: follows the demo's feed, draws what is stored, then what comes. */
import type { Failure } from "remuda";
import type { Feed, FeedItem, FeedStatus, KeyEntry } from "remuda/watchtower";
import { RemudaError, openFeed } from "remuda/watchtower";
import { byTestId, digest, element, facts, grouped, say } from "../shared/dom.js";
import type { Tone } from "../shared/source-view.js";
import { Newest, badge, button, chip, drawFailure, drawNotice, drawRole, drawStorage, json, readable, row } from "../shared/source-view.js";

/** Rows that are drawn; the rest stays in the database. */
const SHOWN = 16;
const DRAW_MS = 120;
const RETRY_MS = 2_000;

/** `GET {node}/demo/watchtower`. */
interface Info {
  streamId: string;
  schedule: { signingKeyId: string; pubkey: string; effectiveSequence: string }[];
  paid: boolean;
}

const address = new URL(location.href).searchParams;
const node = (address.get("node") ?? location.origin).replace(/\/+$/, "");
const database = address.get("database") ?? "remuda-feeds";
/** Only messages of this kind, when one is named. */
const kind = address.get("kind");
/** Whether the demo's word on the keys is taken before the actor's. */
const isPinned = address.get("pinned") !== "false";

const STATES: Record<FeedStatus["state"], [Tone, string]> = {
  idle: ["quiet", "following elsewhere"],
  following: ["good", "following"],
  "awaiting-key": ["wait", "waits for a key"],
  "cursor-too-old": ["wait", "position is gone"],
  failed: ["bad", "stopped"],
  closed: ["quiet", "closed"],
};

class Page {
  readonly #feed: Feed;
  readonly #info: Info;
  readonly #rows = new Newest("items", SHOWN);
  #stored = 0n;
  #gaps = 0n;
  #last: Extract<FeedItem, { kind: "message" }> | null = null;
  #lastSequence: bigint | null = null;
  #equivocation: Uint8Array | null = null;
  #failure: Failure | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(feed: Feed, info: Info) {
    this.#feed = feed;
    this.#info = info;
    feed.addEventListener("status", () => this.draw());
    feed.addEventListener("role", () => this.draw());
    feed.addEventListener("equivocation", ({ detail }) => {
      this.#equivocation = detail.evidence;
    });
    byTestId("publish").addEventListener("submit", (event) => {
      event.preventDefault();
      const text = byTestId<HTMLInputElement>("publish-text");
      void this.#attempt(() => json(`${node}/demo/watchtower/publish`, { text: text.value }));
      text.value = "";
    });
    byTestId("rotate").addEventListener("click", () => void this.#attempt(() => json(`${node}/demo/watchtower/rotate`, {})));
    say(byTestId("where"), `node ${node} · stream ${info.streamId} · database ${database}`);
  }

  /** Draws every item, from the first that is stored. */
  async follow(): Promise<void> {
    this.draw();
    for (;;) {
      try {
        for await (const item of this.#feed.items({ after: this.#stored })) this.#add(item);
        return;
      } catch (thrown) {
        const { failure } = this.#feed.status;
        this.#failure = failure ?? RemudaError.from(thrown).toFailure();
        this.draw();
        await this.#wentOn();
      }
    }
  }

  /** Until the feed follows again. */
  #wentOn(): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (this.#feed.status.state === "failed") return;
        this.#feed.removeEventListener("status", look);
        this.#failure = null;
        resolve();
      };
      this.#feed.addEventListener("status", look);
    });
  }

  #add(item: FeedItem): void {
    this.#stored = item.item;
    if (item.kind === "gap") {
      this.#gaps += item.last - item.first + 1n;
      const text = `${grouped(item.last - item.first + 1n)} messages are lost: they were no longer retained`;
      const data = { kind: "gap", first: String(item.first), last: String(item.last) };
      this.#rows.add(row("item", data, `${item.first}–${item.last}`, text, badge("waiting", "gap")));
    } else {
      this.#last = item;
      const data = { kind: "message", sequence: String(item.sequence), signingKey: String(item.signingKeyId) };
      const sealed = item.keyEpoch === null ? "" : `, opened with the key of epoch ${item.keyEpoch}`;
      const verdict = item.payload === null ? badge("refused", item.unopened ?? "") : badge("verified", `key ${item.signingKeyId}`, `Signed by key ${item.signingKeyId}${sealed}`);
      const text = element("span", {}, element("small", {}, item.messageKind), readable(item.payload));
      this.#rows.add(row("item", data, `#${item.sequence}`, text, verdict));
    }
    this.draw();
  }

  async #attempt(act: () => Promise<unknown>): Promise<void> {
    try {
      await act();
    } catch (thrown) {
      drawNotice(String(thrown));
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
    const { status, role } = this.#feed;
    const standing = await this.#feed.standing().catch(() => null);
    if (standing) this.#lastSequence = standing.lastSequence;
    const [tone, text]: [Tone, string] = status.unreachable === null ? STATES[status.state] : ["wait", "no answer, asking again"];
    chip("state", status.state, tone, text);
    drawStorage(status.storage);
    drawRole(role);
    say(byTestId("verified"), grouped(status.verified));
    const stored = byTestId("stored");
    stored.dataset["item"] = String(standing?.lastItem ?? this.#stored);
    say(stored, grouped(standing?.lastItem ?? this.#stored));
    say(byTestId("pending"), grouped(status.pending));
    say(byTestId("requests"), grouped(status.requests));
    this.#drawEvidence(status);
    this.#drawNotice(status);
    const held = this.#lastSequence === null ? "nothing stored" : `stays at sequence ${this.#lastSequence}`;
    drawFailure(this.#failure, held, () => void this.#feed.retry());
  }

  #drawNotice(status: FeedStatus): void {
    const { cursorTooOld, missingEpochs } = status;
    if (cursorTooOld) {
      const { floorSequence, headSequence } = cursorTooOld;
      drawNotice(
        `What comes after sequence ${status.verifiedSequence} is no longer retained: the actor has ${floorSequence} to ${headSequence}.`,
        button("Resume at the oldest", () => void this.#feed.choose("resume"), "resume"),
        button("Go to the head", () => void this.#feed.choose("reattach"), "reattach"),
      );
    } else if (missingEpochs.length > 0) {
      const epoch = missingEpochs[0]!;
      drawNotice(
        `${status.pending} messages are sealed under epoch ${epoch} and wait, in order, for its key.`,
        button("Get the key from the demo", () => void this.#attempt(() => this.#giveKey(epoch)), "give-key"),
      );
    } else {
      drawNotice(null);
    }
  }

  async #giveKey(epoch: bigint): Promise<void> {
    const { key } = await json<{ key: string }>(`${node}/demo/watchtower/content-key?epoch=${epoch}`);
    await this.#feed.giveKey(epoch, Uint8Array.from(key.match(/../g) ?? [], (pair) => parseInt(pair, 16)));
  }

  #drawEvidence(status: FeedStatus): void {
    const last = this.#last;
    const key = this.#info.schedule.at(-1);
    byTestId("evidence").replaceChildren(
      facts([
        ["Stream", this.#info.streamId],
        ["Signed by", last ? [`key ${last.signingKeyId} of the schedule`, element("small", {}, isPinned ? "pinned by this page" : "by the actor’s first word")] : "–"],
        ["Newest key known", key ? digest(key.pubkey) : "–"],
        ["Payload", last?.keyEpoch == null ? "readable by anyone" : `sealed, epoch ${last.keyEpoch}`],
        ["Two for one place", this.#equivocation ? `${this.#equivocation.length} bytes of evidence` : "none seen"],
        ["Not wanted", kind === null ? "nothing" : `${grouped(status.filtered)} of other kinds`],
        ["Came again", grouped(status.repeats)],
      ]),
    );
    const where = byTestId("standing");
    where.dataset["sequence"] = String(this.#lastSequence ?? "");
    where.replaceChildren(
      facts([
        ["Sequence", this.#lastSequence === null ? "–" : grouped(this.#lastSequence)],
        ["Items", grouped(this.#stored)],
        ["Reported lost", grouped(this.#gaps)],
      ]),
    );
  }
}

async function main(): Promise<void> {
  for (;;) {
    try {
      const info = await json<Info>(`${node}/demo/watchtower`);
      drawNotice(null);
      const schedule: KeyEntry[] = info.schedule.map(({ signingKeyId, pubkey, effectiveSequence }) => ({
        signingKeyId: BigInt(signingKeyId),
        pubkey,
        effectiveSequence: BigInt(effectiveSequence),
      }));
      const feed = await openFeed({
        endpoint: node,
        allowLoopback: true,
        database,
        stream: info.streamId,
        start: 0n,
        cadence: { leastMs: 250, mostMs: 5_000 },
        ...(isPinned && { schedule }),
        ...(kind !== null && { filter: { field: "kind", op: "eq", value: kind } }),
      });
      await new Page(feed, info).follow();
      return;
    } catch (thrown) {
      if (thrown instanceof RemudaError) throw thrown;
      drawNotice(`${node} does not answer (${String(thrown)}); trying again.`);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

main().catch((thrown: unknown) => drawFailure(RemudaError.from(thrown).toFailure(), "–", () => location.reload()));
