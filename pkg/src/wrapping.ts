/** Secrets at rest: wrapped by AES-GCM under a key that no script can read. */
import type { KeyStore } from "./key-store.js";

/** A secret as it is stored. */
export interface Wrapped {
  iv: Uint8Array<ArrayBuffer>;
  sealed: Uint8Array<ArrayBuffer>;
}

/**
 * The wrapping key of that name, made at the first call. Null where this browser keeps none: what comes back from the store is tried, and
 * has to open what the key that was made sealed.
 */
export async function wrappingKey(store: KeyStore, name: string): Promise<CryptoKey | null> {
  try {
    let stored = (await store.get(name)) as CryptoKey | undefined;
    if (!stored) {
      await store.add(name, await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]));
      stored = (await store.get(name)) as CryptoKey | undefined;
    }
    if (!stored || stored.extractable) return null;
    const probe = crypto.getRandomValues(new Uint8Array(32));
    const back = await unwrap(stored, await wrap(stored, probe, name), name);
    return back.every((byte, index) => byte === probe[index]) ? stored : null;
  } catch {
    return null;
  }
}

/** Wraps a secret for what `purpose` says: it opens for nothing else. */
export async function wrap(key: CryptoKey, secret: Uint8Array, purpose: string): Promise<Wrapped> {
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const additionalData = new TextEncoder().encode(purpose);
  const plain = new Uint8Array(secret);
  try {
    const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv, additionalData }, key, plain);
    return { iv, sealed: new Uint8Array(sealed) };
  } finally {
    plain.fill(0);
  }
}

/** Opens what {@link wrap} made. Throws for anything else. The caller erases it. */
export async function unwrap(key: CryptoKey, { iv, sealed }: Wrapped, purpose: string): Promise<Uint8Array> {
  const additionalData = new TextEncoder().encode(purpose);
  return new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv, additionalData }, key, sealed));
}
