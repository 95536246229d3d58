import type { Page } from "@playwright/test";
import type { KeyEvent, Remuda } from "remuda";
import { servePackage } from "../support/package.js";
import type { Provider } from "../support/provider.js";
import { expect, test } from "../support/test.js";

/** What the page has, once it is open. */
interface Opened {
  remuda: Remuda;
  events: KeyEvent[];
  lane: string;
  member: Uint8Array;
  /** Whether the browser's X25519 is used, or that of the WebAssembly. */
  isWrapped: boolean;
  isExtractable: boolean;
  rotationKey: CryptoKey;
}

declare global {
  interface Window {
    reader: Opened;
  }
}

const ENCRYPTED = { writer: 0, control: true, more: ["--class", "standard", "--encrypted"] };

let served: Awaited<ReturnType<typeof servePackage>>;
test.beforeAll(async () => void (served = await servePackage()));
test.afterAll(() => served.close());

/** Opens a client that follows the key stream, as its owner and as a member at once. */
async function open(page: Page, provider: Provider): Promise<void> {
  await page.goto(served.url);
  await page.evaluate(
    async ({ node, url }) => {
      const { connect, holderKey, memberKey } = (await import(url)) as typeof import("remuda");
      type Info = { context: string; streamId: string; keyStreamId: string; rotationSeed: string; webSocket: string; endpoint: string; lanes: { id: string }[] };
      const known = localStorage.getItem("info");
      const info = (known ? JSON.parse(known) : await (await fetch(`${node}/demo/info`)).json()) as Info;
      localStorage.setItem("info", JSON.stringify(info));
      const hex = (bytes: Uint8Array) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      const bytes = (text: string) => Uint8Array.from(text.match(/../g)!, (byte) => parseInt(byte, 16));
      const [holder, member] = [await holderKey(), await memberKey()];
      const grant = async (name: string, more: object) => {
        const body = JSON.stringify({ holderKey: hex(holder.publicKey), ...more });
        const headers = { "content-type": "application/json" };
        const answer = await fetch(`${node}/demo/grant`, { method: "POST", headers, body }).catch(() => null);
        // While nobody gives a new one, the last is remembered.
        const text = answer ? ((await answer.json()) as { grant: string }).grant : localStorage.getItem(name)!;
        localStorage.setItem(name, text);
        return bytes(text);
      };
      const main = () => grant("main", { hpkeKey: hex(member.publicKey) });
      const keys = () => grant("keys", { stream: info.keyStreamId, verbs: ["APPEND", "REPLAY"] });
      const remuda = await connect({
        node,
        context: info.context,
        streamId: info.streamId,
        grant: await main(),
        renewGrant: main,
        signer: holder.privateKey,
        keyStream: { memberKey: member, grant: await keys(), renewGrant: keys },
        endpoint: [info.webSocket, info.endpoint],
        allowLoopback: true,
      });
      const events: KeyEvent[] = [];
      remuda.addEventListener("key", ({ detail }) => events.push(detail));
      const seed = bytes(`302e020100300506032b657004220420${info.rotationSeed}`);
      const rotationKey = await crypto.subtle.importKey("pkcs8", seed, "Ed25519", false, ["sign"]);
      const { publicKey, privateKey } = member;
      const isWrapped = "wrappingKey" in privateKey;
      const { extractable: isExtractable } = "wrappingKey" in privateKey ? privateKey.wrappingKey : privateKey;
      window.reader = { remuda, events, lane: info.lanes[0]!.id, member: publicKey, isWrapped, isExtractable, rotationKey };
    },
    { node: provider.url, url: `${served.url}/pkg/dist/index.js` },
  );
}

/** Publishes a batch for this member, or for somebody else. Gives the length of its receipt. */
function publish(page: Page, generation: number, to: "me" | "another"): Promise<number> {
  return page.evaluate(
    async ([generation, to]) => {
      const { remuda, rotationKey, member } = window.reader;
      const recipients = [to === "me" ? member : crypto.getRandomValues(new Uint8Array(32))];
      const dataKey = new Uint8Array(32).fill(generation + 1);
      // The last batch may be on its way back still.
      for (let tries = 0; ; tries++) {
        try {
          return (await remuda.publishKeyBatch({ generation: BigInt(generation), recipients, dataKey, rotationKey })).length;
        } catch (thrown) {
          if (tries > 50) throw thrown;
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      }
    },
    [generation, to] as const,
  );
}

const events = (page: Page) =>
  page.evaluate(() =>
    window.reader.events.map(({ state, generation, lastReadable }) => [state, Number(generation), lastReadable === null ? null : Number(lastReadable)]),
  );

/** Appends, again where the generation had ended meanwhile. */
function append(page: Page, text: string): Promise<void> {
  return page.evaluate(async (text) => {
    const { remuda, lane } = window.reader;
    for (let tries = 0; ; tries++) {
      try {
        const ticket = await remuda.append({ lane, payload: new TextEncoder().encode(text) });
        await ticket.durable;
        return;
      } catch (thrown) {
        const { code } = thrown as { code?: string };
        if (tries > 50 || !(code === "encryption/no-key" || code?.endsWith("generation-stale"))) throw thrown;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }, text);
}

/** What the database holds of the main stream, as this member reads it. */
const texts = (page: Page) =>
  page.evaluate(async () => {
    const items = await window.reader.remuda.subscribe({ lanes: "all", verification: "receipts" }).read(0n, 1 << 20);
    return items.flatMap((item) =>
      !("record" in item) || item.record !== "application"
        ? []
        : [[Number(item.encryptionGeneration), item.payload ? new TextDecoder().decode(item.payload) : item.sealed]],
    );
  });

test("keys come by the key stream while records flow, are kept wrapped, and end with the membership", async ({ page, provide }) => {
  const provider = await provide(ENCRYPTED);
  await open(page, provider);
  await page.evaluate(() => {
    const items = window.reader.remuda.subscribe({ lanes: "all", verification: "receipts" })[Symbol.asyncIterator]();
    void (async () => {
      while (!(await items.next()).done);
    })();
  });
  expect(await page.evaluate(() => [window.reader.isWrapped, window.reader.isExtractable])).toEqual([false, false]);
  expect(await publish(page, 0, "me")).toBeGreaterThan(300);
  await expect.poll(() => events(page)).toEqual([["opened", 0, null]]);
  await append(page, "under the first key");
  await expect.poll(() => texts(page)).toEqual([[0, "under the first key"]]);

  await publish(page, 1, "me");
  await expect.poll(() => events(page)).toContainEqual(["opened", 1, null]);
  await append(page, "still under the first key");
  await provider.control("chain", { operation: "activate-generation" });
  await append(page, "under the second key");
  await expect
    .poll(() => texts(page))
    .toEqual([
      [0, "under the first key"],
      [0, "still under the first key"],
      [1, "under the second key"],
    ]);

  await publish(page, 2, "another");
  await expect.poll(() => events(page)).toContainEqual(["removed", 2, 1]);

  // Another life of the page, with nobody to ask: what was kept opens what is stored.
  await provider.end("SIGTERM");
  await open(page, provider);
  expect((await texts(page)).map(([, text]) => text)).toEqual(["under the first key", "still under the first key", "under the second key"]);
  // At rest they are readable in no database of this origin.
  const found = await page.evaluate(async () => {
    const keys = [1, 2].map((byte) => String(new Uint8Array(32).fill(byte)));
    const holds = (value: unknown): boolean =>
      value instanceof Uint8Array
        ? keys.some((key) => String(value).includes(key))
        : typeof value === "object" && value !== null && !(value instanceof CryptoKey) && Object.values(value).some(holds);
    const names = (await indexedDB.databases()).map(({ name }) => name!);
    const found: string[] = [];
    for (const name of names) {
      const database = await new Promise<IDBDatabase>((resolve, reject) => {
        const request = indexedDB.open(name);
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
      });
      for (const store of database.objectStoreNames) {
        const values = await new Promise<unknown[]>((resolve) => {
          const request = database.transaction(store).objectStore(store).getAll();
          request.onsuccess = () => resolve(request.result);
        });
        if (values.some(holds)) found.push(`${name}/${store}`);
        if (name === "remuda-data-keys" && values.length < 2) found.push("nothing was kept");
      }
      database.close();
    }
    return [names.includes("remuda-data-keys"), ...found];
  });
  expect(found).toEqual([true]);
});

test("a browser without X25519 keeps a wrapped key, and opens envelopes all the same", async ({ page, provide }) => {
  await page.addInitScript(() => {
    const { subtle } = crypto;
    const generateKey = subtle.generateKey.bind(subtle) as (algorithm: unknown, ...rest: unknown[]) => Promise<unknown>;
    const without = (algorithm: unknown, ...rest: unknown[]) =>
      algorithm === "X25519" ? Promise.reject(new DOMException("Unrecognized name.", "NotSupportedError")) : generateKey(algorithm, ...rest);
    Object.defineProperty(subtle, "generateKey", { value: without });
  });
  await open(page, await provide(ENCRYPTED));
  expect(await page.evaluate(() => [window.reader.isWrapped, window.reader.isExtractable])).toEqual([true, false]);
  await publish(page, 0, "me");
  await expect.poll(() => events(page)).toEqual([["opened", 0, null]]);
  // The same key again.
  const before = await page.evaluate(() => [...window.reader.member]);
  await page.evaluate(() => window.reader.remuda.close());
  await page.reload();
  expect(await page.evaluate(async (url) => {
    const { memberKey } = (await import(url)) as typeof import("remuda");
    return [...(await memberKey()).publicKey];
  }, `${served.url}/pkg/dist/index.js`)).toEqual(before);
});
