/**
 * A member's key: X25519, what envelopes of data keys are sealed for. Where WebCrypto has X25519, the private key is not extractable.
 * Where it has not, the secret is kept wrapped under an AES-GCM key that is, and is in memory for as long as one agreement takes.
 */
import type { MemberKey, SoftwareX25519 } from "./agreement.js";
import { MEMBER_KEY, agree } from "./agreement.js";
import { RemudaError } from "./error.js";
import type { KeyStore } from "./key-store.js";
import { openKeyStore } from "./key-store.js";
import { wrap, wrappingKey } from "./wrapping.js";

const DATABASE = "remuda-member-keys";
const WRAPPING = "wrapping";

/**
 * Makes a member key, and keeps it nowhere.
 *
 * @throws {RemudaError} `client/no-webcrypto` outside of secure contexts.
 */
export async function generateMemberKey(): Promise<MemberKey> {
  if (!globalThis.crypto?.subtle) throw RemudaError.client("client/no-webcrypto");
  return generated(loadSoftware);
}

async function generated(software: () => Promise<SoftwareX25519>): Promise<MemberKey> {
  const key = await nativeKey();
  if (key) return key;
  const wrapping = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  return softwareKey(wrapping, await software());
}

/**
 * The member key of that name, made at the first call and kept in a database of its own. Two tabs that call at once get the same one.
 *
 * Browsers have lost keys that they said they stored, so what comes back is tried: it has to agree with another key as its public key does.
 *
 * @throws {RemudaError} `client/key-not-kept` when the stored key is gone or does not agree, or nothing can be kept here;
 *   `client/no-webcrypto` outside of secure contexts; `client/key-store` when IndexedDB refuses.
 */
export async function memberKey(name = "default"): Promise<MemberKey> {
  if (!globalThis.crypto?.subtle) throw RemudaError.client("client/no-webcrypto");
  const store = await openKeyStore(DATABASE);
  try {
    return await keptMemberKey(store, name, loadSoftware);
  } finally {
    store.close();
  }
}

/** @internal */
export async function keptMemberKey(
  store: KeyStore,
  name: string,
  software: () => Promise<SoftwareX25519>,
): Promise<MemberKey> {
  const entry = `member:${name}`;
  let stored = (await store.get(entry)) as MemberKey | undefined;
  if (!stored) {
    await store.add(entry, (await nativeKey()) ?? (await keptSoftwareKey(store, await software())));
    stored = (await store.get(entry)) as MemberKey | undefined;
  }
  if (!stored || !(await agrees(stored, software))) throw RemudaError.client("client/key-not-kept");
  return stored;
}

/** Null where WebCrypto has no X25519. */
async function nativeKey(): Promise<MemberKey | null> {
  try {
    const pair = (await crypto.subtle.generateKey("X25519", false, ["deriveBits"])) as CryptoKeyPair;
    return { privateKey: pair.privateKey, publicKey: new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)) };
  } catch {
    return null;
  }
}

async function keptSoftwareKey(store: KeyStore, software: SoftwareX25519): Promise<MemberKey> {
  const wrapping = await wrappingKey(store, WRAPPING);
  // In the clear it is not stored.
  if (!wrapping) throw RemudaError.client("client/key-not-kept");
  return softwareKey(wrapping, software);
}

async function softwareKey(wrapping: CryptoKey, { x25519PublicKey }: SoftwareX25519): Promise<MemberKey> {
  const secret = crypto.getRandomValues(new Uint8Array(32));
  try {
    const privateKey = { ...(await wrap(wrapping, secret, MEMBER_KEY)), wrappingKey: wrapping };
    return { privateKey, publicKey: x25519PublicKey(secret) };
  } finally {
    secret.fill(0);
  }
}

async function agrees(key: MemberKey, software: () => Promise<SoftwareX25519>): Promise<boolean> {
  try {
    const other = await generated(software);
    const ours = await agree(key, other.publicKey, software);
    const theirs = await agree(other, key.publicKey, software);
    return ours.length === 32 && ours.every((byte, index) => byte === theirs[index]);
  } catch {
    return false;
  }
}

/** The client's WebAssembly has it. A page loads that only where WebCrypto has no X25519. */
async function loadSoftware(): Promise<SoftwareX25519> {
  const client = await import("../generated/client/remuda_client.js");
  await client.default({ module_or_path: new URL("../generated/client/remuda_client_bg.wasm", import.meta.url) });
  return client as unknown as SoftwareX25519;
}
