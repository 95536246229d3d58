/** The auditor's page: what it says of files, honest and not, that it stays free meanwhile, and that it needs no network. */
import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { once } from "node:events";
import { createWriteStream, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { outline } from "remuda/inspect";
import { audit } from "remuda/verify";
import type { Provider } from "../support/provider.js";
import { ROOT } from "../support/root.js";
import { SCREENS, expect, test } from "../support/test.js";

interface Sample {
  file: string;
  family: "honest" | "lie" | "contradiction" | "damaged";
  title: string;
  code: string | null;
}

const FOLDER = join(ROOT, "www/public/samples");
const SAMPLES = JSON.parse(readFileSync(join(FOLDER, "index.json"), "utf8")) as Sample[];
const VIEWPORTS = [{ width: 1280, height: 800 }, { width: 390, height: 844 }];

const part = (page: Page, id: string) => page.getByTestId(id);

async function open(page: Page, provider: Provider): Promise<void> {
  await page.goto(`${provider.url}/audit.html`);
  await expect(part(page, "sample")).toHaveCount(SAMPLES.length);
}

async function tryOut(page: Page, file: string): Promise<void> {
  await page.locator(`[data-file="${file}"]`).click();
  await drawn(page);
}

async function drawn(page: Page): Promise<void> {
  await expect(part(page, "result")).toHaveAttribute("data-state", "drawn", { timeout: 60_000 });
}

/** A file of the same story again and again, at least so long: honest, however often it is told. */
async function longFile(path: string, leastBytes: number): Promise<{ items: number }> {
  const story = readFileSync(join(FOLDER, "honest-fast.audit"));
  const { head, items } = await outline(story);
  const body = story.subarray(head!.bytes);
  const times = Math.ceil(leastBytes / body.length);
  const start = Buffer.from(story.subarray(0, head!.bytes));
  start.writeUInt32BE(items * times, start.length - 4);
  const out = createWriteStream(path);
  out.write(start);
  for (let left = times; left > 0; left--) {
    if (!out.write(body)) await once(out, "drain");
  }
  out.end();
  await finished(out);
  return { items: items * times };
}

test("an honest file: the verdict in words, the history, the lane map, and what was not checked", async ({ page, provide }) => {
  const provider = await provide({ writer: 0 });
  await open(page, provider);
  await tryOut(page, "honest-fast.audit");
  await expect(part(page, "verdict")).toHaveAttribute("data-verdict", "consistent");
  await expect(part(page, "verdict-title")).toHaveText("No violation found");
  await expect(part(page, "records-count"), "what has no proof is not said to be proven").toHaveText("61 of 64");
  await expect(part(page, "finding")).toHaveCount(0);

  const epochs = part(page, "epoch");
  await expect(epochs).toHaveCount(3);
  await expect(epochs.nth(0)).toHaveAttribute("data-bars", "5");
  await expect(epochs.nth(0), "the floors of the first epoch").toHaveAttribute("data-floors", "2");
  await expect(epochs.nth(0)).toHaveAttribute("data-withdrawn", "3");
  await expect(part(page, "transition").nth(1)).toHaveAttribute("data-kind", "void");
  await expect(part(page, "transition").nth(2)).toHaveAttribute("data-kind", "clean");

  const map = part(page, "map-body");
  await expect(map).toHaveAttribute("data-signed", "true");
  await part(page, "map-lane").filter({ hasText: "none" }).first().click();
  await expect(part(page, "path-of")).toContainText("It is not there");
  await expect(part(page, "path-of")).toContainText("empty subtrees beside it, folded");
  await part(page, "map-pick").selectOption({ index: 0 });
  await expect(part(page, "map")).toHaveAttribute("data-item", "6");

  const report = await audit(new Uint8Array(readFileSync(join(FOLDER, "honest-fast.audit"))));
  for (const text of report.not_checked) await expect(part(page, "not-checked")).toContainText(text);
  await expect(part(page, "assurance").first()).toHaveAttribute("data-unverified", "3");

  const [download] = await Promise.all([page.waitForEvent("download"), part(page, "save-report").click()]);
  expect(JSON.parse(readFileSync(await download.path(), "utf8"))).toEqual(report);
});

test("every sample is judged as it should be, and names its rule", async ({ page, provide }) => {
  test.setTimeout(180_000);
  const provider = await provide({ writer: 0 });
  await open(page, provider);
  const verdicts = { honest: "consistent", lie: "violations", contradiction: "violations", damaged: "undecodable" };
  for (const { file, family, code } of SAMPLES) {
    await tryOut(page, file);
    await expect(part(page, "verdict"), file).toHaveAttribute("data-verdict", verdicts[family]);
    if (code !== null) {
      const named = page.locator(`[data-code="${code}"]`).first();
      await expect(named, `${file} names ${code}`).toBeVisible();
      await expect(named).toContainText(/CIP-39 §|CIP-7|SWIP-74/);
    }
    await part(page, "again").click();
    await expect(part(page, "open")).toBeVisible();
  }
});

test("a finding has its item's bytes beside what they say, and what came later is not called judged", async ({ page, provide }) => {
  const provider = await provide({ writer: 0 });
  await open(page, provider);
  await tryOut(page, "withheld-record.audit");
  const finding = part(page, "finding");
  await expect(finding).toHaveAttribute("data-code", "verify/lane-count");
  const shown = finding.getByTestId("shown-item");
  await expect(shown).toHaveAttribute("data-item", (await finding.getAttribute("data-item"))!);
  await expect(shown).toContainText("CheckpointFrame");
  await expect(shown.getByRole("region", { name: /Bytes of item/ })).toContainText(/^[0-9a-f]{8} {2}02 00 00/);
  await expect(part(page, "timeline")).toContainText("perhaps not judged");
  await expect(part(page, "map"), "the map is of the batch that fails").toHaveAttribute("data-item", (await finding.getAttribute("data-item"))!);

  await page.getByTestId("again").click();
  await tryOut(page, "altered-snapshot.audit");
  await expect(part(page, "check").filter({ hasText: "hash to what was signed" })).toHaveAttribute("data-outcome", "failed");
  await expect(part(page, "check").last(), "what the verifier did not come to is not said to hold").toHaveAttribute("data-outcome", "unknown");
});

test("evidence is taken away as a file that says the same on its own", async ({ page, provide }, info) => {
  const provider = await provide({ writer: 0 });
  await open(page, provider);
  for (const { file, code } of SAMPLES.filter(({ family }) => family === "contradiction")) {
    await tryOut(page, file);
    const [download] = await Promise.all([page.waitForEvent("download"), part(page, "save-evidence").first().click()]);
    const path = info.outputPath(file);
    await download.saveAs(path);
    await part(page, "file").setInputFiles(path);
    await expect(part(page, "verdict")).toContainText(file);
    await drawn(page);
    await expect(part(page, "evidence"), file).toHaveAttribute("data-code", code!);
    await expect(part(page, "evidence")).toHaveAttribute("data-items", "0,1");
    await expect(part(page, "finding")).toHaveCount(0);
    await part(page, "again").click();
  }
});

test("of two signed statements it shows where they differ", async ({ page, provide }) => {
  const provider = await provide({ writer: 0 });
  await open(page, provider);
  await tryOut(page, "two-histories.audit");
  const difference = part(page, "difference");
  await expect(difference).toContainText("ordered_range_root");
  await expect(difference).toContainText("last_sequence");
  await expect(difference, "both follow one and the same").not.toContainText("previous_checkpoint");
});

test("files of evidence of feeds and broadcasts are judged by their own rules", async ({ page, provide }) => {
  const provider = await provide({ writer: 0 });
  await open(page, provider);
  await tryOut(page, "feed-equivocation.audit");
  await expect(part(page, "verdict")).toHaveAttribute("data-family", "feed");
  await expect(part(page, "verdict-title")).toContainText("publisher signed two things that exclude each other");
  await expect(part(page, "about")).toContainText("prices");
  await expect(part(page, "not-checked")).toContainText("key schedule");
  await part(page, "again").click();
  await tryOut(page, "broadcast-contradiction.audit");
  await expect(part(page, "verdict")).toHaveAttribute("data-family", "broadcast");
  await expect(part(page, "not-checked")).toContainText("who the owner is");
});

test("a file of 100 MB has progress, is cancelled at once, and keeps the page free", async ({ page, provide }, info) => {
  test.setTimeout(240_000);
  const provider = await provide({ writer: 0 });
  await open(page, provider);
  const large = info.outputPath("large.audit");
  await longFile(large, 100_000_000);
  await page.evaluate(() => {
    const ticks: number[] = [];
    setInterval(() => ticks.push(performance.now()), 10);
    Object.assign(window, { ticks });
  });
  await part(page, "file").setInputFiles(large);
  const done = async () => Number(await part(page, "progress").getAttribute("data-bytes"));
  await expect.poll(done).toBeGreaterThan(2_000_000);
  const [first, ticked] = [await done(), await page.evaluate(() => (window as unknown as { ticks: number[] }).ticks.length)];
  await expect.poll(done, "it goes on").toBeGreaterThan(first + 2_000_000);
  const went = (await page.evaluate(() => (window as unknown as { ticks: number[] }).ticks.length)) - ticked;
  expect(went, "the page did its own work meanwhile").toBeGreaterThan(4);
  await part(page, "cancel").click();
  await expect(part(page, "notice")).toContainText("Cancelled");
  await expect(part(page, "open")).toBeVisible();
  rmSync(large);

  // One that is a tenth as long, to its end.
  const shorter = info.outputPath("shorter.audit");
  const { items } = await longFile(shorter, 10_000_000);
  await part(page, "file").setInputFiles(shorter);
  await drawn(page);
  await expect(part(page, "verdict")).toHaveAttribute("data-verdict", "consistent");
  await expect(part(page, "items-count")).toHaveText(items.toLocaleString("en"));
  await part(page, "items-panel").locator("summary").first().click();
  await part(page, "items-panel").getByLabel("Go to item").fill(String(items - 1));
  await part(page, "items-panel").getByLabel("Go to item").press("Enter");
  await expect(part(page, "items").locator("summary").last()).toContainText(String(items - 1));
  rmSync(shorter);
});

test("a provider is recorded and audited", async ({ page, provide }) => {
  test.setTimeout(90_000);
  const provider = await provide({ writer: 40 });
  await open(page, provider);
  await part(page, "record-toggle").click();
  await expect(part(page, "record-node")).toHaveValue(provider.url);
  await part(page, "record-seconds").selectOption("3");
  await part(page, "record-start").click();
  await drawn(page);
  await expect(part(page, "verdict")).toHaveAttribute("data-verdict", "consistent");
  await expect(part(page, "epoch").first()).not.toHaveAttribute("data-bars", "0");
});

test("a provider that lies is recorded, and its lie is in the recording", async ({ page, provide }) => {
  test.setTimeout(90_000);
  const provider = await provide({ writer: 40, lie: "withhold-record", lieAfter: 12 });
  await open(page, provider);
  await part(page, "record-toggle").click();
  await part(page, "record-seconds").selectOption("3");
  await part(page, "record-start").click();
  await drawn(page);
  await expect(part(page, "verdict")).toHaveAttribute("data-verdict", "violations");
  await expect(part(page, "finding").first()).toHaveAttribute("data-code", "verify/lane-count");
});

test("a provider that is not there is said not to be", async ({ page, provide }) => {
  const provider = await provide({ writer: 0 });
  await open(page, provider);
  await part(page, "record-toggle").click();
  await part(page, "record-node").fill("http://127.0.0.1:9");
  await part(page, "record-start").click();
  await expect(part(page, "notice")).toContainText("Nothing was recorded from http://127.0.0.1:9");
  await expect(part(page, "record-start")).toBeEnabled();
});

test("it works after the network is gone: reloaded, with samples and evidence of every family", async ({ page, context, provide }) => {
  const provider = await provide({ writer: 0 });
  await open(page, provider);
  await expect(part(page, "offline")).toHaveAttribute("data-state", "ready");
  await provider.end("SIGKILL");
  await context.setOffline(true);
  await page.reload();
  await expect(part(page, "sample")).toHaveCount(SAMPLES.length);
  await tryOut(page, "honest-fast.audit");
  await expect(part(page, "map-body")).toHaveAttribute("data-signed", "true");
  await part(page, "again").click();
  await tryOut(page, "feed-equivocation.audit");
  await expect(part(page, "evidence")).toHaveAttribute("data-code", "watchtower/equivocation");
});

test("it is used by the keyboard alone", async ({ page, provide }) => {
  const provider = await provide({ writer: 0 });
  await open(page, provider);
  const sample = page.locator('[data-file="two-histories.audit"]');
  await sample.focus();
  await page.keyboard.press("Enter");
  await drawn(page);
  await expect(part(page, "verdict"), "what is new has the focus").toBeFocused();
  await expect(part(page, "live")).toContainText("exclude each other");
  await page.keyboard.press("Tab");
  await expect(part(page, "again")).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(part(page, "file")).toBeFocused();
});

for (const scheme of ["light", "dark"] as const) {
  test(`nothing is in the way of anybody, ${scheme}, wide and on a phone`, async ({ browser, provide, watch }) => {
    test.setTimeout(180_000);
    const provider = await provide({ writer: 0 });
    for (const viewport of VIEWPORTS) {
      const context = await browser.newContext({ viewport, colorScheme: scheme, reducedMotion: "reduce" });
      watch(context);
      const page = await context.newPage();
      await open(page, provider);
      await settle(page, `audit-${viewport.width}-${scheme}`);
      for (const file of ["two-histories.audit", "honest-group.audit", "altered-snapshot.audit"]) {
        await tryOut(page, file);
        await settle(page, `audit-${file.replace(".audit", "")}-${viewport.width}-${scheme}`);
        await part(page, "again").click();
      }
      await context.close();
    }
  });
}

/** No rule of axe is broken, nothing scrolls sideways, and a picture of it is kept. */
async function settle(page: Page, name: string): Promise<void> {
  await expect(page.getByText("Reading the item…")).toHaveCount(0);
  const { violations } = await new AxeBuilder({ page }).analyze();
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`), name).toEqual([]);
  const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(sideways, name).toBeLessThanOrEqual(0);
  await page.screenshot({ path: join(SCREENS, `${name}.png`), fullPage: true });
}
