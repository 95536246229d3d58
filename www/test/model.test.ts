import { describe, expect, test } from "vitest";
import type { AppendEvent, Boundary, Item, RecordItem, Subscription, TransitionItem } from "remuda";
import { BARS, BAR_MS, LINKS, Model, SHOWN, textOf } from "../lanes/model.js";
import { line, recount } from "../lanes/recount.js";
import { chosenLanes, parameters, subscription } from "../lanes/setup.js";

const LANE = "11".repeat(32);
const OTHER = "22".repeat(32);

function record(item: number, over: Partial<RecordItem> = {}): RecordItem {
  return {
    kind: "record",
    item: BigInt(item),
    record: "application",
    encryptionGeneration: 0n,
    sealed: null,
    brokerEpoch: 0n,
    sequence: BigInt(item - 1),
    checkpoint: "c".repeat(64),
    lane: LANE,
    messageId: item.toString().padStart(64, "0"),
    createdAtMs: 0n,
    expiresAtMs: 0n,
    payload: new Uint8Array(),
    assurance: "lane-set",
    ...over,
  };
}

function transition(item: number, over: Partial<TransitionItem> = {}): TransitionItem {
  return {
    kind: "transition",
    item: BigInt(item),
    transition: "void",
    fromEpoch: 0n,
    toEpoch: 1n,
    digest: "d".repeat(64),
    lastDurableCheckpoint: "c".repeat(64),
    lastDurableSequence: 0n,
    lastProvisionalSequence: null,
    assurance: "transition",
    ...over,
  };
}

describe("the model", () => {
  test("counts all, shows the newest, keeps no more", () => {
    const model = new Model([{ id: LANE, name: "one" }]);
    for (let item = 1; item <= 1_000; item++) model.add(record(item, { checkpoint: `${item}`.padStart(64, "0"), createdAtMs: BigInt(item * BAR_MS) }), true);
    const lane = model.lanes.get(LANE)!;
    expect(lane.count).toBe(1_000);
    expect(lane.newest.map(({ item }) => item)).toEqual(Array.from({ length: SHOWN }, (_, index) => BigInt(1_000 - index)));
    expect(model.links).toHaveLength(LINKS);
    expect(lane.slots.size).toBeLessThanOrEqual(BARS * 2);
    expect(model.bars(lane, 1_000 * BAR_MS).at(-1)).toBe(1);
  });

  test("records of one checkpoint are one link", () => {
    const model = new Model([]);
    model.add(record(1), false);
    model.add(record(2), false);
    model.add(transition(3), false);
    expect(model.links).toMatchObject([{ kind: "checkpoint", records: 2, last: 1n }, { kind: "void" }]);
  });

  test("an own record is what the outbox says of it, back to queued after a void", () => {
    const model = new Model([]);
    model.addOwn({ messageId: "a", lane: LANE, text: "", entry: null, state: "storing", record: null, why: "" });
    const record = { brokerEpoch: 0n, sequence: 0n, durable: false as const };
    const say = (change: Partial<AppendEvent>) =>
      model.advance({ entry: 1n, messageId: "a", state: "queued", record: null, failure: null, ...change });
    const seen = () => model.own.map(({ state, why }) => `${state} ${why}`.trim());
    say({ messageId: "b", state: "durable" });
    say({});
    expect(seen()).toEqual(["queued"]);
    say({ state: "provisional", record });
    say({});
    expect(seen()).toEqual(["queued void, to be sent again"]);
    say({ state: "durable", record: { ...record, durable: true, evidence: "" } });
    expect(seen()).toEqual(["durable"]);
    say({ state: "failed", failure: { code: "provider/lane-closed", remedy: "surface", rule: "", meaning: "" } });
    expect(seen()).toEqual(["failed provider/lane-closed"]);
  });

  test("reads the demo's texts, other texts, and no texts", () => {
    const bytes = (text: string) => new TextEncoder().encode(text);
    expect(textOf(bytes('{"text":"hi","number":3}'))).toEqual({ text: "hi", number: 3 });
    expect(textOf(bytes("plain"))).toEqual({ text: "plain", number: null });
    expect(textOf(bytes("null"))).toEqual({ text: "null", number: null });
    expect(textOf(new Uint8Array([0xff, 0xfe]))).toEqual({ text: "2 bytes", number: null });
  });
});

describe("recounting", () => {
  const over = (items: Item[], boundary: Partial<Boundary> = {}) => {
    const last = items.filter((item): item is RecordItem => item.kind === "record").at(-1);
    const position: Boundary = {
      brokerEpoch: last?.brokerEpoch ?? null,
      sequence: last?.sequence ?? null,
      checkpoint: last?.checkpoint ?? null,
      lastItem: items.at(-1)?.item ?? 0n,
      revision: 1n,
      anchor: "provider",
      ...boundary,
    };
    return {
      boundary: async () => position,
      read: async (after: bigint) => items.filter(({ item }) => item > after).slice(0, 2),
    } as unknown as Subscription;
  };
  const problems = async (items: Item[], isWhole = false, boundary: Partial<Boundary> = {}) =>
    (await recount(over(items, boundary), isWhole, () => undefined)).problems;

  test("finds nothing where nothing is wrong, and leaves out what came since", async () => {
    const items = [record(1), record(2), record(3), record(4)];
    expect(await problems(items, true)).toEqual([]);
    const counted = await recount(over(items, { lastItem: 3n, sequence: 2n }), true, () => undefined);
    expect(counted).toMatchObject({ items: 3, records: 3, problems: [] });
    expect(await problems([])).toEqual([]);
  });

  test("finds what is missing, double, out of order, and a position that is not at the end", async () => {
    expect(await problems([record(1), record(3)])).toHaveLength(1);
    expect(await problems([record(1), record(2, { sequence: 5n })])).toEqual([]);
    expect(await problems([record(1), record(2, { sequence: 5n })], true)).toHaveLength(1);
    expect(await problems([record(1), record(2, { messageId: record(1).messageId })])).toHaveLength(1);
    expect(await problems([record(1), record(2, { sequence: 0n })])).toHaveLength(1);
    expect(await problems([record(1)], false, { lastItem: 2n })).toHaveLength(1);
    expect(await problems([record(1), record(2)], false, { sequence: 0n })).toHaveLength(1);
    expect(await problems([record(1)], false, { sequence: 9n })).toEqual([]);
    expect(await problems([record(1)], true, { sequence: 9n })).toHaveLength(1);
  });

  test("a line keeps what is 64 bits wide", () => {
    const made = JSON.parse(line(record(1, { sequence: 2n ** 63n, payload: new Uint8Array([1, 2]) }))) as Record<string, string>;
    expect(made).toMatchObject({ sequence: "9223372036854775808", payload: "AQI=" });
  });
});

test("lanes by name, by id, and all", () => {
  const info = { context: "", streamId: "", providerKey: "", endpoint: "", webSocket: "", lanes: [{ id: LANE, name: "one" }, { id: OTHER, name: "two" }] };
  const asked = (query: string) => parameters(new URL(`http://localhost:1/?${query}`));
  expect(subscription(asked(""), info)).toEqual({ lanes: [LANE, OTHER], verification: "scoped-proofs" });
  expect(subscription(asked(`lanes=two`), info)).toEqual({ lanes: [OTHER], verification: "scoped-proofs" });
  expect(subscription(asked("lanes=all"), info)).toEqual({ lanes: "all", verification: "full-stream" });
  expect(chosenLanes(asked(`lanes=${LANE},${"33".repeat(32)}`), info).map(({ name }) => name)).toEqual(["one", "33333333"]);
  expect(asked("node=http://127.0.0.1:9/").node).toBe("http://127.0.0.1:9");
});
