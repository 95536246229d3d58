import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { MortalBrowser } from "../support/browser.js";
import type { Exported } from "../support/test.js";
import { Lanes, expect, expectWhole, firstDifference, test } from "../support/test.js";

const KILLS = 10;
/** From the start of loading to the kill, at most. */
const LIVES_MS = 2_500;

test("the browser is killed ten times: nothing lost, nothing repeated", async ({ provide, watch }) => {
  test.setTimeout(300_000);
  const seed = Number(process.env["REMUDA_SEED"] ?? Math.floor(Math.random() * 2 ** 32));
  console.log(`kill -9 of the browser, REMUDA_SEED=${seed}`);
  const random = randomness(seed);
  const provider = await provide({ writer: 60 });
  const profile = mkdtempSync(join(tmpdir(), "remuda-profile-"));
  let before: Exported[] = [];
  let browser: MortalBrowser | null = null;
  try {
    for (let kills = 0; kills <= KILLS; kills++) {
      browser = await MortalBrowser.start(profile);
      watch(browser.context);
      const page = await browser.context.newPage();
      const lanes = await Lanes.open(page, provider);
      await lanes.pass(before.length === 0 ? 0 : before.length - 1);
      const { items, position } = await lanes.export();
      expectWhole(items);
      expect(firstDifference(items, before), `after kill ${kills} what was stored is stored`).toBeNull();
      const last = items.at(-1)!;
      expect(position, "the position is where the rows end").toMatchObject({ item: last.item, sequence: last.sequence, checkpoint: last.checkpoint });
      before = items;
      if (kills === KILLS) break;

      // Killed while loading, opening the database, signing in, or storing: wherever the moment falls.
      const loading = page.reload().catch(() => undefined);
      await sleep(random() * LIVES_MS);
      await browser.kill();
      await loading;
      browser = null;
    }
    expect(before.length).toBeGreaterThan(100);
  } finally {
    await browser?.kill();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
});

test("the provider is killed: its void is verified and shown, the suffix is discarded, own appends are sent again, and it goes on", async ({ page, provide }) => {
  const provider = await provide({ writer: 0, batchMs: 1000 });
  const lanes = await Lanes.open(page, provider);
  await expect(lanes.part("connection")).toHaveAttribute("data-state", "open");
  // Right after a batch the next record has a second before it is durable.
  await expect(await lanes.append("kept")).toHaveAttribute("data-state", "durable");
  const own = await lanes.append("lost");
  await expect(own).toHaveAttribute("data-state", "provisional");
  await provider.end("SIGKILL");
  const held = await lanes.position();
  await expect(lanes.part("connection")).toHaveAttribute("data-state", "offline");
  await provider.start();

  const epoch = lanes.part("epoch").first();
  await expect(epoch).toHaveAttribute("data-transition", "void");
  await expect(epoch).toHaveAttribute("data-durable", held.sequence);
  await expect(epoch).toContainText("void");
  // What was void is sent again by itself, in the new epoch.
  await expect(own).toHaveAttribute("data-state", "durable");
  await expect(own).toHaveAttribute("data-epoch", "1");
  await expect(lanes.part("failure")).toBeHidden();
  const { items } = await lanes.export();
  expect(items.map(({ kind, brokerEpoch, sequence }) => (kind === "record" ? `${brokerEpoch}/${sequence}` : kind))).toEqual(["0/0", "transition", "1/0"]);
});

test("a writing provider is killed and ended several times: each change is right, no durable record is lost", async ({ page, provide }) => {
  test.setTimeout(120_000);
  const provider = await provide({ writer: 60 });
  const lanes = await Lanes.open(page, provider);
  for (const [index, signal] of (["SIGKILL", "SIGTERM", "SIGKILL", "SIGTERM"] as const).entries()) {
    await lanes.pass((await lanes.item()) + 20);
    await provider.end(signal);
    await provider.start();
    await expect(lanes.part("epoch")).toHaveCount(index + 1);
    await expect(lanes.part("epoch").first()).toHaveAttribute("data-transition", signal === "SIGKILL" ? "void" : "clean");
    await expect(lanes.part("epoch").first()).toHaveAttribute("data-to", String(index + 1));
  }
  await lanes.pass((await lanes.item()) + 20);
  await expect(lanes.part("failure")).toBeHidden();
  const { items } = await lanes.export();
  expectWhole(items);
  // What a transition says is durable is what was stored before it.
  for (const [index, item] of items.entries()) {
    if (item.kind === "transition") expect(items[index - 1]).toMatchObject({ kind: "record", sequence: item.lastDurableSequence });
  }
});

/** Mulberry32: the same seed, the same moments. */
function randomness(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
