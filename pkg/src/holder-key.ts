/** The holder key of a grant: Ed25519, not extractable, kept by the browser. */
import { RemudaError } from "./error.js";
import { openKeyStore } from "./key-store.js";

export interface HolderKey {
  /** Not extractable: it signs, and no script can read it. */
  privateKey: CryptoKey;
  /** 32 bytes: what a grant names as its holder. */
  publicKey: Uint8Array;
}

const DATABASE = "remuda-holder-keys";

/**
 * Makes a holder key, and keeps it nowhere.
 *
 * @throws {RemudaError} `client/no-ed25519` when the browser has no Ed25519 here: too old, or no secure context.
 */
export async function generateHolderKey(): Promise<HolderKey> {
  try {
    const pair = (await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"])) as CryptoKeyPair;
    return { privateKey: pair.privateKey, publicKey: new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)) };
  } catch (thrown) {
    throw RemudaError.client("client/no-ed25519", undefined, thrown);
  }
}

/**
 * The holder key of that name, made at the first call and kept in a database of its own. Two tabs that call at once get the same one.
 *
 * Browsers have lost keys that they said they stored, so what comes back is tried: it has to make a signature that its public key verifies.
 *
 * @throws {RemudaError} `client/no-ed25519` as {@link generateHolderKey}; `client/key-not-kept` when the stored key is gone or does not sign;
 *   `client/key-store` when IndexedDB refuses.
 */
export async function holderKey(name = "default"): Promise<HolderKey> {
  const store = await openKeyStore(DATABASE);
  try {
    let stored = (await store.get(name)) as HolderKey | undefined;
    if (!stored) {
      await store.add(name, await generateHolderKey());
      stored = (await store.get(name)) as HolderKey | undefined;
    }
    if (!stored || !(await signs(stored))) throw RemudaError.client("client/key-not-kept");
    return stored;
  } finally {
    store.close();
  }
}

async function signs({ privateKey, publicKey }: HolderKey): Promise<boolean> {
  const digest = crypto.getRandomValues(new Uint8Array(32));
  try {
    const signature = await crypto.subtle.sign("Ed25519", privateKey, digest);
    const key = await crypto.subtle.importKey("raw", new Uint8Array(publicKey), "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", key, signature, digest);
  } catch {
    return false;
  }
}
