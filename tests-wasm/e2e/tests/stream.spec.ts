import { Lanes, SCREENS, expect, expectWhole, test } from "../support/test.js";

test("records arrive in every lane, verified and durable", async ({ page, provide }) => {
  const provider = await provide();
  const lanes = await Lanes.open(page, provider);
  await expect(lanes.part("connection")).toHaveAttribute("data-state", "open");
  await expect(lanes.part("storage")).toHaveAttribute("data-state", "ready");
  await expect(lanes.part("role")).toHaveAttribute("data-state", "owner");
  await expect(lanes.part("lane")).toHaveCount(8);
  for (const lane of await lanes.part("lane").all()) {
    await expect(lane.getByTestId("record").nth(2)).toHaveAttribute("data-assurance", "lane-set");
  }
  await expect(lanes.part("evidence")).toContainText("Lane map root");
  await expect(lanes.part("failure")).toBeHidden();

  const { items, position } = await lanes.export();
  expectWhole(items);
  const last = items.filter(({ kind }) => kind === "record").at(-1)!;
  expect(position).toMatchObject({ epoch: last.brokerEpoch, sequence: last.sequence, checkpoint: last.checkpoint, item: last.item });
  expect(new Set(items.map(({ lane }) => lane)).size).toBe(8);
});

for (const [transport, words] of [["web-socket", "live, WebSocket"], ["long-poll", "live, long-poll"]] as const) {
  test(`the same stream over ${transport} alone`, async ({ page, provide }) => {
    const provider = await provide();
    const lanes = await Lanes.open(page, provider, { transport });
    await expect(lanes.part("connection")).toHaveText(words);
    await lanes.pass(20);
    await provider.end("SIGKILL");
    await provider.start();
    await expect(lanes.part("connection")).toHaveText(words);
    await lanes.pass(await lanes.item());
    expectWhole((await lanes.export()).items);
    await expect(await lanes.append(`over ${transport}`)).toHaveAttribute("data-state", "durable");
  });
}

test("every lane at once, verified as a whole", async ({ page, provide }) => {
  const lanes = await Lanes.open(page, await provide(), { lanes: "all" });
  await lanes.pass(20);
  await expect(lanes.records.first()).toHaveAttribute("data-assurance", "full-batch");
  expectWhole((await lanes.export()).items);
});

test("some lanes get their own records and no others", async ({ page, provide }) => {
  const provider = await provide();
  const { lanes: named } = (await (await fetch(`${provider.url}/demo/info`)).json()) as { lanes: { id: string; name: string }[] };
  const two = named.slice(0, 2);
  const lanes = await Lanes.open(page, provider, { lanes: two.map(({ name }) => name).join(",") });
  await expect(lanes.part("lane")).toHaveCount(2);
  await lanes.pass(10);
  const { items } = await lanes.export();
  expect(new Set(items.map(({ lane }) => lane))).toEqual(new Set(two.map(({ id }) => id)));
});

test("an append is provisional, then durable", async ({ page, provide }) => {
  const lanes = await Lanes.open(page, await provide({ writer: 0, batchMs: 1000 }));
  await expect(lanes.part("connection")).toHaveAttribute("data-state", "open");
  const own = await lanes.append("written by the page");
  await expect(own).toHaveAttribute("data-state", "provisional");
  await expect(own).toHaveAttribute("data-state", "durable");
  const message = await own.getAttribute("data-message");
  await expect(page.locator(`[data-testid=record][data-message="${message}"]`)).toContainText("written by the page");
});

test("stored rows are shown while the node is away", async ({ page, provide }) => {
  const pages = await provide({ writer: 0 });
  const node = await provide();
  const lanes = await Lanes.open(page, pages, { node: node.url });
  await lanes.pass(30);
  await node.end("SIGTERM");
  await expect(lanes.part("connection")).toHaveAttribute("data-state", "offline");
  // What was on its way to the disk when the node went is stored, and shown, a moment later.
  await expect.poll(async () => (await lanes.export()).items.length - (await lanes.item())).toBe(0);
  const before = await lanes.item();
  await page.reload();
  await expect.poll(() => lanes.item()).toBe(before);
  await expect(lanes.part("connection")).toHaveAttribute("data-state", "offline");
  await expect(lanes.records.first()).toBeVisible();
  await node.start();
  await lanes.pass(before);
  await expect(lanes.part("connection")).toHaveAttribute("data-state", "open");
});

for (const [name, viewport] of Object.entries({ desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } })) {
  test(`a picture at ${name} width`, async ({ page, provide }) => {
    await page.setViewportSize(viewport);
    const provider = await provide({ writer: 25 });
    const lanes = await Lanes.open(page, provider);
    await lanes.pass(40);
    await expect(await lanes.append("hello from this page")).toHaveAttribute("data-state", "durable");
    await provider.end("SIGTERM");
    await provider.start();
    await expect(lanes.part("epoch").first()).toHaveAttribute("data-transition", "clean");
    await lanes.pass((await lanes.item()) + 150);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(overflow, "no sideways scrolling").toBeLessThanOrEqual(0);
    await page.screenshot({ path: `${SCREENS}/lanes-${viewport.width}x${viewport.height}.png` });
    await page.emulateMedia({ colorScheme: "dark" });
    await page.screenshot({ path: `${SCREENS}/lanes-${viewport.width}x${viewport.height}-dark.png` });
  });
}
