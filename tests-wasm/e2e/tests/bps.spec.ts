import type { Page } from "@playwright/test";
import type { Provider } from "../support/provider.js";
import { SCREENS, expect, test } from "../support/test.js";

const VIEWPORTS = [{ width: 1280, height: 800 }, { width: 390, height: 844 }];

async function open(page: Page, provider: Provider, parameters: Record<string, string> = {}): Promise<void> {
  await page.goto(`${provider.url}/bps.html?${new URLSearchParams(parameters)}`);
  await expect(page.getByTestId("state")).toHaveAttribute("data-state", "open");
  await expect(page.getByTestId("standing"), "claimed before anything is sent").toHaveAttribute("data-sender", "open");
}

async function publish(page: Page, text: string): Promise<void> {
  await page.getByTestId("publish-text").fill(text);
  await page.getByTestId("publish-send").click();
}

const item = (page: Page) => page.getByTestId("item");

for (const transport of ["bridge", "direct"]) {
  test(`updates are sent, verified and stored over the ${transport} frames, and no index twice`, async ({ page, provide }) => {
    const provider = await provide({ writer: 0 });
    await open(page, provider, { transport });
    for (const [index, text] of ["one", "two"].entries()) {
      await publish(page, text);
      await expect(item(page).first()).toContainText(text);
      await expect(item(page).first()).toHaveAttribute("data-index", String(index));
    }
    await expect(page.getByTestId("standing")).toHaveAttribute("data-index", "1");

    // Another page, another stream, another challenge: the index goes on.
    await page.reload();
    await expect(item(page)).toHaveCount(2);
    await expect(page.getByTestId("standing")).toHaveAttribute("data-sender", "open");
    await publish(page, "three");
    await expect(item(page).first()).toContainText("three");
    await expect(item(page).first()).toHaveAttribute("data-index", "2");
    await expect(page.getByTestId("failure")).toBeHidden();
  });
}

test("an update that never comes is reported, and not waited for", async ({ page, provide }) => {
  const provider = await provide({ writer: 0, more: ["--bps-lie", "withhold"] });
  await open(page, provider);
  for (const text of ["even", "odd", "even again"]) await publish(page, text);
  const gap = page.locator('[data-testid="item"][data-kind="gap"]');
  await expect(gap).toHaveAttribute("data-first", "1");
  await expect(gap).toHaveAttribute("data-last", "1");
  await expect(page.getByTestId("missing")).toHaveText("1");
  await expect(item(page).first()).toHaveAttribute("data-index", "2");
});

test("what comes twice is dropped and counted", async ({ page, provide }) => {
  const provider = await provide({ writer: 0, more: ["--bps-lie", "replay"] });
  await open(page, provider);
  await publish(page, "once");
  await expect(item(page)).toHaveCount(1);
  await expect(page.getByTestId("dropped")).toHaveAttribute("data-replayed", "1");
});

/** Lies of the broker or of the node, and the code that catches each (VERDICTS). */
const LIES: Record<string, string> = {
  "alter-payload": "bps/signer",
  "relabel-index": "bps/id",
  "cut-chunk": "bps/soc-length",
};

for (const [lie, code] of Object.entries(LIES)) {
  test(`${lie} is caught as ${code}, and nothing is stored`, async ({ page, provide }) => {
    const provider = await provide({ writer: 0, more: ["--bps-lie", lie] });
    await open(page, provider);
    await publish(page, "bent on the way");
    const failure = page.getByTestId("failure");
    await expect(failure).toHaveAttribute("data-code", code);
    await expect(failure).toHaveAttribute("data-rule", /^SWIP-74: /);
    await expect(failure.getByRole("heading")).toHaveCSS("color", "rgb(163, 35, 28)");
    await expect(page.getByTestId("standing")).toHaveAttribute("data-index", "");
    await expect(item(page)).toHaveCount(0);
  });
}

test("other topics than the derived ones are not signed for", async ({ page, provide }) => {
  const provider = await provide({ writer: 0, more: ["--bps-lie", "other-topics"] });
  await page.goto(`${provider.url}/bps.html`);
  await expect(page.getByTestId("failure")).toHaveAttribute("data-code", "bps/offered-topics");
});

test("a broker that goes away is come back to, under another challenge and the next index", async ({ page, provide }) => {
  test.setTimeout(120_000);
  const provider = await provide({ writer: 0 });
  await open(page, provider, { transport: "direct" });
  await publish(page, "before");
  await expect(item(page)).toHaveCount(1);
  await provider.end("SIGKILL");
  await expect(page.getByTestId("notice")).toContainText("close/abnormal");
  // It waits in the queue, its index taken already.
  await publish(page, "meanwhile");
  await provider.start();
  await expect(page.getByTestId("state")).toHaveAttribute("data-state", "open", { timeout: 60_000 });
  await expect(page.getByTestId("standing")).toHaveAttribute("data-sender", "open", { timeout: 60_000 });
  await publish(page, "after");
  await expect(item(page).first()).toContainText("after", { timeout: 30_000 });
  await expect(item(page).first()).toHaveAttribute("data-index", "2");
});

test("pictures", async ({ page, provide }) => {
  const honest = await provide({ writer: 0 });
  const lying = await provide({ writer: 0, more: ["--bps-lie", "alter-payload"] });
  for (const viewport of VIEWPORTS) {
    await page.setViewportSize(viewport);
    for (const [name, provider] of [["bps", honest], ["bps-lie", lying]] as const) {
      await open(page, provider);
      for (const text of ["good morning", "the herd moves at noon"]) await publish(page, text);
      if (provider === lying) await expect(page.getByTestId("failure")).toBeVisible();
      else await expect(item(page).first()).toContainText("noon");
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), "nothing sticks out").toBeLessThanOrEqual(0);
      await page.screenshot({ path: `${SCREENS}/${name}-${viewport.width}x${viewport.height}.png` });
    }
  }
});
