import { describe, expect, test } from "vitest";
import { TailIterator, WAITING_RECORDS } from "../src/tail.js";
import type { PushListener, PushSource } from "../src/pushed.js";
import type { PaintedRecord } from "../src/types.js";
import { RemudaError } from "../src/error.js";
import { LANE, Origin, Tab, settle } from "./fakes.js";

function painted(sequence: bigint): PaintedRecord {
  return {
    kind: "painted-record",
    brokerEpoch: 0n,
    sequence,
    assurance: "none",
    record: "application",
    lane: LANE,
    messageId: "44".repeat(32),
    createdAtMs: 1n,
    expiresAtMs: 0n,
    encryptionGeneration: 0n,
    payload: new Uint8Array(),
    sealed: null,
  };
}

/** A source with one listener at most. */
class Source implements PushSource<PaintedRecord> {
  listener: PushListener<PaintedRecord> | null = null;
  held = 0;
  async acquire(): Promise<string> {
    this.held += 1;
    return "k";
  }
  release(): void {
    this.held -= 1;
  }
  listen(_: string, listener: PushListener<PaintedRecord>): () => void {
    this.listener = listener;
    return () => (this.listener = null);
  }
}

async function begun(signal?: AbortSignal): Promise<{ source: Source; tail: TailIterator; first: Promise<IteratorResult<PaintedRecord, undefined>> }> {
  const source = new Source();
  const tail = new TailIterator(source, signal);
  const first = tail.next();
  first.catch(() => undefined);
  await settle();
  return { source, tail, first };
}

describe("a tail", () => {
  test("begins with the first next, paints in order, and lets go when left", async () => {
    const { source, tail, first } = await begun();
    for (const sequence of [1n, 2n, 3n]) source.listener!.pushed(painted(sequence));
    expect((await first).value?.sequence).toBe(1n);
    expect((await tail.next()).value?.sequence).toBe(2n);
    await tail.return();
    expect(await tail.next()).toEqual({ done: true, value: undefined });
    expect([source.held, source.listener]).toEqual([0, null]);
  });

  test("drops the oldest for a slow consumer, and counts them", async () => {
    const { source, tail, first } = await begun();
    source.listener!.pushed(painted(0n));
    await first;
    for (let sequence = 1n; sequence <= BigInt(WAITING_RECORDS) + 5n; sequence++) source.listener!.pushed(painted(sequence));
    expect((await tail.next()).value?.sequence).toBe(6n);
    expect(tail.missed).toBe(5);
  });

  test("throws what ended it, once", async () => {
    const { source, tail, first } = await begun();
    source.listener!.pushed(painted(1n));
    source.listener!.ended(RemudaError.client("client/unexpected", "over"));
    expect((await first).value?.sequence).toBe(1n);
    await expect(tail.next()).rejects.toMatchObject({ code: "client/unexpected" });
    expect(await tail.next()).toEqual({ done: true, value: undefined });
    expect(source.held).toBe(0);
  });

  test("ends by its signal, and with its client", async () => {
    const abort = new AbortController();
    const { source, first } = await begun(abort.signal);
    abort.abort(new Error("enough"));
    await expect(first).rejects.toThrow("enough");
    expect(source.held).toBe(0);
    const second = await begun();
    second.source.listener!.ended(null);
    expect((await second.first).done).toBe(true);
  });

  test("is painted in a tab that does not hold the connection", async () => {
    const origin = new Origin();
    const [owner, follower] = [new Tab(origin, "a"), new Tab(origin, "b")];
    await owner.open();
    await follower.open();
    const key = await follower.call("subscribe", { spec: { lanes: [LANE], verification: "none" } });
    await settle();
    expect(owner.client.open).toContain(key);
    owner.client.emit({ type: "painted", key: key as string, record: painted(9n) });
    await settle();
    expect(follower.posted).toContainEqual({ type: "event", event: { type: "painted", key, record: painted(9n) } });
    await follower.call("unsubscribe", { key: key as string });
    await settle();
    expect(owner.client.open).not.toContain(key);
  });
});
