import { createPrivateKey, createPublicKey, diffieHellman } from "node:crypto";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { KeyStore } from "../src/key-store.js";
import type { MemberKey, SoftwareX25519 } from "../src/agreement.js";
import { agree } from "../src/agreement.js";
import { generateMemberKey, keptMemberKey } from "../src/member-key.js";
import type { Vault } from "../src/member-vault.js";
import { openVault } from "../src/member-vault.js";
import type { BetweenTabs } from "../src/protocol.js";
import type { WorkerLike } from "../src/remuda.js";
import { Remuda } from "../src/remuda.js";
import type { KeyBatch, KeyEvent } from "../src/types.js";
import type { Wrapped } from "../src/wrapping.js";
import { unwrap, wrap, wrappingKey } from "../src/wrapping.js";
import { OPTIONS, Origin, Tab, settle } from "./fakes.js";

afterEach(() => vi.restoreAllMocks());

/** A store in memory, which keeps what IndexedDB keeps: clones. */
class Shelf implements KeyStore {
  readonly entries = new Map<string, unknown>();
  /** What it gives instead of what it was given. */
  spoils = (value: unknown): unknown => value;
  get = async (name: string): Promise<unknown> => this.entries.get(name);
  add = async (name: string, value: unknown): Promise<void> => void (this.entries.has(name) || this.put(name, value));
  put = async (name: string, value: unknown): Promise<void> => void this.entries.set(name, this.spoils(structuredClone(value)));
  close = (): void => undefined;
}

const PKCS8 = Buffer.from("302e020100300506032b656e04220420", "hex");
const SPKI = Buffer.from("302a300506032b656e032100", "hex");
const secretKey = (secret: Uint8Array) => createPrivateKey({ key: Buffer.concat([PKCS8, secret]), format: "der", type: "pkcs8" });

/** What the WebAssembly does, by other people. Each secret that it was given. */
function software(): SoftwareX25519 & { seen: Uint8Array[] } {
  const seen: Uint8Array[] = [];
  return {
    seen,
    x25519PublicKey: (secret) => {
      seen.push(secret);
      return new Uint8Array(createPublicKey(secretKey(secret)).export({ format: "der", type: "spki" }).subarray(-32));
    },
    x25519: (secret, publicKey) => {
      seen.push(secret);
      const theirs = createPublicKey({ key: Buffer.concat([SPKI, publicKey]), format: "der", type: "spki" });
      return new Uint8Array(diffieHellman({ privateKey: secretKey(secret), publicKey: theirs }));
    },
  };
}

/** A browser without X25519 in WebCrypto. */
function withoutX25519(): void {
  const generateKey = crypto.subtle.generateKey.bind(crypto.subtle);
  vi.spyOn(crypto.subtle, "generateKey").mockImplementation(((algorithm: string, ...rest: [boolean, KeyUsage[]]) =>
    algorithm === "X25519"
      ? Promise.reject(new DOMException("Unrecognized name.", "NotSupportedError"))
      : generateKey(algorithm, ...rest)) as typeof generateKey);
}

const none = () => Promise.reject<SoftwareX25519>(new Error("it is not needed"));

describe("a member's key", () => {
  test("is not extractable where WebCrypto has X25519, is kept, and agrees as its public key says", async () => {
    const shelf = new Shelf();
    const key = await keptMemberKey(shelf, "a", none);
    expect((key.privateKey as CryptoKey).extractable).toBe(false);
    expect((await keptMemberKey(shelf, "a", none)).publicKey).toEqual(key.publicKey);
    expect((await keptMemberKey(shelf, "b", none)).publicKey).not.toEqual(key.publicKey);
    const other = await generateMemberKey();
    expect(await agree(key, other.publicKey, none)).toEqual(await agree(other, key.publicKey, none));
  });

  test("is stored only wrapped where it has not, and its secret is erased after each use", async () => {
    withoutX25519();
    const shelf = new Shelf();
    const code = software();
    const key = await keptMemberKey(shelf, "a", async () => code);
    const { wrappingKey: wrapping, ...wrapped } = key.privateKey as Wrapped & { wrappingKey: CryptoKey };
    expect(wrapping.extractable).toBe(false);
    const secret = await unwrap(wrapping, wrapped, "remuda/member-key");
    expect(code.x25519PublicKey(secret)).toEqual(key.publicKey);
    expect(inTheClear(shelf, secret)).toBe(false);
    code.seen.pop();
    const native = { publicKey: code.x25519PublicKey(new Uint8Array(32).fill(9)) };
    code.seen.pop();
    expect(await agree(key, native.publicKey, async () => code)).toHaveLength(32);
    expect(code.seen.length).toBeGreaterThan(2);
    for (const seen of code.seen) expect(seen).toEqual(new Uint8Array(32));
  });

  test("that comes back other than it was stored is refused", async () => {
    const shelf = new Shelf();
    await keptMemberKey(shelf, "a", none);
    shelf.entries.set("member:a", { ...(shelf.entries.get("member:a") as MemberKey), publicKey: new Uint8Array(32).fill(9) });
    await expect(keptMemberKey(shelf, "a", none)).rejects.toMatchObject({ code: "client/key-not-kept" });
    const forgets = new Shelf();
    forgets.spoils = () => undefined;
    await expect(keptMemberKey(forgets, "a", none)).rejects.toMatchObject({ code: "client/key-not-kept" });
  });

  test("is stored nowhere in the clear where nothing can be wrapped", async () => {
    withoutX25519();
    const shelf = new Shelf();
    shelf.spoils = (value) => (value instanceof CryptoKey ? { lost: true } : value);
    await expect(keptMemberKey(shelf, "a", async () => software())).rejects.toMatchObject({ code: "client/key-not-kept" });
    expect([...shelf.entries.keys()]).toEqual(["wrapping"]);
  });
});

describe("data keys at rest", () => {
  const SECRET = crypto.getRandomValues(new Uint8Array(96));
  const open = (shelf: Shelf, name = "d:s") => openVault(name, async () => shelf);

  test("are wrapped, open for the same stream alone, and what was handed over is erased", async () => {
    const shelf = new Shelf();
    const handed = new Uint8Array(SECRET);
    expect(await (await open(shelf)).keep(handed)).toBe(true);
    expect(handed).toEqual(new Uint8Array(96));
    expect(inTheClear(shelf, SECRET)).toBe(false);
    expect(await (await open(shelf)).load()).toEqual(SECRET);
    expect(await (await open(shelf, "d:other")).load()).toBe(null);
    shelf.entries.set("stream:d:other", shelf.entries.get("stream:d:s"));
    expect(await (await open(shelf, "d:other")).load()).toBe(null);
  });

  test("that are damaged, or of a key that is gone, are as good as none", async () => {
    const shelf = new Shelf();
    await (await open(shelf)).keep(new Uint8Array(SECRET));
    const wrapped = shelf.entries.get("stream:d:s") as Wrapped;
    wrapped.sealed[0]! ^= 1;
    expect(await (await open(shelf)).load()).toBe(null);
    await (await open(shelf)).keep(new Uint8Array(SECRET));
    shelf.entries.delete("wrapping");
    expect(await (await open(shelf)).load()).toBe(null);
  });

  test("are not kept at all where the browser keeps no key that cannot be read", async () => {
    const kept = async (vault: Vault) => {
      const handed = new Uint8Array(SECRET);
      const isKept = await vault.keep(handed);
      expect(handed).toEqual(new Uint8Array(96));
      return [isKept, await vault.load()];
    };
    const loses = new Shelf();
    loses.spoils = (value) => (value instanceof CryptoKey ? { lost: true } : value);
    expect(await kept(await open(loses))).toEqual([false, null]);
    const changes = new Shelf();
    const another = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, true, ["encrypt", "decrypt"]);
    changes.entries.set("wrapping", another);
    expect(await kept(await open(changes))).toEqual([false, null]);
    expect(await kept(await openVault("d:s", () => Promise.reject(new Error("no IndexedDB"))))).toEqual([false, null]);
    const full = new Shelf();
    const vault = await open(full);
    full.put = () => Promise.reject(new DOMException("", "QuotaExceededError"));
    expect(await kept(vault)).toEqual([false, null]);
  });

  test("are sealed under another nonce each time", async () => {
    const key = await wrappingKey(new Shelf(), "w");
    const [first, second] = [await wrap(key!, SECRET, "p"), await wrap(key!, SECRET, "p")];
    expect(first.iv).not.toEqual(second.iv);
    expect(await unwrap(key!, first, "p")).toEqual(SECRET);
    await expect(unwrap(key!, first, "q")).rejects.toThrow();
  });
});

describe("a host with a key stream", () => {
  async function pair() {
    const memberKey = await generateMemberKey();
    const keyStream = { memberKey, grant: new Uint8Array([7]), renewsGrant: true };
    const origin = new Origin();
    const asked: Uint8Array[] = [];
    const vaults: string[] = [];
    const shelf = new Shelf();
    const around = {
      agree: async (key: MemberKey, publicKey: Uint8Array) => {
        asked.push(publicKey);
        return agree(key, publicKey, none);
      },
      vault: (name: string) => {
        vaults.push(name);
        return openVault(name, async () => shelf);
      },
    };
    const tabs = [new Tab(origin, "tab-0", around), new Tab(origin, "tab-1", around)];
    return { tabs, keyStream, asked, vaults, shelf };
  }

  test("agrees by the member's key, keeps what it is given, and has the other tabs read it", async () => {
    const { tabs: [owner, follower], keyStream, asked, vaults } = await pair();
    for (const tab of [owner!, follower!]) await tab.open({ keyStream });
    expect(vaults).toEqual([`d:${OPTIONS.streamId}`, `d:${OPTIONS.streamId}`]);
    const members = owner!.client.options.members!;
    expect([members.publicKey, members.grant]).toEqual([keyStream.memberKey.publicKey, new Uint8Array([7])]);
    const other = await generateMemberKey();
    expect(await members.agree(other.publicKey)).toEqual(await agree(other, keyStream.memberKey.publicKey, none));
    expect(asked).toEqual([other.publicKey]);
    expect(await members.load()).toBe(null);
    const heard: BetweenTabs[] = [];
    const listen = follower!.channel.onmessage!;
    follower!.channel.onmessage = (event) => {
      heard.push(event.data);
      listen(event);
    };
    const secret = crypto.getRandomValues(new Uint8Array(40));
    await members.keep(new Uint8Array(secret));
    await settle();
    expect([owner!.client.restored, follower!.client.restored]).toEqual([0, 1]);
    expect(heard).toEqual([{ type: "keysKept", from: "tab-0" }]);
    expect(await follower!.client.options.members!.load()).toEqual(secret);
  });

  test("asks its page for the next grant of the key stream", async () => {
    const { tabs: [tab], keyStream } = await pair();
    await tab!.open({ keyStream });
    const grant = tab!.client.options.members!.renewGrant!();
    expect(tab!.posted.at(-1)).toMatchObject({ type: "ask", question: { name: "renewKeyGrant" } });
    const { id } = tab!.posted.at(-1) as { id: number };
    tab!.host.receive({ type: "told", id, answer: new Uint8Array([8]) });
    expect(await grant).toEqual(new Uint8Array([8]));
    const { tabs: [another] } = await pair();
    await another!.open({ keyStream: { ...keyStream, renewsGrant: false } });
    expect(another!.client.options.members!.renewGrant).toBe(null);
  });

  test("keeps nothing with storage in memory, and has no members without a key stream", async () => {
    const { tabs: [tab, plain], keyStream, vaults } = await pair();
    await tab!.open({ keyStream, storage: "memory" });
    await tab!.client.options.members!.keep(new Uint8Array(40).fill(1));
    expect([await tab!.client.options.members!.load(), vaults]).toEqual([null, []]);
    await plain!.open({ database: "e" });
    expect(plain!.client.options.members).toBe(null);
  });

  test("signs a batch with the rotation key, for whichever tab publishes it", async () => {
    const { tabs: [owner, follower], keyStream } = await pair();
    for (const tab of [owner!, follower!]) await tab.open({ keyStream });
    const { privateKey: rotationKey } = (await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"])) as CryptoKeyPair;
    const argument: KeyBatch = { generation: 3n, recipients: [], dataKey: new Uint8Array(32), rotationKey };
    for (const tab of [owner!, follower!]) {
      expect(await tab.call("request", { request: { name: "publishKeyBatch", argument } })).toEqual(new Uint8Array(64));
    }
  });

  test("tells what became of a key in every tab", async () => {
    const { tabs: [owner, follower], keyStream } = await pair();
    for (const tab of [owner!, follower!]) await tab.open({ keyStream });
    const removed: KeyEvent = { type: "key", state: "removed", generation: 2n, lastReadable: 1n, failure: null };
    owner!.client.emit(removed);
    await settle();
    expect([owner!.events("key"), follower!.events("key")]).toEqual([[removed], [removed]]);
  });
});

test("a page gives the grants of the key stream, and hears of keys", async () => {
  const memberKey = await generateMemberKey();
  const { key: _, renewsGrant: __, ...rest } = OPTIONS;
  const origin = new Origin();
  let tab!: Tab;
  const remuda = new Remuda(
    () => {
      tab = new Tab(origin, "tab-0");
      const worker: WorkerLike = {
        onmessage: null,
        onerror: null,
        postMessage: (message) => tab.host.receive(message),
        terminate: () => tab.kill(),
      };
      tab.onPost = (data) => queueMicrotask(() => worker.onmessage?.({ data }));
      return worker;
    },
    { ...rest, keyStream: { memberKey, grant: new Uint8Array([1]), renewsGrant: true } },
    async () => new Uint8Array(64),
    null,
    async () => new Uint8Array([2]),
  );
  await remuda.open();
  expect(await tab.client.options.members!.renewGrant!()).toEqual(new Uint8Array([2]));
  const heard: KeyEvent[] = [];
  remuda.addEventListener("key", ({ detail }) => heard.push(detail));
  const opened: KeyEvent = { type: "key", state: "opened", generation: 0n, lastReadable: null, failure: null };
  tab.client.emit(opened);
  await settle();
  expect(heard).toEqual([opened]);
  await remuda.close();
});

/** Whether the bytes are in anything that a store holds. */
function inTheClear(shelf: Shelf, secret: Uint8Array): boolean {
  const needle = Buffer.from(secret).toString("hex");
  const holds = (value: unknown): boolean =>
    value instanceof Uint8Array
      ? Buffer.from(value).toString("hex").includes(needle)
      : typeof value === "object" && value !== null && !(value instanceof CryptoKey) && Object.values(value).some(holds);
  return [...shelf.entries.values()].some(holds);
}
