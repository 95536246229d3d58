import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { MortalBrowser } from "../support/browser.js";
import { Lanes, expect, test } from "../support/test.js";

const ROUNDS = 4;
const LOCAL_STORAGE_MS = 8_000;

test("what is queued offline outlives the browser and becomes one record each, in order", async ({ provide, watch }) => {
  test.setTimeout(240_000);
  const pages = await provide({ writer: 0 });
  const node = await provide({ writer: 0, batchMs: 200 });
  const profile = mkdtempSync(join(tmpdir(), "remuda-profile-"));
  let browser: MortalBrowser | null = null;
  const open = async () => {
    browser = await MortalBrowser.start(profile);
    watch(browser.context);
    return Lanes.open(await browser.context.newPage(), pages, { node: node.url });
  };
  const kill = async () => {
    await browser?.kill();
    browser = null;
  };
  const texts = async (lanes: Lanes) => {
    const { items } = await lanes.export();
    return items
      .filter(({ kind }) => kind === "record")
      .map(({ payload }) => (JSON.parse(Buffer.from(payload, "base64").toString()) as { text: string }).text);
  };
  // What the database was seen to hold: from then on it must not be lost.
  const kept: string[] = [];
  const queue = async (lanes: Lanes, text: string) => {
    await expect(await lanes.append(text)).not.toHaveAttribute("data-state", "storing");
    kept.push(text);
  };
  try {
    let lanes = await open();
    await expect(lanes.part("connection")).toHaveAttribute("data-state", "open");
    await expect(await lanes.append("first")).toHaveAttribute("data-state", "durable");
    kept.push("first");

    await node.end("SIGTERM");
    await expect(lanes.part("connection")).toHaveAttribute("data-state", "offline");
    for (let index = 0; index < 4; index++) await queue(lanes, `offline ${index}`);
    // What the page remembers of the node is in local storage, which browsers write late; the outbox needs no such time.
    await sleep(LOCAL_STORAGE_MS);
    await queue(lanes, "offline at last");
    await kill();
    lanes = await open();
    await expect(lanes.part("own-record")).toHaveCount(5);
    for (const own of await lanes.part("own-record").all()) await expect(own).toHaveAttribute("data-state", "queued");
    await kill();
    await node.start();

    // Killed while it sends, wherever the moment falls.
    for (let round = 0; round < ROUNDS; round++) {
      lanes = await open();
      await expect(lanes.part("append-send")).toBeEnabled();
      for (let index = 0; index < 3; index++) await queue(lanes, `round ${round} ${index}`);
      await sleep(Math.random() * 400);
      await kill();
    }
    lanes = await open();
    await lanes.pass(kept.length - 1);
    await expect.poll(() => texts(lanes)).toEqual(kept);
    await queue(lanes, "last");
    await expect.poll(() => texts(lanes)).toEqual(kept);
  } finally {
    await kill();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
});
