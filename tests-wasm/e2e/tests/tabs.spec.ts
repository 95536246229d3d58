import { Lanes, expect, expectWhole, firstDifference, test } from "../support/test.js";

test("two tabs: one connects, both see the same, and the other takes over", async ({ context, provide }) => {
  const provider = await provide();
  const first = await Lanes.open(await context.newPage(), provider);
  await expect(first.part("role")).toHaveAttribute("data-state", "owner");
  const second = await Lanes.open(await context.newPage(), provider);
  await expect(second.part("role")).toHaveAttribute("data-state", "follower");
  await expect(second.part("connection")).toHaveAttribute("data-state", "open");
  await second.pass((await first.item()) + 20);

  // A follower puts what it appends into the outbox, the owner sends it, and both see it durable.
  const own = await second.append("from the second tab");
  await expect(own).toHaveAttribute("data-state", "durable");
  const message = await own.getAttribute("data-message");
  const there = async (lanes: Lanes) => (await lanes.export()).items.some(({ messageId }) => messageId === message);
  expect(await there(first)).toBe(true);
  expect(await there(second)).toBe(true);

  const [a, b] = [await first.export(), await second.export()];
  const common = Math.min(a.items.length, b.items.length);
  expect(common).toBeGreaterThan(20);
  expect(firstDifference(a.items, b.items.slice(0, common))).toBeNull();

  await first.page.close();
  await expect(second.part("role")).toHaveAttribute("data-state", "owner");
  await second.pass((await second.item()) + 20);
  await expect(second.part("failure")).toBeHidden();
  const { items } = await second.export();
  expect(firstDifference(items, a.items)).toBeNull();
  expect(new Set(items.map(({ messageId }) => messageId)).size).toBe(items.length);
});

test("a tab that is closed while it follows changes nothing for the owner", async ({ context, provide }) => {
  const provider = await provide();
  const first = await Lanes.open(await context.newPage(), provider);
  await first.pass(10);
  const second = await Lanes.open(await context.newPage(), provider);
  await expect(second.part("role")).toHaveAttribute("data-state", "follower");
  await second.page.close();
  await first.pass((await first.item()) + 20);
  await expect(first.part("role")).toHaveAttribute("data-state", "owner");
  expectWhole((await first.export()).items);
});
