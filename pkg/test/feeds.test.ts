/** The two sides of a source's worker, with a source that is told what to do. */
import { afterEach, describe, expect, test, vi } from "vitest";
import { RemudaError } from "../src/error.js";
import type { FeedsModule, WasmSource } from "../src/feeds/glue.js";
import { Feed } from "../src/feeds/feed.js";
import { FeedHost, POLL_MS } from "../src/feeds/host.js";
import type { FromFeedWorker, ToFeedWorker } from "../src/feeds/protocol.js";
import type { FeedWorkerLike, Spawn } from "../src/feeds/source.js";
import { Publisher } from "../src/feeds/cohort.js";
import type { Locks } from "../src/host.js";

afterEach(() => vi.useRealTimers());

/** Locks of one origin: a name is held by one, the others wait in line. */
class FakeLocks implements Locks {
  readonly #tails = new Map<string, Promise<void>>();
  readonly #held = new Set<string>();

  async request(name: string, options: { ifAvailable?: boolean; signal?: AbortSignal }, whileHeld: (lock: object | null) => Promise<void>) {
    if (options.ifAvailable && this.#held.has(name)) return whileHeld(null);
    const before = this.#tails.get(name) ?? Promise.resolve();
    const mine = before.then(async () => {
      if (options.signal?.aborted) throw options.signal.reason;
      this.#held.add(name);
      await whileHeld({}).finally(() => this.#held.delete(name));
    });
    this.#tails.set(name, mine.catch(() => undefined));
    return mine;
  }
}

/** A database, and the sources that are open on it. */
class Origin {
  readonly locks = new FakeLocks();
  readonly rows: bigint[] = [];
  readonly sources: FakeSource[] = [];

  /** A worker that is no thread: the host behind messages that arrive a little later. */
  readonly spawn: Spawn = () => {
    const worker: FeedWorkerLike = {
      postMessage: (message: ToFeedWorker) => queueMicrotask(() => host.receive(structuredClone(message))),
      onmessage: null,
      onerror: null,
      terminate: () => undefined,
    };
    const post = (message: FromFeedWorker) => queueMicrotask(() => worker.onmessage?.({ data: structuredClone(message) }));
    const open = async (options: { onEvent(event: unknown): void; sign?: (bytes: Uint8Array) => Promise<Uint8Array> }) => {
      const source = new FakeSource(this, options);
      this.sources.push(source);
      return source as unknown as WasmSource;
    };
    const module = { Feed: { open }, Subscriber: { open }, Publisher: { open } } as unknown as FeedsModule;
    const host = new FeedHost({ load: async () => module, locks: this.locks, post });
    return worker;
  };

  feed(): Promise<Feed> {
    return Feed.open({ endpoint: "https://a.example", stream: "s" }, this.spawn);
  }
}

class FakeSource {
  readonly key = "5a";
  readonly owner = "0b";
  isRunning = false;
  state = "idle";
  #end: (() => void) | null = null;
  fail: ((error: unknown) => void) | null = null;

  constructor(
    readonly origin: Origin,
    readonly options: { onEvent(event: unknown): void; sign?: (bytes: Uint8Array) => Promise<Uint8Array> },
  ) {}

  status() {
    return { state: this.state, storage: "ready", failure: null };
  }

  run(): Promise<void> {
    this.isRunning = true;
    this.tell("following");
    return new Promise((resolve, reject) => ([this.#end, this.fail] = [resolve, reject]));
  }

  tell(state: string, failure: unknown = null): void {
    this.state = state;
    this.options.onEvent({ type: "status", status: { ...this.status(), failure } });
  }

  store(item: bigint): void {
    this.origin.rows.push(item);
    this.options.onEvent({ type: "stored", lastItem: item });
  }

  async standing() {
    return { lastItem: BigInt(this.origin.rows.length), lastSequence: null };
  }

  async read(after: bigint) {
    return this.origin.rows.filter((item) => item > after).map((item) => ({ kind: "message", item }));
  }

  async publish(payload: Uint8Array) {
    return BigInt((await this.options.sign!(payload)).length);
  }

  close(): void {
    this.isRunning = false;
    this.#end?.();
  }
}

const settled = async () => {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
};

describe("a feed", () => {
  test("hands out what is stored, then what comes, to each iterator by itself", async () => {
    const origin = new Origin();
    origin.rows.push(1n, 2n);
    const feed = await origin.feed();
    expect([feed.role, feed.status.state]).toEqual(["owner", "following"]);
    const seen: bigint[][] = [[], []];
    const readers = [0n, 1n].map(async (after, at) => {
      for await (const { item } of feed.items({ after })) seen[at]!.push(item);
    });
    await settled();
    origin.sources[0]!.store(3n);
    await settled();
    expect(seen).toEqual([[1n, 2n, 3n], [2n, 3n]]);
    await feed.close();
    await Promise.all(readers);
    await expect(feed.retry()).rejects.toMatchObject({ code: "client/closed" });
  });

  test("throws what stopped it after the last stored item, and goes on when it does", async () => {
    const origin = new Origin();
    const feed = await origin.feed();
    const source = origin.sources[0]!;
    const seen: bigint[] = [];
    const reading = (async () => {
      for await (const { item } of feed.items()) seen.push(item);
    })();
    await settled();
    source.store(1n);
    source.tell("failed", { code: "watchtower/gap", remedy: "re-enter-at-boundary", rule: "CIP-7: sequences", meaning: "a gap", atMs: 0 });
    await expect(reading).rejects.toMatchObject({ code: "watchtower/gap", remedy: "re-enter-at-boundary", rule: "CIP-7: sequences" });
    expect(seen).toEqual([1n]);
    source.tell("following");
    source.store(2n);
    await settled();
    const { value } = await feed.items({ after: 1n })[Symbol.asyncIterator]().next();
    expect(value).toMatchObject({ item: 2n });
  });

  test("ends an iterator with the reason of its signal", async () => {
    const feed = await new Origin().feed();
    const end = new AbortController();
    const next = feed.items({ signal: end.signal })[Symbol.asyncIterator]().next();
    await settled();
    end.abort(new Error("enough"));
    await expect(next).rejects.toThrow("enough");
  });

  test("of two tabs one runs it; the other reads what is stored, and takes over", async () => {
    vi.useFakeTimers();
    const origin = new Origin();
    const [one, two] = [await origin.feed(), await origin.feed()];
    expect([one.role, two.role]).toEqual(["owner", "follower"]);
    expect(origin.sources.map(({ isRunning }) => isRunning)).toEqual([true, false]);
    const next = two.items()[Symbol.asyncIterator]().next();
    await settled();
    origin.sources[0]!.store(1n);
    await vi.advanceTimersByTimeAsync(POLL_MS);
    expect((await next).value).toMatchObject({ item: 1n });
    await one.close();
    await settled();
    expect(two.role).toBe("owner");
    expect(origin.sources[1]!.isRunning).toBe(true);
  });

  test("a database that fails stops it for good, with its code", async () => {
    const origin = new Origin();
    const feed = await origin.feed();
    const failures: string[] = [];
    feed.addEventListener("failure", ({ detail }) => failures.push(detail.code));
    const reading = feed.items()[Symbol.asyncIterator]().next();
    await settled();
    origin.sources[0]!.fail!(Object.assign(new Error("x"), { code: "store/quota", remedy: "surface", meaning: "full" }));
    await expect(reading).rejects.toMatchObject({ code: "store/quota" });
    expect([feed.status.state, failures]).toEqual(["failed", ["store/quota"]]);
  });

  test("nothing but what it can is called", async () => {
    const feed = await new Origin().feed();
    const call = (feed as unknown as { call(method: string): Promise<unknown> }).call.bind(feed);
    await expect(call("run")).rejects.toBeInstanceOf(RemudaError);
    await expect(call("constructor")).rejects.toMatchObject({ code: "client/invalid-argument" });
  });
});

test("a publisher is signed for by the page, and learns when that refuses", async () => {
  const origin = new Origin();
  let refuses = false;
  const signer = async () => {
    if (refuses) throw new Error("the wallet is locked");
    return new Uint8Array(65);
  };
  const publisher = await Publisher.open({ endpoint: "wss://a.example", topic: "00", key: { owner: "0b", signer } }, origin.spawn);
  expect(publisher.owner).toBe("0b");
  expect(await publisher.publish(Uint8Array.of(1))).toBe(65n);
  refuses = true;
  await expect(publisher.publish(Uint8Array.of(1))).rejects.toThrow("the wallet is locked");
});
