import { describe, expect, test } from "vitest";
import { RemudaError } from "../src/error.js";
import type { DeliveryEvent, DeliveryState, NewGroup } from "../src/group-types.js";
import { Delivery, GroupIterator, Groups, UNDECRYPTABLE } from "../src/group.js";
import type { FromWorker } from "../src/protocol.js";
import type { WorkerLike } from "../src/remuda.js";
import { Remuda } from "../src/remuda.js";
import { LANE, OPTIONS, Origin, Tab, deliveryState, settle, status } from "./fakes.js";

const GROUP = { lane: LANE, group: "88".repeat(32) };
const SPEC = { ...GROUP, verification: "group" } as const;
const KEY = `group:${GROUP.lane}:${GROUP.group}`;
const lease = (number: number) => number.toString(16).padStart(64, "0");

function delivery(number: number): DeliveryEvent {
  return {
    type: "delivery",
    key: KEY,
    lease: lease(number),
    cycle: "77".repeat(32),
    sequence: BigInt(number),
    attempt: 1,
    leaseExpiresAtMs: 1_000n,
    record: "application",
    lane: LANE,
    messageId: lease(number),
    createdAtMs: 1n,
    expiresAtMs: 0n,
    encryptionGeneration: 0n,
    payload: new Uint8Array([number]),
    sealed: null,
  };
}

/** A page over a real host, whose worker is a fake. */
class Page {
  readonly tab = new Tab(new Origin(), "tab");
  readonly remuda: Remuda;

  constructor() {
    const { key: _, renewsGrant: __, ...options } = OPTIONS;
    this.remuda = new Remuda(() => this.#worker(), options, async () => new Uint8Array(64));
  }

  #worker(): WorkerLike {
    const worker: WorkerLike = {
      onmessage: null,
      onerror: null,
      postMessage: (message) => queueMicrotask(() => this.tab.host.receive(structuredClone(message))),
      terminate: () => this.tab.kill(),
    };
    this.tab.onPost = (data: FromWorker) => queueMicrotask(() => worker.onmessage?.({ data }));
    return worker;
  }

  /** What the receipts of the group say. */
  state(number: number, over: Partial<DeliveryState> & Pick<DeliveryState, "action">): void {
    this.tab.client.emit({ type: "delivery-state", key: KEY, ...deliveryState(lease(number), over.action), ...over });
  }
}

async function consuming(signal?: AbortSignal) {
  const page = new Page();
  await page.remuda.open();
  const group = page.remuda.group({ ...GROUP, ...(signal && { signal }) });
  const first = group.next();
  first.catch(() => undefined);
  await settle();
  return { page, group, first };
}

describe("a group", () => {
  test("hands out what is leased, and takes one decision after the other", async () => {
    const { page, group, first } = await consuming();
    for (const number of [1, 2]) page.tab.client.emit(delivery(number));
    const one = (await first).value!;
    const two = (await group.next()).value!;
    expect([one.record.sequence, one.record.attempt, one.record.payload]).toEqual([1n, 1, new Uint8Array([1])]);
    expect(await one.extend(500n)).toMatchObject({ action: "extend" });
    page.state(1, { action: "extend", leaseExpiresAtMs: 1_500n });
    await settle();
    expect([one.leaseExpiresAtMs, one.signal.aborted]).toEqual([1_500n, false]);
    expect(await one.ack()).toMatchObject({ action: "ack", lease: lease(1) });
    page.state(1, { action: "ack" });
    await two.nack(7n);
    await settle();
    expect([one.signal.aborted, two.signal.aborted]).toEqual([true, false]);
    expect(page.tab.client.decided).toEqual([
      [lease(1), { action: "extend", extendByMs: 500n }],
      [lease(1), { action: "ack" }],
      [lease(2), { action: "nack", retryAfterMs: 7n }],
    ]);
  });

  test("says that a lease ran out, and what a late decision comes to", async () => {
    const { page, first } = await consuming();
    page.tab.client.emit(delivery(1));
    const one = (await first).value!;
    const told: DeliveryState[] = [];
    page.remuda.addEventListener("delivery-state", ({ detail }) => told.push(detail));
    page.state(1, { action: "lease-expire", availableAtMs: 2_000n });
    await settle();
    expect(one.signal.reason).toMatchObject({ code: "group/lease-over" });
    expect(told).toMatchObject([{ action: "lease-expire", lease: lease(1) }]);
    page.tab.client.refuseDecision = new RemudaError({ code: "group/lease-over", remedy: "surface", meaning: "m" });
    await expect(one.ack()).rejects.toMatchObject({ code: "group/lease-over" });
    await expect(one.reject("99".repeat(32))).rejects.toBeInstanceOf(RemudaError);
  });

  test("gives back what its consumer leaves", async () => {
    const { page, group, first } = await consuming();
    for (const number of [1, 2, 3]) page.tab.client.emit(delivery(number));
    const one = (await first).value!;
    await group.return();
    await settle();
    expect(one.signal.aborted).toBe(true);
    expect(page.tab.client.decided.map(([given]) => given)).toEqual([lease(2), lease(3)]);
    expect(page.tab.client.open.size).toBe(0);
    expect(await group.next()).toEqual({ done: true, value: undefined });
  });

  test("ends by its signal once what it handed out is settled, and gives back the rest", async () => {
    const abort = new AbortController();
    const { page, group, first } = await consuming(abort.signal);
    for (const number of [1, 2]) page.tab.client.emit(delivery(number));
    const one = (await first).value!;
    abort.abort(new Error("enough"));
    await settle();
    expect(page.tab.client.open.size).toBe(1);
    await one.ack();
    page.state(1, { action: "ack" });
    await settle();
    expect(page.tab.client.decided).toEqual([
      [lease(1), { action: "ack" }],
      [lease(2), { action: "nack", retryAfterMs: 0n }],
    ]);
    expect(page.tab.client.open.size).toBe(0);
    await expect(group.next()).rejects.toThrow("enough");

    const again = new AbortController();
    const busy = await consuming(again.signal);
    busy.page.tab.client.emit(delivery(1));
    await busy.first;
    again.abort(new Error("at once"));
    await expect(busy.group.next()).rejects.toThrow("at once");
    expect((await busy.group.next()).done).toBe(true);
  });

  test("shares its deliveries between the iterators of a page", async () => {
    const { page, first } = await consuming();
    const second = page.remuda.group(GROUP).next();
    await settle();
    page.tab.client.emit(delivery(1));
    page.tab.client.emit(delivery(2));
    expect([(await first).value?.record.sequence, (await second).value?.record.sequence]).toEqual([1n, 2n]);
  });

  test("ends by its failure, by its signal, and with its client", async () => {
    const failed = await consuming();
    const failure = { code: "verify/group-chain", remedy: "halt", rule: "CIP-39 §14.2", meaning: "m", atMs: 1 };
    const rest = { lanes: [LANE], verification: "group", boundary: null, waiting: 0, verifiedRecords: 0n, verifiedBatches: 0n };
    const subscription = { key: KEY, state: "failed", floor: null, durableWatermark: null, failure, ...rest } as const;
    failed.page.tab.client.emit({ type: "status", status: status({ subscriptions: [subscription] }) });
    await expect(failed.first).rejects.toMatchObject({ code: "verify/group-chain" });

    const abort = new AbortController();
    const aborted = await consuming(abort.signal);
    abort.abort(new Error("enough"));
    await expect(aborted.first).rejects.toThrow("enough");

    const closed = await consuming();
    closed.page.tab.client.emit(delivery(1));
    const one = (await closed.first).value!;
    const next = closed.group.next();
    await closed.page.remuda.close();
    expect((await next).done).toBe(true);
    expect(one.signal.aborted).toBe(true);
    await expect(one.ack()).rejects.toMatchObject({ code: "client/closed" });
  });

  test("ends every lease when it is deleted", async () => {
    const { page, first } = await consuming();
    page.tab.client.emit(delivery(1));
    const one = (await first).value!;
    page.tab.client.emit({ type: "group", key: KEY, config: null });
    await settle();
    expect(one.signal.aborted).toBe(true);
  });

  test("never hands out what cannot be read, and tells of it", async () => {
    const { page, first } = await consuming();
    const told: unknown[] = [];
    page.remuda.addEventListener("undecryptable", ({ detail }) => told.push([detail.sequence, detail.decided]));
    const sealed = { ...delivery(1), payload: null, sealed: "verify/aead" } as const;
    page.tab.client.emit({ ...sealed, type: "undecryptable", decided: "reject" });
    page.tab.client.emit(delivery(2));
    expect((await first).value?.record.sequence).toBe(2n);
    expect(told).toEqual([[1n, "reject"]]);
    expect(UNDECRYPTABLE).toMatch(/^[0-9a-f]{64}$/);
  });

  test("is made, changed, redriven and deleted", async () => {
    const { page } = await consuming();
    const { remuda } = page;
    const settings = {
      mode: "concurrent",
      visibilityTimeoutMs: 30_000n,
      maxVisibilityMs: 600_000n,
      maxInFlight: 8,
      maxAttempts: 5,
      recordDeadlineMs: 86_400_000n,
      deadLetterTtlMs: 86_400_000n,
      retentionPinUntilMs: 0n,
    } as const;
    const made: NewGroup = { ...GROUP, ...settings };
    expect((await remuda.createGroup(made)).config).toEqual(made);
    expect((await remuda.updateGroup({ ...made, maxInFlight: 2 })).config?.maxInFlight).toBe(2);
    expect(await remuda.redrive({ ...GROUP, sequence: 3n, cycle: "77".repeat(32) })).toMatchObject({ action: "redrive", sequence: 3n });
    expect((await remuda.deleteGroup(GROUP)).config).toBeNull();
    expect(page.tab.client.groups.size).toBe(0);
  });

  test("hands each delivery to one of its tabs, whichever holds the connection", async () => {
    const origin = new Origin();
    const [owner, follower, other] = [new Tab(origin, "a"), new Tab(origin, "b"), new Tab(origin, "c")];
    for (const tab of [owner, follower, other]) await tab.open();
    await owner.call("subscribe", { spec: SPEC });
    await follower.call("subscribe", { spec: SPEC });
    await settle();
    for (const number of [1, 2, 3, 4]) owner.client.emit(delivery(number));
    await settle();
    const given = (tab: Tab) => tab.events("delivery").map((event) => (event as DeliveryEvent).sequence);
    expect([given(owner), given(follower), given(other)]).toEqual([[1n, 3n], [2n, 4n], []]);
    // What a tab decides that does not hold the connection is decided by the one that does.
    const argument = { key: KEY, lease: lease(2), decision: { action: "ack" } } as const;
    expect(await follower.call("request", { request: { name: "decide", argument } })).toMatchObject({ action: "ack" });
    expect(owner.client.decided).toEqual([[lease(2), { action: "ack" }]]);
  });
});

describe("deliveries", () => {
  test("without a consumer are given back", async () => {
    const groups = new Groups();
    const decided: string[] = [];
    const made = new Delivery(delivery(1), async ({ action }) => {
      decided.push(action);
      return deliveryState(lease(1), "nack");
    });
    groups.hand(KEY, made);
    const undo = groups.add(KEY, () => undefined);
    undo();
    groups.hand(KEY, made);
    expect(decided).toEqual(["nack", "nack"]);
  });

  test("that come after an iterator was left before it began are not its own", async () => {
    const iterator = new GroupIterator({ acquire: async () => "k", release: () => undefined, listen: () => () => undefined });
    await iterator.return();
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  });
});
