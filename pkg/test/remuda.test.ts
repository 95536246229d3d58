import { afterEach, describe, expect, test, vi } from "vitest";
import { PAGE_BYTES } from "../src/items.js";
import type { FromWorker } from "../src/protocol.js";
import type { WorkerLike } from "../src/remuda.js";
import { Remuda } from "../src/remuda.js";
import type { Item } from "../src/types.js";
import { DURABLE, FAILED, LANE, OPTIONS, Origin, PROVISIONAL, SPEC, Tab, record, settle, status } from "./fakes.js";

const KEY = `scoped-proofs:${LANE}`;

afterEach(() => vi.useRealTimers());

/** A page over a real host, whose worker is a fake. */
class Page {
  readonly origin = new Origin();
  readonly workers: Tab[] = [];
  readonly reads: bigint[] = [];
  readonly remuda: Remuda;

  constructor(
    signer: (digest: Uint8Array) => Promise<Uint8Array> = async () => new Uint8Array(64),
    renewGrant: (() => Promise<Uint8Array>) | null = null,
  ) {
    const { key: _, renewsGrant: __, ...options } = OPTIONS;
    this.remuda = new Remuda(() => this.#worker(), options, signer, renewGrant);
  }

  get tab(): Tab {
    return this.workers.at(-1)!;
  }

  #worker(): WorkerLike {
    const tab = new Tab(this.origin, `tab-${this.workers.length}`);
    this.workers.push(tab);
    const worker: WorkerLike = {
      onmessage: null,
      onerror: null,
      postMessage: (message) => {
        if (message.type === "call" && message.name === "read") this.reads.push(message.after);
        const clone = structuredClone(message);
        queueMicrotask(() => tab.life.isDead || tab.host.receive(clone));
      },
      terminate: () => tab.kill(),
    };
    tab.onPost = (data: FromWorker) => queueMicrotask(() => worker.onmessage?.({ data }));
    return worker;
  }

  commit(...items: Item[]): void {
    this.origin.commit(KEY, items);
    this.tab.client.emit({ type: "committed", key: KEY, lastItem: items.at(-1)!.item });
  }
}

async function page(): Promise<Page> {
  const made = new Page();
  await made.remuda.open();
  return made;
}

async function take(items: AsyncIterator<Item>, count: number): Promise<bigint[]> {
  const taken: bigint[] = [];
  for (let index = 0; index < count; index++) {
    const { done, value } = await items.next();
    if (done) break;
    taken.push(value.item);
  }
  return taken;
}

describe("iterating", () => {
  test("stored items first, then what comes, in order and once", async () => {
    const p = await page();
    p.origin.commit(KEY, [record(1n), record(2n)]);
    const items = p.remuda.subscribe(SPEC)[Symbol.asyncIterator]();
    expect(await take(items, 2)).toEqual([1n, 2n]);
    const next = take(items, 2);
    await settle();
    p.commit(record(3n));
    await settle();
    p.commit(record(4n));
    expect(await next).toEqual([3n, 4n]);
  });

  test("after", async () => {
    const p = await page();
    p.origin.commit(KEY, [record(1n), record(2n), record(3n)]);
    expect(await take(p.remuda.subscribe({ ...SPEC, after: 2n })[Symbol.asyncIterator](), 1)).toEqual([3n]);
  });

  test("a slow consumer makes no reads and holds one page", async () => {
    const p = await page();
    p.origin.commit(KEY, Array.from({ length: 100 }, (_, index) => record(BigInt(index + 1), PAGE_BYTES / 4)));
    const items = p.remuda.subscribe(SPEC)[Symbol.asyncIterator]();
    expect(await take(items, 4)).toEqual([1n, 2n, 3n, 4n]);
    for (let extra = 0; extra < 50; extra++) p.commit(record(BigInt(101 + extra)));
    await settle();
    expect(p.reads).toEqual([0n]);
    await take(items, 1);
    expect(p.reads).toEqual([0n, 4n]);
  });

  test("several at once, each with its own place; the last one to end unsubscribes", async () => {
    const p = await page();
    p.origin.commit(KEY, [record(1n), record(2n), record(3n)]);
    const subscription = p.remuda.subscribe(SPEC);
    const first = subscription[Symbol.asyncIterator]();
    const second = subscription[Symbol.asyncIterator]();
    expect(await Promise.all([take(first, 3), take(second, 1)])).toEqual([[1n, 2n, 3n], [1n]]);
    await first.return!();
    await settle();
    expect(p.tab.client.open).toContain(KEY);
    expect(await take(second, 2)).toEqual([2n, 3n]);
    await second.return!();
    await settle();
    expect(p.tab.client.open).not.toContain(KEY);
  });

  test("overlapping calls of next are answered in order", async () => {
    const p = await page();
    const items = p.remuda.subscribe(SPEC)[Symbol.asyncIterator]();
    const three = Promise.all([items.next(), items.next(), items.next()]);
    await settle();
    p.commit(record(1n), record(2n), record(3n));
    expect((await three).map(({ value }) => value?.item)).toEqual([1n, 2n, 3n]);
  });

  test("nothing is subscribed before the first next", async () => {
    const p = await page();
    p.remuda.subscribe(SPEC)[Symbol.asyncIterator]();
    await settle();
    expect(p.tab.client.open.size).toBe(0);
  });

  test("break ends the subscription, return ends a wait", async () => {
    const p = await page();
    p.origin.commit(KEY, [record(1n)]);
    for await (const item of p.remuda.subscribe(SPEC)) if (item.item === 1n) break;
    await settle();
    expect(p.tab.client.open.size).toBe(0);
    const items = p.remuda.subscribe({ ...SPEC, after: 1n })[Symbol.asyncIterator]();
    const waiting = items.next();
    await settle();
    await items.return!();
    expect(await waiting).toEqual({ done: true, value: undefined });
  });

  test("closing ends every iterator cleanly", async () => {
    const p = await page();
    const waiting = p.remuda.subscribe(SPEC)[Symbol.asyncIterator]().next();
    await settle();
    await p.remuda.close();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(await p.remuda.subscribe(SPEC)[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined });
    expect(p.tab.life.isDead).toBe(true);
  });

  test("an aborted signal throws its reason, waiting or not", async () => {
    const p = await page();
    const abort = new AbortController();
    const items = p.remuda.subscribe({ ...SPEC, signal: abort.signal })[Symbol.asyncIterator]();
    const waiting = items.next();
    waiting.catch(() => undefined);
    await settle();
    abort.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    expect(await items.next()).toEqual({ done: true, value: undefined });
    await settle();
    expect(p.tab.client.open.size).toBe(0);
    await expect(p.remuda.subscribe({ ...SPEC, signal: abort.signal })[Symbol.asyncIterator]().next()).rejects.toThrow("enough");
  });

  test("what ends a subscription is thrown after its last stored item", async () => {
    const p = await page();
    p.origin.commit(KEY, [record(1n)]);
    const items = p.remuda.subscribe(SPEC)[Symbol.asyncIterator]();
    expect(await take(items, 1)).toEqual([1n]);
    const waiting = items.next();
    waiting.catch(() => undefined);
    await settle();
    const failure = { code: "verify/lane-count", remedy: "halt", rule: "CIP-39 §12.2.1", meaning: "m", atMs: 1 };
    p.tab.client.emit({
      type: "status",
      status: status({
        subscriptions: [
          {
            key: KEY,
            lanes: [LANE],
            verification: "scoped-proofs",
            state: "failed",
            boundary: null,
            waiting: 0,
            floor: null,
            verifiedRecords: 1n,
            verifiedBatches: 1n,
            durableWatermark: null,
            failure,
          },
        ],
      }),
    });
    await expect(waiting).rejects.toMatchObject({ name: "RemudaError", code: "verify/lane-count", rule: "CIP-39 §12.2.1", remedy: "halt" });
  });

  test("an error of the database reaches the consumer", async () => {
    const p = await page();
    p.tab.client.read = () => Promise.reject(Object.assign(new Error(), { code: "store/quota", remedy: "surface", meaning: "full" }));
    await expect(p.remuda.subscribe(SPEC)[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "store/quota" });
  });

  test("the position", async () => {
    const p = await page();
    expect(await p.remuda.subscribe(SPEC).boundary()).toBeNull();
    p.origin.commit(KEY, [record(1n)]);
    expect(await p.remuda.subscribe(SPEC).boundary()).toMatchObject({ lastItem: 1n });
    await settle();
    expect(p.tab.client.open.size).toBe(0);
  });
});

describe("a worker that breaks", () => {
  test("is replaced, is reported, and iterators go on", async () => {
    const p = await page();
    const failures: string[] = [];
    p.remuda.addEventListener("failure", ({ detail }) => failures.push(detail.failure.code));
    const items = p.remuda.subscribe(SPEC)[Symbol.asyncIterator]();
    const waiting = items.next();
    await settle();
    p.tab.host.uncaught(new WebAssembly.RuntimeError("unreachable"));
    await settle();
    expect(failures).toEqual(["client/trap"]);
    expect(p.remuda.status.connection).toBe("waiting");
    await vi.waitFor(() => expect(p.workers).toHaveLength(2), 1_000);
    await settle();
    expect(p.tab.client.open).toContain(KEY);
    p.commit(record(1n));
    expect((await waiting).value).toMatchObject({ item: 1n });
  });

  test("goes on with what is in the outbox", async () => {
    const p = await page();
    const ticket = await p.remuda.append({ lane: LANE, payload: new Uint8Array(1) });
    p.tab.host.uncaught(new WebAssembly.RuntimeError("unreachable"));
    await settle();
    // What it became while nobody was there to hear it.
    p.origin.advance(ticket.entry, DURABLE);
    await vi.waitFor(() => expect(p.workers).toHaveLength(2), 1_000);
    expect(await ticket.durable).toEqual(DURABLE.record);
    await p.remuda.close();
  });

  test("gives an append back that may be queued or not", async () => {
    const p = await page();
    p.tab.client.stall = new Promise(() => undefined);
    const answer = p.remuda.append({ lane: LANE, payload: new Uint8Array(1) });
    answer.catch(() => undefined);
    await settle();
    p.tab.host.uncaught(new WebAssembly.RuntimeError("unreachable"));
    await expect(answer).rejects.toMatchObject({ code: "client/trap" });
    await p.remuda.close();
  });

  test("is not replaced once closed", async () => {
    const p = await page();
    p.tab.host.uncaught(new WebAssembly.RuntimeError("unreachable"));
    await settle();
    await p.remuda.close();
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(p.workers).toHaveLength(1);
  });

  test("waits longer each time", async () => {
    vi.useFakeTimers();
    const p = await page();
    const waits: number[] = [];
    for (let round = 0; round < 4; round++) {
      const count = p.workers.length;
      p.tab.host.uncaught(new WebAssembly.RuntimeError("unreachable"));
      await vi.advanceTimersByTimeAsync(0);
      let waited = 0;
      while (p.workers.length === count) {
        await vi.advanceTimersByTimeAsync(50);
        waited += 50;
      }
      waits.push(waited);
    }
    expect(waits).toEqual([250, 500, 1000, 2000]);
  });
});

describe("calls", () => {
  test("lists every lane, page by page, and hands a data key to the worker", async () => {
    const p = new Page();
    await p.remuda.open();
    for (const nonce of ["a", "b", "c"]) await p.remuda.createLane({ laneNonce: nonce.repeat(64) });
    await p.remuda.closeLane("b".repeat(64));
    const lanes: string[] = [];
    for await (const { lane, status } of p.remuda.lanes({ pageSize: 2 })) lanes.push(`${lane[0]} ${status}`);
    expect(lanes).toEqual(["a active", "b closed", "c active"]);
    await expect(p.remuda.closeLane("no")).rejects.toMatchObject({ code: "client/invalid-argument" });
    await p.remuda.addDataKey({ generation: 1n, key: new Uint8Array(32) });
    expect(p.tab.client.dataKeys).toEqual([1n]);
  });

  test("a ticket follows its record to what became of it", async () => {
    const p = await page();
    const payload = new Uint8Array([1]);
    await expect(p.remuda.append({ lane: "no", payload })).rejects.toMatchObject({ code: "client/invalid-argument" });
    const [kept, lost] = [await p.remuda.append({ lane: LANE, payload }), await p.remuda.append({ lane: LANE, payload })];
    expect([kept.state, kept.entry < lost.entry, kept.messageId]).toEqual(["queued", true, "44".repeat(32)]);
    p.tab.client.emit(p.origin.advance(kept.entry, PROVISIONAL));
    expect(await kept.provisional).toEqual(PROVISIONAL.record);
    // A void takes it back, and it is sent again.
    p.tab.client.emit(p.origin.advance(kept.entry, { state: "queued", record: null }));
    await settle();
    expect(kept.state).toBe("queued");
    p.tab.client.emit(p.origin.advance(kept.entry, DURABLE));
    expect(await kept.durable).toEqual(DURABLE.record);
    p.tab.client.emit(p.origin.advance(lost.entry, FAILED));
    await expect(lost.durable).rejects.toMatchObject({ code: "provider/idempotency-conflict", remedy: "fix-request", rule: "CIP-39 §11.1" });
    await expect(lost.provisional).rejects.toMatchObject({ code: "provider/idempotency-conflict" });
    const states: string[] = [];
    for await (const { state } of p.remuda.outbox()) states.push(state);
    expect(states).toEqual(["durable", "failed"]);
    await p.remuda.dismiss(lost.entry);
    const waiting = await p.remuda.append({ lane: LANE, payload });
    await p.remuda.close();
    await expect(waiting.durable).rejects.toMatchObject({ code: "client/closed" });
  });

  test("what cannot be sent to the worker is an argument of the caller", async () => {
    const p = new Page();
    const opened = p.remuda.open();
    await opened;
    const payload = (() => undefined) as unknown as Uint8Array;
    await expect(p.remuda.append({ lane: LANE, payload })).rejects.toMatchObject({ code: "client/invalid-argument" });
  });

  test("after close every call says so, and closing again is nothing", async () => {
    const p = await page();
    await p.remuda.close();
    await p.remuda.close();
    await expect(p.remuda.append({ lane: LANE, payload: new Uint8Array() })).rejects.toMatchObject({ code: "client/closed" });
    expect(p.remuda.status.connection).toBe("closed");
  });

  test("the page's signer signs, and its error is not lost", async () => {
    const signer = vi.fn(async (digest: Uint8Array) => digest.slice(0, 1));
    const p = new Page(signer);
    await p.remuda.open();
    expect(await p.tab.client.options.sign(new Uint8Array([9, 9]))).toEqual(new Uint8Array([9]));
    signer.mockRejectedValue(new Error("locked"));
    await expect(p.tab.client.options.sign(new Uint8Array(32))).rejects.toMatchObject({ message: expect.stringContaining("locked") });
  });

  test("a new grant comes from the page, and a worker that is replaced opens with it", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const renew = vi.fn(async () => new Uint8Array([1, 2, 3]));
    const p = new Page(undefined, renew);
    await p.remuda.open();
    const ask = p.tab.client.options.renewGrant!;
    expect(await ask()).toEqual(new Uint8Array([1, 2, 3]));
    renew.mockRejectedValueOnce(new Error("signed out"));
    await expect(ask()).rejects.toMatchObject({ message: expect.stringContaining("signed out") });
    p.tab.host.uncaught(new WebAssembly.RuntimeError("unreachable"));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(p.workers).toHaveLength(2);
    expect(p.tab.client.options.grant).toEqual(new Uint8Array([1, 2, 3]));
  });

  test("a recording is of one subscription, and ends when asked to", async () => {
    const p = await page();
    const stop = await p.remuda.subscribe(SPEC).record({ maxBytes: 1_000 });
    expect(p.tab.client.recorded).toBe(`${KEY} 1000`);
    expect(p.tab.client.open).toContain(KEY);
    const { file, isComplete } = await stop();
    expect([new TextDecoder().decode(file), isComplete]).toEqual([`${KEY} 1000`, true]);
    await settle();
    expect(p.tab.client.open).not.toContain(KEY);
    await expect(stop()).rejects.toMatchObject({ code: "client/no-recording", remedy: "retry" });
  });

  const GENERATION = { receipt: new Uint8Array(4), snapshots: [], authorizedKeys: [] };

  test("hydrating subscribes, gives back what was hashed, and holds nothing open afterwards", async () => {
    const p = await page();
    const hydrated = p.remuda.subscribe(SPEC).hydrate(GENERATION);
    await settle();
    expect(p.tab.client.open).toContain(KEY);
    const [{ resolve, key }] = p.tab.client.hydrations as [(typeof p.tab.client.hydrations)[number]];
    resolve({ key, contents: [Uint8Array.of(7)], checks: ["context"], lastItem: 1n });
    expect(await hydrated).toEqual({ key: KEY, contents: [Uint8Array.of(7)], checks: ["context"], lastItem: 1n });
    await settle();
    expect(p.tab.client.open).not.toContain(KEY);
  });

  test("snapshots that are refused are told with their code, and a caller may stop waiting", async () => {
    const p = await page();
    const refused = p.remuda.subscribe(SPEC).hydrate(GENERATION);
    const controller = new AbortController();
    const aborted = p.remuda.subscribe(SPEC).hydrate(GENERATION, { signal: controller.signal });
    await settle();
    p.tab.client.hydrations[0]!.reject({ code: "verify/snapshot-hash", remedy: "retry", rule: "CIP-39 §15", meaning: "m" });
    controller.abort(new Error("enough"));
    await expect(refused).rejects.toMatchObject({ code: "verify/snapshot-hash" });
    await expect(aborted).rejects.toThrow("enough");
  });

  test("published snapshots end with the signature of their digest, each its own", async () => {
    const p = await page();
    const part = { bytes: Uint8Array.of(1), lane: null, reference: Uint8Array.of(2), encryptionGeneration: 0n };
    const signer = { publicKey: "66".repeat(32), sign: async (digest: Uint8Array) => new Uint8Array(64).fill(digest[0]! + 100) };
    const generation = await p.remuda.subscribe(SPEC).publishSnapshots(9n, [part, { ...part, lane: LANE }], signer);
    expect(generation.receipt).toEqual(Uint8Array.of(9));
    expect(generation.snapshots.map(({ lane, applicationKey }) => [lane, applicationKey])).toEqual([
      [null, signer.publicKey],
      [LANE, signer.publicKey],
    ]);
    const [first, second] = generation.snapshots.map(({ manifest }) => [...manifest]);
    expect(first).toEqual([...Array(36).fill(1), ...Array(64).fill(100)]);
    expect(second).toEqual([...Array(36).fill(2), ...Array(64).fill(101)]);
    const short = { ...signer, sign: async () => new Uint8Array(63) };
    const refused = p.remuda.subscribe(SPEC).publishSnapshots(9n, [part], short);
    await expect(refused).rejects.toMatchObject({ code: "client/invalid-argument" });
  });

  test("a gap is accepted only where a signed floor says that there is one", async () => {
    const p = await page();
    const subscription = p.remuda.subscribe(SPEC);
    const one = { key: KEY, lanes: [LANE], verification: "scoped-proofs", boundary: null, waiting: 0 };
    const counts = { verifiedRecords: 0n, verifiedBatches: 0n, durableWatermark: null, failure: null };
    const show = (state: "failed" | "live", floor: bigint | null) =>
      p.tab.client.emit({ type: "status", status: status({ subscriptions: [{ ...one, ...counts, state, floor }] }) });
    const early = subscription.acceptGap();
    await settle();
    show("live", null);
    await expect(early).rejects.toMatchObject({ code: "client/no-floor", remedy: "fix-request" });
    show("failed", 30n);
    await settle();
    let isThere = false;
    const accepted = subscription.acceptGap().then(() => (isThere = true));
    await settle();
    expect([p.tab.client.accepted, isThere, [...p.tab.client.open]]).toEqual([[KEY], false, [KEY]]);
    // The worker had opened it anew, knew of no floor yet, and is told it again.
    const cursor = { code: "provider/cursor-too-old", remedy: "re-enter-at-boundary", rule: "", meaning: "m", atMs: 1 } as const;
    p.tab.client.emit({ type: "failure", key: KEY, failure: cursor });
    await settle();
    expect([p.tab.client.accepted, isThere]).toEqual([[KEY, KEY], false]);
    p.tab.client.emit({ type: "gap", key: KEY, lastItem: 11n });
    await accepted;
    await settle();
    expect([...p.tab.client.open]).toEqual([]);
    const last = subscription.acceptGap();
    await settle();
    p.tab.client.emit({ type: "failure", key: KEY, failure: { code: "store/quota", remedy: "surface", rule: "", meaning: "m", atMs: 1 } });
    await expect(last).rejects.toMatchObject({ code: "store/quota" });
    const over = subscription.acceptGap();
    await settle();
    await p.remuda.close();
    await expect(over).rejects.toMatchObject({ code: "client/closed" });
  });

  test("a page without a source of grants is not asked for one", async () => {
    const p = await page();
    expect(p.tab.client.options.renewGrant).toBeNull();
  });

  test("a worker that does not load", async () => {
    const { key: _, renewsGrant: __, ...options } = OPTIONS;
    const worker: WorkerLike = { onmessage: null, onerror: null, postMessage: () => undefined, terminate: vi.fn() };
    const remuda = new Remuda(() => worker, options, async () => new Uint8Array());
    const opened = remuda.open();
    opened.catch(() => undefined);
    worker.onerror!({ message: "404" });
    await expect(opened).rejects.toMatchObject({ code: "client/no-worker" });
    expect(worker.terminate).toHaveBeenCalled();
  });

  test("events come through, and the role", async () => {
    const p = new Page();
    const seen: unknown[] = [];
    for (const type of ["role", "batch", "status"] as const) p.remuda.addEventListener(type, () => seen.push(type));
    await p.remuda.open();
    p.tab.client.emit({ type: "status", status: status() });
    await settle();
    expect(p.remuda.role).toBe("owner");
    expect(p.remuda.status.connection).toBe("open");
    expect(seen).toContain("role");
    expect(seen).toContain("status");
  });
});
