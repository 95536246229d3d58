/** Consumer groups by the package alone, in a page that has nothing else: what is built is served as it is. */
import type { Page } from "@playwright/test";
import { join } from "node:path";
import type * as Package from "remuda";
import type { Provider } from "../support/provider.js";
import { ROOT } from "../support/root.js";
import { expect, test } from "../support/test.js";

interface Opened {
  remuda: Package.Remuda;
  name: Package.GroupName;
  deliveries: Package.Delivery[];
  states: string[];
}

declare global {
  interface Window {
    opened: Opened;
  }
}

const GROUP = "88".repeat(32);
/** The encryption generation that a new demo stream begins with. */
const GENERATION = 0;

interface Options {
  database?: string;
  /** The data key of every generation that is given, by its byte; none for a stream in the clear. */
  dataKeys?: { generation: number; byte: number }[];
}

/** Opens the stream in a page; with a key that the browser keeps, so that a later page is the same holder. */
async function open(page: Page, provider: Provider, options: Options = {}): Promise<void> {
  await page.goto(`${provider.url}/README.md`);
  await page.evaluate(async ({ group, database = "remuda", dataKeys }) => {
    const entry = "/dist/index.js";
    const { connect, holderKey } = (await import(entry)) as typeof Package;
    const info = (await (await fetch("/demo/info")).json()) as Record<"context" | "streamId" | "endpoint", string> & { lanes: { id: string }[] };
    const holder = await holderKey();
    const holderKeyHex = [...holder.publicKey].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const verbs = ["APPEND", "CONSUME", "ACKNOWLEDGE", "REPLAY", "GROUP_ADMIN", "REDRIVE"];
    const headers = { "content-type": "application/json" };
    // No envelope is opened here: any key will do.
    const hpkeKey = dataKeys && "77".repeat(32);
    const answer = await fetch("/demo/grant", { method: "POST", headers, body: JSON.stringify({ holderKey: holderKeyHex, verbs, hpkeKey }) });
    const { grant } = (await answer.json()) as { grant: string };
    const bytes = new Uint8Array(grant.match(/../g)!.map((pair) => parseInt(pair, 16)));
    const { context, streamId } = info;
    const keys = dataKeys?.map(({ generation, byte }) => ({ generation: BigInt(generation), key: new Uint8Array(32).fill(byte) }));
    const remuda = await connect({
      node: location.origin,
      context,
      streamId,
      grant: bytes,
      signer: holder.privateKey,
      database,
      allowLoopback: true,
      endpoint: info.endpoint,
      ...(keys && { dataKeys: keys }),
    });
    const opened: Opened = { remuda, name: { lane: info.lanes[0]!.id, group }, deliveries: [], states: [] };
    window.opened = opened;
    remuda.addEventListener("delivery-state", ({ detail }) => opened.states.push(`${detail.sequence} ${detail.action}`));
    remuda.addEventListener("undecryptable", ({ detail }) => opened.states.push(`${detail.sequence} undecryptable ${detail.sealed} ${detail.decided}`));
    remuda.addEventListener("failure", ({ detail }) => opened.states.push(detail.failure.code));
  }, { group: GROUP, ...options });
  // What is asked for before there is a connection is refused.
  await expect.poll(() => page.evaluate(() => window.opened.remuda.status.connection)).toBe("open");
}

async function consume(page: Page): Promise<void> {
  await page.evaluate(() => {
    const { remuda, name, deliveries } = window.opened;
    void (async () => {
      for await (const delivery of remuda.group(name)) deliveries.push(delivery);
    })();
  });
}

/** What was delivered: text and attempt. */
function delivered(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    window.opened.deliveries.map(({ record }) => `${new TextDecoder().decode(record.payload ?? undefined)} ${record.attempt}`),
  );
}

async function append(page: Page, texts: string[]): Promise<void> {
  await page.evaluate(async (all) => {
    const { remuda, name } = window.opened;
    for (const text of all) await (await remuda.append({ lane: name.lane, payload: new TextEncoder().encode(text) })).durable;
  }, texts);
}

async function create(page: Page): Promise<number | undefined> {
  return page.evaluate(async () => {
    const { remuda, name } = window.opened;
    const terms = { recordDeadlineMs: 3_600_000n, deadLetterTtlMs: 3_600_000n, retentionPinUntilMs: 0n };
    const limits = { visibilityTimeoutMs: 2_000n, maxVisibilityMs: 600_000n, maxInFlight: 10, maxAttempts: 50 };
    const { config } = await remuda.createGroup({ ...name, mode: "concurrent", ...limits, ...terms });
    return config?.maxInFlight;
  });
}

test("records of a group are settled by a page, and what is not comes to the next one", async ({ page, context, provide }) => {
  const provider = await provide({ writer: 0, pages: join(ROOT, "pkg"), more: ["--class", "standard"] });
  await open(page, provider);
  expect(await create(page)).toBe(10);
  await consume(page);
  await append(page, ["done", "again", "never", "held"]);
  await expect.poll(() => delivered(page)).toEqual(["done 1", "again 1", "never 1", "held 1"]);
  const settled = await page.evaluate(async () => {
    const [done, again, never, held] = window.opened.deliveries as [Package.Delivery, Package.Delivery, Package.Delivery, Package.Delivery];
    await held.extend(60_000n);
    const states = [await done.ack(), await again.nack(), await never.reject("99".repeat(32))];
    const late = await done.ack().catch((error: Package.RemudaError) => error.code);
    const [{ sequence, cycle }] = states.slice(2) as [Package.DeliveryState];
    const redriven = await window.opened.remuda.redrive({ ...window.opened.name, sequence, cycle });
    return [...states.map(({ action }) => action), late, redriven.action, String(done.signal.aborted), String(held.signal.aborted)];
  });
  expect(settled).toEqual(["ack", "nack", "reject", "group/lease-over", "redrive", "true", "false"]);
  await expect.poll(async () => (await delivered(page)).slice(4).sort()).toEqual(["again 2", "never 1"]);
  await page.evaluate(() => Promise.all(window.opened.deliveries.slice(4).map((delivery) => delivery.ack())));

  // The next page has the database of the first: it goes on behind the last receipt, and is given what was held.
  await page.evaluate(() => window.opened.remuda.close());
  await page.close();
  await provider.end("SIGKILL");
  await provider.start();
  const next = await context.newPage();
  await open(next, provider);
  await consume(next);
  await append(next, ["new"]);
  await expect.poll(() => delivered(next)).toEqual(["new 1"]);
  await next.evaluate(() => window.opened.deliveries[0]!.ack());
  expect(await next.evaluate(() => window.opened.states)).toEqual(["4 ack"]);
  await next.evaluate(() => window.opened.remuda.deleteGroup(window.opened.name));
});

test("what a page cannot open is given back or rejected, and told, and never handed out", async ({ page, context, provide }) => {
  const provider = await provide({ writer: 0, pages: join(ROOT, "pkg"), more: ["--class", "standard", "--encrypted"] });
  const key = { generation: GENERATION, byte: 5 };
  await open(page, provider, { dataKeys: [key] });
  await create(page);
  await append(page, ["sealed"]);
  await page.evaluate(() => window.opened.remuda.close());
  for (const [database, dataKeys, told] of [
    ["without", [], "0 undecryptable encryption/no-key nack"],
    ["another", [{ ...key, byte: 6 }], "0 undecryptable verify/aead reject"],
  ] as const) {
    const other = await context.newPage();
    await open(other, provider, { database, dataKeys: [...dataKeys] });
    await consume(other);
    const decision = `0 ${told.split(" ").at(-1)}`;
    await expect.poll(() => other.evaluate(() => window.opened.states), { timeout: 45_000 }).toEqual([told, decision]);
    expect(await delivered(other)).toEqual([]);
    await other.evaluate(() => window.opened.remuda.close());
  }
});
