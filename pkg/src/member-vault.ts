/** The data keys that a member has, at rest: wrapped, in a database apart from the records that they open. */
import type { KeyStore } from "./key-store.js";
import { openKeyStore } from "./key-store.js";
import type { Wrapped } from "./wrapping.js";
import { unwrap, wrap, wrappingKey } from "./wrapping.js";

export interface Vault {
  /** What was kept; null when there is nothing, or nothing that opens. The caller erases it. */
  load(): Promise<Uint8Array | null>;
  /** Keeps it instead of what was kept, where something can be kept here; erases it in any case. True when it was kept. */
  keep(secret: Uint8Array): Promise<boolean>;
}

const DATABASE = "remuda-data-keys";

/** Keeps nothing: every start follows the key stream again from the rows of the database. */
export const FORGETFUL: Vault = {
  load: async () => null,
  keep: async (secret) => {
    secret.fill(0);
    return false;
  },
};

/** The vault of that name; {@link FORGETFUL} where this browser keeps no key that no script can read. */
export async function openVault(name: string, open: (database: string) => Promise<KeyStore> = openKeyStore): Promise<Vault> {
  try {
    const store = await open(DATABASE);
    const key = await wrappingKey(store, "wrapping");
    return key ? vault(store, key, name) : FORGETFUL;
  } catch {
    return FORGETFUL;
  }
}

function vault(store: KeyStore, key: CryptoKey, name: string): Vault {
  const entry = `stream:${name}`;
  return {
    load: async () => {
      try {
        const wrapped = (await store.get(entry)) as Wrapped | undefined;
        return wrapped ? await unwrap(key, wrapped, entry) : null;
      } catch {
        // Of another wrapping key, or damaged: as good as nothing.
        return null;
      }
    },
    keep: async (secret) => {
      try {
        await store.put(entry, await wrap(key, secret, entry));
        return true;
      } catch {
        return false;
      } finally {
        secret.fill(0);
      }
    },
  };
}
