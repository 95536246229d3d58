import { afterEach, describe, expect, test, vi } from "vitest";
import { POLL_MS, TAKE_MS } from "../src/host.js";
import type { Request } from "../src/protocol.js";
import { LANE, Origin, SPEC, Tab, appended, record, settle, status } from "./fakes.js";

const RECORD = { lane: LANE, payload: new Uint8Array([1]) };

async function tabs(count: number): Promise<{ origin: Origin; tabs: Tab[] }> {
  const origin = new Origin();
  const all = Array.from({ length: count }, (_, index) => new Tab(origin, `tab-${index}`));
  for (const tab of all) await tab.open();
  return { origin, tabs: all };
}

afterEach(() => vi.useRealTimers());

describe("ownership", () => {
  test("the first tab owns the network, the others follow", async () => {
    const { tabs: [first, second] } = await tabs(2);
    expect(first!.client.isRunning).toBe(true);
    expect(second!.client.isRunning).toBe(false);
  });

  test("the lock passes when the owner closes", async () => {
    const { tabs: [first, second] } = await tabs(2);
    await first!.call("close", {});
    await settle();
    expect(second!.client.isRunning).toBe(true);
    expect(second!.posted).toContainEqual({ type: "role", role: "owner" });
  });

  test("the lock passes when the owner is killed, to exactly one", async () => {
    const { tabs: [first, second, third] } = await tabs(3);
    first!.kill();
    await settle();
    expect([second!.client.isRunning, third!.client.isRunning]).toEqual([true, false]);
  });

  test("a tab that closes while it follows leaves the queue", async () => {
    const { tabs: [first, second, third] } = await tabs(3);
    await second!.call("close", {});
    first!.kill();
    await settle();
    expect([second!.client.isRunning, third!.client.isRunning]).toEqual([false, true]);
  });

  test("the end of the network loop, unasked, breaks the worker and frees the lock", async () => {
    const { tabs: [first, second] } = await tabs(2);
    first!.client.fail(Object.assign(new Error("x"), { code: "store/unknown", remedy: "retry", meaning: "m" }));
    await settle();
    expect(first!.posted.at(-1)).toMatchObject({ type: "broken", error: { code: "store/unknown" } });
    expect(second!.client.isRunning).toBe(true);
  });

  test("a trap that no promise carries breaks the worker", async () => {
    const { tabs: [first] } = await tabs(1);
    first!.host.uncaught(new WebAssembly.RuntimeError("unreachable"));
    expect(first!.posted.at(-1)).toMatchObject({ type: "broken", error: { code: "client/trap" } });
    await expect(first!.call("boundary", { key: "k" })).rejects.toMatchObject({ code: "client/closed" });
  });

  test("an uncaught error that is no trap is reported, not swallowed", async () => {
    const { tabs: [first] } = await tabs(1);
    first!.host.uncaught(new TypeError("odd"));
    expect(first!.events("failure")[0]).toMatchObject({ failure: { code: "client/unexpected", meaning: expect.stringContaining("odd") } });
  });
});

describe("subscriptions", () => {
  test("the owner opens what a follower subscribes to, and drops it when the follower is gone", async () => {
    const { tabs: [owner, follower] } = await tabs(2);
    const key = await follower!.call("subscribe", { spec: SPEC });
    await settle();
    expect(owner!.client.open).toContain(key);
    follower!.kill();
    await settle();
    expect(owner!.client.open).not.toContain(key);
  });

  test("what another tab still wants stays open", async () => {
    const { tabs: [owner, follower] } = await tabs(2);
    const key = await owner!.call("subscribe", { spec: SPEC });
    await follower!.call("subscribe", { spec: SPEC });
    await settle();
    await owner!.call("unsubscribe", { key });
    expect(owner!.client.open).toContain(key);
    await follower!.call("unsubscribe", { key });
    await settle();
    expect(owner!.client.open).not.toContain(key);
  });

  test("a new owner opens what its followers want", async () => {
    const { tabs: [first, second, third] } = await tabs(3);
    const key = await third!.call("subscribe", { spec: SPEC });
    first!.kill();
    await settle();
    expect(second!.client.open).toContain(key);
  });

  test("as many unsubscriptions as subscriptions", async () => {
    const { tabs: [owner] } = await tabs(1);
    const key = await owner!.call("subscribe", { spec: SPEC });
    await owner!.call("subscribe", { spec: SPEC });
    await owner!.call("unsubscribe", { key });
    expect(owner!.client.open).toContain(key);
    await owner!.call("unsubscribe", { key });
    expect(owner!.client.open).not.toContain(key);
  });

  test("subscribing again while unsubscribing ends subscribed", async () => {
    const { tabs: [owner] } = await tabs(1);
    const key = await owner!.call("subscribe", { spec: SPEC });
    const again = [owner!.call("unsubscribe", { key }), owner!.call("subscribe", { spec: SPEC })];
    await Promise.all(again);
    expect(owner!.client.open).toContain(key);
  });
});

describe("followers", () => {
  test("see the owner's events and status, with their own storage", async () => {
    const { tabs: [owner, follower] } = await tabs(2);
    follower!.client.emit({ type: "status", status: status({ connection: "idle", storage: "quota" }) });
    owner!.client.emit({ type: "status", status: status() });
    owner!.client.emit({ type: "transition", key: "k", transition: "void", fromEpoch: 0n, toEpoch: 1n, discarded: 3 });
    await settle();
    expect(follower!.events("status").at(-1)).toMatchObject({ status: { connection: "open", storage: "quota" } });
    expect(follower!.events("transition")).toHaveLength(1);
  });

  test("learn the status when they come late", async () => {
    const { origin, tabs: [owner] } = await tabs(1);
    owner!.client.emit({ type: "status", status: status() });
    const late = new Tab(origin, "late");
    await late.open();
    await settle();
    expect(late.events("status").at(-1)).toMatchObject({ status: { connection: "open" } });
  });

  test("find rows by looking, when every message is lost", async () => {
    vi.useFakeTimers();
    const { origin, tabs: [, follower] } = await tabs(2);
    origin.isDeaf = true;
    const key = await follower!.call("subscribe", { spec: SPEC });
    origin.commit(key, [record(1n)]);
    await vi.advanceTimersByTimeAsync(POLL_MS + 1);
    expect(follower!.events("committed")).toEqual([{ type: "committed", key, lastItem: 1n }]);
    await vi.advanceTimersByTimeAsync(POLL_MS * 4);
    expect(follower!.events("committed")).toHaveLength(1);
  });

  test("append by the owner, and get its errors with their codes", async () => {
    const { tabs: [owner, follower] } = await tabs(2);
    expect(await follower!.call("request", { request: { name: "append", argument: RECORD } })).toEqual(appended(1n));
    owner!.client.appendAnswer = () =>
      Promise.reject(Object.assign(new Error(), { code: "provider/QuotaExceeded", remedy: "retry", meaning: "m" }));
    await expect(follower!.call("request", { request: { name: "append", argument: RECORD } })).rejects.toMatchObject({
      code: "provider/QuotaExceeded",
      remedy: "retry",
    });
  });

  test("lanes are made, closed and listed by the owner; a data key reaches every tab", async () => {
    const { tabs: [owner, follower] } = await tabs(2);
    const ask = (request: Request) => follower!.call("request", { request });
    expect(await ask({ name: "createLane", argument: {} })).toMatchObject({ lane: LANE, status: "active" });
    expect(await ask({ name: "closeLane", argument: LANE })).toMatchObject({ lane: LANE, status: "closed" });
    expect(await ask({ name: "listLanes", argument: { after: null, limit: 2 } })).toMatchObject({ lanes: [{ lane: LANE }], nextAfter: null });
    expect(owner!.client.lanes).toHaveLength(1);
    await follower!.call("addDataKey", { dataKey: { generation: 3n, key: new Uint8Array(32) } });
    await settle();
    expect([owner!.client.dataKeys, follower!.client.dataKeys]).toEqual([[3n], [3n]]);
  });

  test("an append that the dead owner took has no known outcome; it is not sent again", async () => {
    const { tabs: [owner, follower] } = await tabs(2);
    owner!.client.appendAnswer = () => new Promise(() => undefined);
    const answer = follower!.call("request", { request: { name: "append", argument: RECORD } });
    answer.catch(() => undefined);
    await settle();
    owner!.kill();
    await expect(answer).rejects.toMatchObject({ code: "client/owner-lost" });
    expect(follower!.client.appended).toHaveLength(0);
  });

  test("an append that no owner took is done by the next one", async () => {
    const { origin, tabs: [owner, follower] } = await tabs(2);
    origin.isDeaf = true;
    const answer = follower!.call("request", { request: { name: "append", argument: RECORD } });
    await settle();
    origin.isDeaf = false;
    owner!.kill();
    expect(await answer).toEqual(appended(1n));
    expect(follower!.client.appended).toHaveLength(1);
  });

  test("an append that no owner takes in time is given back", async () => {
    vi.useFakeTimers();
    const { origin, tabs: [, follower] } = await tabs(2);
    origin.isDeaf = true;
    const answer = follower!.call("request", { request: { name: "append", argument: RECORD } });
    answer.catch(() => undefined);
    await vi.advanceTimersByTimeAsync(TAKE_MS + 1);
    await expect(answer).rejects.toMatchObject({ code: "client/owner-unreachable", remedy: "retry" });
  });
});

test("a signer that is a function is asked in the page", async () => {
  const { tabs: [tab] } = await tabs(1);
  tab!.onPost = (message) => {
    if (message.type === "ask") tab!.host.receive({ type: "told", id: message.id, answer: new Uint8Array([7]) });
  };
  expect(await tab!.client.options.sign(new Uint8Array(32))).toEqual(new Uint8Array([7]));
  tab!.onPost = (message) => {
    if (message.type !== "ask") return;
    tab!.host.receive({ type: "untold", id: message.id, error: { code: "client/unexpected", remedy: "surface", meaning: "no" } });
  };
  await expect(tab!.client.options.sign(new Uint8Array(32))).rejects.toMatchObject({ code: "client/unexpected" });
});

test("a refusal to open is the caller's error", async () => {
  const tab = new Tab(new Origin(), "t", { load: () => Promise.reject(new Error("404")) });
  await expect(tab.open()).rejects.toMatchObject({ code: "client/unexpected", detail: expect.stringContaining("404") });
});
