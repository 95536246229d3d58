/** Where keys are kept by name, apart from what they protect: an IndexedDB of their own, which keeps what no script can read. */
import { RemudaError } from "./error.js";

/** A table of structured clones. */
export interface KeyStore {
  get(name: string): Promise<unknown>;
  /** Stores it unless there is one. */
  add(name: string, value: unknown): Promise<void>;
  put(name: string, value: unknown): Promise<void>;
  close(): void;
}

const STORE = "keys";

/**
 * Opens the store of that name.
 *
 * @throws {RemudaError} `client/key-store` when IndexedDB refuses, from each method too.
 */
export async function openKeyStore(databaseName: string): Promise<KeyStore> {
  const database = await new Promise<IDBDatabase>((resolve, reject) => {
    const request = indexedDB.open(databaseName, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(refused(request.error));
  });
  const write = (operation: (store: IDBObjectStore) => IDBRequest) =>
    new Promise<void>((resolve, reject) => {
      const transaction = database.transaction(STORE, "readwrite", { durability: "strict" });
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(refused(transaction.error));
      const request = operation(transaction.objectStore(STORE));
      request.onerror = (event) => {
        // Another tab was first: its key is the one. The transaction is not aborted by it.
        if (request.error?.name === "ConstraintError") event.preventDefault();
      };
    });
  return {
    get: (name) =>
      new Promise((resolve, reject) => {
        const request = database.transaction(STORE).objectStore(STORE).get(name);
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(refused(request.error));
      }),
    add: (name, value) => write((store) => store.add(value, name)),
    put: (name, value) => write((store) => store.put(value, name)),
    close: () => database.close(),
  };
}

function refused(error: DOMException | null): RemudaError {
  return RemudaError.client("client/key-store", error?.message, error);
}
