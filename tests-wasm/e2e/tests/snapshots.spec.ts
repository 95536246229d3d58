/** Snapshots by the package alone: one database publishes, another begins with what it published. */
import { join } from "node:path";
import type * as Package from "remuda";
import { ROOT } from "../support/root.js";
import { expect, test } from "../support/test.js";

test("a new database begins with a published snapshot and misses nothing after it; what was altered is refused and changes nothing", async ({ page, provide }) => {
  const provider = await provide({ writer: 0, batchMs: 100, pages: join(ROOT, "pkg") });
  await page.goto(`${provider.url}/README.md`);
  const told = await page.evaluate(async () => {
    const entry = "/dist/index.js";
    const { connect, holderKey } = (await import(entry)) as typeof Package;
    const hex = (bytes: Uint8Array) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const info = (await (await fetch("/demo/info")).json()) as Record<"context" | "streamId" | "endpoint", string> & { lanes: { id: string }[] };
    const holder = await holderKey();
    const open = async (database: string) => {
      const headers = { "content-type": "application/json" };
      const body = JSON.stringify({ holderKey: hex(holder.publicKey), verbs: ["APPEND", "CONSUME", "REPLAY"] });
      const { grant } = (await (await fetch("/demo/grant", { method: "POST", headers, body })).json()) as { grant: string };
      const { context, streamId, endpoint } = info;
      const rest = { signer: holder.privateKey, database, allowLoopback: true, endpoint };
      return connect({ node: location.origin, context, streamId, grant: new Uint8Array(grant.match(/../g)!.map((pair) => parseInt(pair, 16))), ...rest });
    };
    const spec = { lanes: "all", verification: "full-stream" } as const;
    /** The texts of `count` records, with the item of the last one. */
    const take = async (remuda: Package.Remuda, count: number, after = 0n) => {
      const texts: string[] = [];
      let last = after;
      for await (const item of remuda.subscribe({ ...spec, after })) {
        if (item.kind !== "record" || item.payload === null) continue;
        texts.push(new TextDecoder().decode(item.payload));
        last = item.item;
        if (texts.length === count) break;
      }
      return { texts, last };
    };
    const append = async (remuda: Package.Remuda, text: string) =>
      (await remuda.append({ lane: info.lanes[0]!.id, payload: new TextEncoder().encode(text) })).durable;

    const writer = await open("writer");
    const replica = take(writer, 3);
    while (writer.status.subscriptions[0]?.state !== "live") await new Promise((resolve) => setTimeout(resolve, 20));
    for (const text of ["one", "two", "three"]) await append(writer, text);
    const { texts, last } = await replica;
    const key = (await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"])) as CryptoKeyPair;
    const signer = {
      publicKey: hex(new Uint8Array(await crypto.subtle.exportKey("raw", key.publicKey))),
      sign: async (digest: Uint8Array) => new Uint8Array(await crypto.subtle.sign("Ed25519", key.privateKey, new Uint8Array(digest))),
    };
    const bytes = new TextEncoder().encode(JSON.stringify(texts));
    const part = { lane: null, bytes, reference: new TextEncoder().encode("blob/1"), encryptionGeneration: 0n };
    const generation = await writer.subscribe(spec).publishSnapshots(last, [part], signer);
    const misplaced = await writer.subscribe(spec).publishSnapshots(last + 7n, [part], signer).catch(({ code }) => code as string);
    await writer.close();

    const reader = await open("reader");
    const expected = { ...generation, authorizedKeys: [signer.publicKey] };
    const altered = { ...expected, snapshots: [{ ...expected.snapshots[0]!, bytes: Uint8Array.of(1, 2, 3) }] };
    const refused = await reader.subscribe(spec).hydrate(altered).catch(({ code }) => code as string);
    const untouched = await reader.subscribe(spec).boundary();
    const hydrated = await reader.subscribe(spec).hydrate(expected);
    const behind = take(reader, 1, hydrated.lastItem);
    await append(reader, "four");
    const again = await reader.subscribe(spec).hydrate(expected).catch(({ code }) => code as string);
    const boundary = await reader.subscribe(spec).boundary();
    const first = (await reader.subscribe(spec)[Symbol.asyncIterator]().next()).value;
    const result = {
      content: new TextDecoder().decode(hydrated.contents[0]),
      checks: hydrated.checks.length,
      behind: (await behind).texts,
      kind: first?.kind,
      anchor: boundary?.anchor,
      codes: [misplaced, refused, again],
      untouched,
    };
    await reader.close();
    return result;
  });
  expect(told).toEqual({
    content: JSON.stringify(["one", "two", "three"]),
    checks: 13,
    behind: ["four"],
    kind: "snapshot",
    anchor: "snapshot",
    codes: ["client/snapshot-place", "verify/snapshot-hash", "client/snapshot-rollback"],
    untouched: null,
  });
});
