import type { Page } from "@playwright/test";
import type { Provider } from "../support/provider.js";
import { SCREENS, expect, test } from "../support/test.js";

const VIEWPORTS = [{ width: 1280, height: 800 }, { width: 390, height: 844 }];

async function open(page: Page, provider: Provider, parameters: Record<string, string> = {}): Promise<void> {
  await page.goto(`${provider.url}/watchtower.html?${new URLSearchParams(parameters)}`);
}

/** The cursor of a request, the last member of its CBOR: an integer of at most two bytes here. */
function cursorOf(body: Buffer): number {
  const at = body.indexOf("cursor") + "cursor".length;
  const head = body[at]!;
  return head < 24 ? head : head === 24 ? body.readUInt8(at + 1) : body.readUInt16BE(at + 1);
}

const item = (page: Page) => page.getByTestId("item");
const stored = (page: Page) => page.getByTestId("stored");

test("a feed is followed, across a new key and a reload", async ({ page, provide }) => {
  const provider = await provide({ writer: 0, more: ["--feed-backlog", "30"] });
  await open(page, provider);
  await expect(stored(page)).toHaveAttribute("data-item", "30");
  await page.getByTestId("rotate").click();
  await page.getByTestId("publish-text").fill("after a rotation");
  await page.getByTestId("publish-send").click();
  const first = item(page).first();
  await expect(first).toContainText("after a rotation");
  await expect(first).toHaveAttribute("data-sequence", "31");
  await expect(first).toHaveAttribute("data-signing-key", "2");
  await expect(page.getByTestId("standing")).toHaveAttribute("data-sequence", "31");

  await page.reload();
  await expect(first).toContainText("after a rotation");
  await expect(page.getByTestId("state")).toHaveAttribute("data-state", "following");
  await expect(page.getByTestId("verified"), "what is stored is not verified twice").toHaveText("0");
  await expect(page.getByTestId("failure")).toBeHidden();
});

test("a backlog of 10,000 is pulled, verified and stored in at most 20 calls", async ({ page, provide }) => {
  test.setTimeout(180_000);
  const provider = await provide({ writer: 0, more: ["--feed-backlog", "10000"] });
  let calls = 0;
  page.on("request", (request) => {
    // What asks for something behind the backlog is not for the backlog.
    if (request.url().endsWith("/get_since") && cursorOf(request.postDataBuffer()!) < 10_000) calls += 1;
  });
  await open(page, provider);
  await expect(stored(page)).toHaveAttribute("data-item", "10000", { timeout: 120_000 });
  expect(calls, "calls").toBeLessThanOrEqual(20);
  await expect(page.getByTestId("standing")).toHaveAttribute("data-sequence", "10000");
  await expect(page.getByTestId("verified")).toHaveText("10,000");
});

test("what a filter does not want is verified and passed by, not stored", async ({ page, provide }) => {
  const provider = await provide({ writer: 0, more: ["--feed-backlog", "30"] });
  await open(page, provider, { kind: "note" });
  await expect(page.getByTestId("standing")).toHaveAttribute("data-sequence", "30");
  await expect(stored(page)).toHaveAttribute("data-item", "0");
  await page.getByTestId("publish-text").fill("wanted");
  await page.getByTestId("publish-send").click();
  await expect(item(page)).toHaveCount(1);
  await expect(item(page).first()).toHaveAttribute("data-sequence", "31");
  await expect(page.getByTestId("verified")).toHaveText("31");
  // Without a filter it is another source, with items of its own.
  await open(page, provider);
  await expect(stored(page)).toHaveAttribute("data-item", "31");
});

test("a feed whose keys were not pinned takes the actor's word once, and holds it to that", async ({ page, provide }) => {
  const provider = await provide({ writer: 0, more: ["--feed-backlog", "12", "--feed-rotate-every", "5"] });
  await open(page, provider, { pinned: "false" });
  await expect(stored(page)).toHaveAttribute("data-item", "12");
  await expect(item(page).first()).toHaveAttribute("data-signing-key", "3");
  await page.reload();
  await expect(stored(page)).toHaveAttribute("data-item", "12");
  // The next message is by the next key only once the actor has it.
  await Promise.all([page.waitForResponse((response) => response.url().endsWith("/rotate")), page.getByTestId("rotate").click()]);
  await page.getByTestId("publish-text").fill("by the next key");
  await page.getByTestId("publish-send").click();
  await expect(item(page).first()).toHaveAttribute("data-signing-key", "4");
});

test("sealed messages wait for their keys, in order", async ({ page, provide }) => {
  const provider = await provide({ writer: 0, more: ["--feed-backlog", "9", "--feed-paid", "--feed-epoch-messages", "4"] });
  await open(page, provider);
  for (const [epoch, held] of [["0", "0"], ["1", "3"], ["2", "7"]] as const) {
    await expect(page.getByTestId("notice")).toContainText(`epoch ${epoch}`);
    await expect(stored(page), "nothing is handed out before its key").toHaveAttribute("data-item", held);
    await page.getByTestId("give-key").click();
  }
  await expect(stored(page)).toHaveAttribute("data-item", "9");
  await expect(item(page).first()).toContainText('{"at":');
  await expect(page.getByTestId("notice")).toBeHidden();
});

for (const [choice, expected] of [["resume", "5"], ["reattach", "0"]] as const) {
  test(`a place that is gone: ${choice}, and the gap is reported`, async ({ page, provide }) => {
    const provider = await provide({ writer: 0, more: ["--feed-backlog", "3", "--feed-capacity", "5"] });
    await open(page, provider);
    await expect(stored(page)).toHaveAttribute("data-item", "3");
    // The tab is away while the ring buffer goes on.
    await page.goto("about:blank");
    for (let count = 0; count < 9; count++) {
      await fetch(`${provider.url}/demo/watchtower/publish`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ text: `meanwhile ${count}` }),
      });
    }
    await open(page, provider);
    await expect(page.getByTestId("notice")).toContainText("no longer retained");
    await expect(stored(page)).toHaveAttribute("data-item", "3");
    await page.getByTestId(choice).click();
    const gap = page.locator('[data-testid="item"][data-kind="gap"]');
    await expect(gap).toHaveAttribute("data-first", "4");
    await expect(gap).toHaveAttribute("data-last", choice === "resume" ? "7" : "12");
    await expect(stored(page)).toHaveAttribute("data-item", String(3 + 1 + Number(expected)));
  });
}

test("of two tabs one follows, the other reads what it stores, and takes over", async ({ page, context, provide }) => {
  const provider = await provide({ writer: 0, more: ["--feed-backlog", "5"] });
  await open(page, provider);
  await expect(stored(page)).toHaveAttribute("data-item", "5");
  const other = await context.newPage();
  await open(other, provider);
  await expect(other.getByTestId("role")).toHaveAttribute("data-state", "follower");
  await expect(item(other)).toHaveCount(5);
  await page.getByTestId("publish-text").fill("for both");
  await page.getByTestId("publish-send").click();
  await expect(item(other).first()).toContainText("for both");
  await page.close();
  await expect(other.getByTestId("role")).toHaveAttribute("data-state", "owner");
  await other.getByTestId("publish-text").fill("for one");
  await other.getByTestId("publish-send").click();
  await expect(item(other).first()).toContainText("for one");
  await expect(item(other)).toHaveCount(7);
});

/** Lies of the actor and of its author, and the code that catches each (VERDICTS). */
const LIES: Record<string, string> = {
  "withhold-message": "watchtower/gap",
  "alter-payload": "watchtower/payload-hash",
  "alter-header": "watchtower/signature",
  equivocate: "watchtower/equivocation",
  "trailing-byte": "watchtower/cbor",
};

for (const [lie, code] of Object.entries(LIES)) {
  test(`${lie} is caught as ${code}, and the position stays`, async ({ page, provide }) => {
    const provider = await provide({ writer: 0, more: ["--feed-backlog", "20", "--feed-lie", lie] });
    await open(page, provider);
    const failure = page.getByTestId("failure");
    await expect(failure).toBeVisible();
    await expect(failure).toHaveAttribute("data-code", code);
    await expect(failure).toHaveAttribute("data-rule", /^CIP-7: /);
    await expect(failure.getByRole("heading")).toHaveCSS("color", "rgb(163, 35, 28)");
    const held = await stored(page).getAttribute("data-item");
    expect(Number(held), "it was honest before").toBeGreaterThanOrEqual(10);
    if (lie === "equivocate") await expect(page.getByTestId("evidence")).toContainText("bytes of evidence");
    const sequence = page.getByTestId("standing");
    expect(await sequence.getAttribute("data-sequence"), "every sequence so far is an item").toBe(held);
    // Trying again, whatever it is told: nothing moves without its item.
    await page.getByTestId("again").click();
    await page.waitForTimeout(500);
    expect(await sequence.getAttribute("data-sequence")).toBe(await stored(page).getAttribute("data-item"));
  });
}

test("pictures", async ({ page, provide }) => {
  const honest = await provide({ writer: 0, more: ["--feed-backlog", "40"] });
  const lying = await provide({ writer: 0, more: ["--feed-backlog", "40", "--feed-lie", "alter-payload", "--feed-lie-after", "30"] });
  for (const viewport of VIEWPORTS) {
    await page.setViewportSize(viewport);
    for (const [name, provider] of [["watchtower", honest], ["watchtower-lie", lying]] as const) {
      await open(page, provider, { database: name + viewport.width });
      await expect(item(page).first()).toBeVisible();
      if (provider === lying) await expect(page.getByTestId("failure")).toBeVisible();
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), "nothing sticks out").toBeLessThanOrEqual(0);
      await page.screenshot({ path: `${SCREENS}/${name}-${viewport.width}x${viewport.height}.png` });
    }
  }
});
