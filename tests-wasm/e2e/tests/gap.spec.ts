import { Lanes, SCREENS, expect, test } from "../support/test.js";

test("a reader who was away for two epochs is told what is gone, goes on by choice, and never sees the hole as history", async ({ page, provide }) => {
  const provider = await provide({ writer: 0, batchMs: 100 });
  let lanes = await Lanes.open(page, provider);
  await expect(lanes.part("connection")).toHaveAttribute("data-state", "open");
  await expect(await lanes.append("before")).toHaveAttribute("data-state", "durable");
  const before = await lanes.position();
  await page.goto("about:blank");
  for (let restart = 0; restart < 2; restart++) {
    await provider.end("SIGKILL");
    await provider.start();
  }
  lanes = await Lanes.open(page, provider);
  await expect(lanes.part("failure")).toHaveAttribute("data-code", "provider/cursor-too-old");
  await expect(lanes.part("failure")).toHaveAttribute("data-moved", "false");
  for (const viewport of [{ width: 1280, height: 800 }, { width: 390, height: 844 }]) {
    await page.setViewportSize(viewport);
    await page.screenshot({ path: `${SCREENS}/gap-${viewport.width}x${viewport.height}.png`, fullPage: true });
  }
  await lanes.part("accept-gap").click();
  const gap = lanes.part("gap");
  await expect(gap).toHaveAttribute("data-assurance", "retention-anchor");
  await expect(gap).toContainText("the provider signed that what lay there is gone");
  await expect(await lanes.append("after")).toHaveAttribute("data-state", "durable");
  const { items, position } = await lanes.export();
  const kinds = items.map(({ kind }) => kind);
  expect(kinds.slice(-2)).toEqual(["gap", "record"]);
  expect(BigInt(position["item"]!)).toBeGreaterThan(BigInt(before.item));
  // It stays where it was told, also for a page that comes later.
  await page.reload();
  await expect(lanes.part("gap")).toHaveCount(1);
  await expect(lanes.part("failure")).toBeHidden();
});
