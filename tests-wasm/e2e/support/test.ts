/** The tests' own `test`: providers that end with their test, and pages on which no policy may be violated. */
import { test as base, expect } from "@playwright/test";
import type { BrowserContext, Locator, Page } from "@playwright/test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ProviderOptions } from "./provider.js";
import { Provider } from "./provider.js";
import { ROOT } from "./root.js";

export { expect } from "@playwright/test";

/** Where the pictures go. */
export const SCREENS = join(ROOT, "test-results/screens");

interface Fixtures {
  provide(options?: ProviderOptions): Promise<Provider>;
  /** Watches a context for violations of the content security policy and for errors of the page. */
  watch(context: BrowserContext): void;
}

export const test = base.extend<Fixtures & { clean: void }>({
  provide: async ({}, use, info) => {
    const started: Provider[] = [];
    await use(async (options) => {
      const provider = await Provider.start(options);
      started.push(provider);
      return provider;
    });
    if (info.status !== info.expectedStatus) {
      for (const [index, { log }] of started.entries()) await info.attach(`provider-${index}.log`, { body: log, contentType: "text/plain" });
    }
    for (const provider of started) await provider.dispose();
  },
  watch: async ({}, use) => {
    const wrong: string[] = [];
    await use((context) => {
      context.on("console", (message) => {
        const text = message.text();
        if (/content security policy/i.test(text)) wrong.push(text);
      });
      context.on("weberror", (error) => wrong.push(String(error.error())));
    });
    expect(wrong, "violations of the policy, and errors that the page did not catch").toEqual([]);
  },
  clean: [
    async ({ context, watch }, use) => {
      watch(context);
      await use();
    },
    { auto: true },
  ],
});

/** The lanes page, by what it shows. */
export class Lanes {
  constructor(readonly page: Page) {}

  static async open(page: Page, provider: Provider, parameters: Record<string, string> = {}): Promise<Lanes> {
    await page.goto(`${provider.url}/?${new URLSearchParams(parameters)}`);
    return new Lanes(page);
  }

  part(id: string): Locator {
    return this.page.getByTestId(id);
  }

  get records(): Locator {
    return this.part("record");
  }

  async data(id: string): Promise<Record<string, string>> {
    return this.part(id).evaluate((element) => ({ ...(element as HTMLElement).dataset }) as Record<string, string>);
  }

  /** The durable position that is shown. */
  async position(): Promise<{ epoch: string; sequence: string; checkpoint: string; item: string; revision: string }> {
    const { epoch = "", sequence = "", checkpoint = "", item = "", revision = "" } = await this.data("position");
    return { epoch, sequence, checkpoint, item, revision };
  }

  /** The last item that was drawn. */
  async item(): Promise<number> {
    return Number((await this.data("stored-items"))["item"] ?? 0);
  }

  /** Waits until items above this one are stored and drawn. */
  async pass(item: number): Promise<void> {
    await expect.poll(() => this.item(), { message: `an item after ${item}` }).toBeGreaterThan(item);
  }

  async append(text: string, lane?: string): Promise<Locator> {
    if (lane !== undefined) await this.part("append-lane").selectOption({ label: lane });
    await this.part("append-text").fill(text);
    await this.part("append-send").click();
    return this.part("own-record").filter({ hasText: text }).first();
  }

  /** Everything that is stored, read by the page through the package, with the position that it was read against. */
  async export(): Promise<{ items: Exported[]; position: Record<string, string> }> {
    // By the keyboard: what moves above it cannot get in the way.
    const [download] = await Promise.all([this.page.waitForEvent("download"), this.part("export").press("Enter")]);
    await expect(this.part("recounted"), (await this.part("recounted").textContent()) ?? "").toHaveAttribute("data-verdict", "good");
    const items = readFileSync(await download.path(), "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Exported);
    return { items, position: await this.data("recounted") };
  }
}

/** A line of an export. */
export interface Exported {
  kind: "record" | "transition" | "gap";
  item: string;
  assurance: string;
  brokerEpoch: string;
  sequence: string;
  checkpoint: string;
  lane: string;
  messageId: string;
  payload: string;
  transition: string;
  fromEpoch: string | null;
  toEpoch: string;
  lastDurableSequence: string | null;
}

/** What the provider's writer put into a record: it numbers them from 0 in every epoch, so without other writers this is the sequence. */
export function numberOf(record: Exported): number {
  return (JSON.parse(Buffer.from(record.payload, "base64").toString()) as { number: number }).number;
}

/**
 * Checks items of all lanes against what the provider wrote: contiguous, each once, none missing from the first to the last. One `expect`
 * for all of it: each one costs milliseconds, and there are thousands of items.
 */
export function expectWhole(items: readonly Exported[]): void {
  const wrong: string[] = [];
  const messages = new Set<string>();
  let epoch: string | null = null;
  let next = 0;
  for (const [index, item] of items.entries()) {
    const name = `item ${item.item}`;
    if (Number(item.item) !== index + 1) wrong.push(`${name} is in place ${index + 1}`);
    if (item.kind === "transition") {
      epoch = item.toEpoch;
      next = 0;
      continue;
    }
    if (epoch === null) {
      epoch = item.brokerEpoch;
      next = Number(item.sequence);
    }
    if (item.brokerEpoch !== epoch) wrong.push(`${name} is of epoch ${item.brokerEpoch}, not ${epoch}`);
    if (Number(item.sequence) !== next) wrong.push(`${name} has sequence ${item.sequence}, not ${next}`);
    if (numberOf(item) !== next) wrong.push(`${name} was written as ${numberOf(item)}, not ${next}`);
    if (messages.has(item.messageId)) wrong.push(`${name} came twice`);
    messages.add(item.messageId);
    next = Number(item.sequence) + 1;
  }
  expect(wrong.slice(0, 5)).toEqual([]);
}

/** The first of `expected` that `items` does not begin with, as text; null when it begins with all of them. */
export function firstDifference(items: readonly Exported[], expected: readonly Exported[]): string | null {
  for (const [index, item] of expected.entries()) {
    const [is, should] = [JSON.stringify(items[index]), JSON.stringify(item)];
    if (is !== should) return `${is} where ${should} was`;
  }
  return null;
}
