/**
 * What runs in the worker of a source, apart from its globals.
 *
 * Of the tabs that open a source of one database the holder of its lock runs it; the others read what it stores, and one of them takes
 * over when it ends. Nothing is asked of each other: whatever a source needs beside its database, each tab was given.
 */
import { RemudaError } from "../error.js";
import type { Locks } from "../host.js";
import type { FeedsModule, WasmSource } from "./glue.js";
import type { FromFeedWorker, OpenMessage, SourceKind, ToFeedWorker } from "./protocol.js";
import { METHODS, sourceLockName } from "./protocol.js";

/** How often a follower looks into the database. */
export const POLL_MS = 250;
/** How long a source gets to end. */
const CLOSE_MS = 1_000;

/** The globals of a worker. */
export interface FeedSurroundings {
  load(): Promise<FeedsModule>;
  locks: Locks;
  post(message: FromFeedWorker): void;
}

export class FeedHost {
  readonly #around: FeedSurroundings;
  #kind: SourceKind | null = null;
  #source: WasmSource | null = null;
  #running: Promise<void> = Promise.resolve();
  readonly #end = new AbortController();
  readonly #signatures = new Map<number, { resolve(signature: Uint8Array): void; reject(error: RemudaError): void }>();
  #ids = 0;

  constructor(around: FeedSurroundings) {
    this.#around = around;
  }

  /** Takes a message of the page. */
  receive(message: ToFeedWorker): void {
    switch (message.type) {
      case "signed":
        this.#signatures.get(message.id)?.resolve(message.signature);
        this.#signatures.delete(message.id);
        break;
      case "unsigned":
        this.#signatures.get(message.id)?.reject(new RemudaError(message.error));
        this.#signatures.delete(message.id);
        break;
      default:
        void this.#answer(message);
    }
  }

  /** Takes an error that no one caught: the source is lost with the code that threw it. */
  uncaught(thrown: unknown): void {
    this.#ended(thrown);
  }

  async #answer(message: Exclude<ToFeedWorker, { type: "signed" | "unsigned" }>): Promise<void> {
    try {
      this.#around.post({ type: "result", id: message.id, value: await this.#perform(message) });
    } catch (thrown) {
      this.#around.post({ type: "error", id: message.id, error: RemudaError.from(thrown).toData() });
    }
  }

  async #perform(message: Exclude<ToFeedWorker, { type: "signed" | "unsigned" }>): Promise<unknown> {
    switch (message.type) {
      case "open":
        return this.#open(message);
      case "call": {
        const { method } = message;
        const source = this.#source as unknown as Record<string, (...parameters: unknown[]) => unknown> | null;
        const methods: readonly string[] = this.#kind ? METHODS[this.#kind] : [];
        if (!source || !methods.includes(method)) throw RemudaError.client("client/invalid-argument", method);
        return source[method]!(...message.arguments);
      }
      case "close":
        this.#end.abort();
        this.#source?.close();
        await Promise.race([this.#running, new Promise((resolve) => setTimeout(resolve, CLOSE_MS))]);
        return null;
    }
  }

  async #open({ kind, options }: OpenMessage) {
    if (this.#kind) throw RemudaError.client("client/invalid-argument", "already open");
    this.#kind = kind;
    const module = await this.#around.load();
    const source = await module[kind].open({
      ...options,
      ...(options.hasSigner && { sign: (digest: Uint8Array) => this.#signInPage(digest) }),
      onEvent: (event: never) => this.#around.post({ type: "event", event }),
    });
    this.#source = source;
    const isOwner = options.storage === "memory" || (await this.#takeLock(sourceLockName(options.database, source.key)));
    if (options.storage === "memory") void this.#run();
    const owner = "owner" in source ? String(source.owner) : null;
    return { key: source.key, role: isOwner ? "owner" : "follower", status: source.status(), owner };
  }

  /** Runs the source now, or once whoever runs it ends. */
  async #takeLock(name: string): Promise<boolean> {
    const { locks } = this.#around;
    const isOwner = await new Promise<boolean>((resolve, reject) => {
      locks
        .request(name, { ifAvailable: true }, (lock) => {
          resolve(lock !== null);
          return lock ? this.#run() : Promise.resolve();
        })
        .catch(reject);
    });
    if (!isOwner) {
      const poll = setInterval(() => void this.#lookForItems(), POLL_MS);
      const { signal } = this.#end;
      signal.addEventListener("abort", () => clearInterval(poll));
      locks
        .request(name, { signal }, () => {
          clearInterval(poll);
          this.#around.post({ type: "role", role: "owner" });
          return this.#run();
        })
        .catch((thrown: unknown) => {
          if (!signal.aborted) this.#ended(thrown);
        });
    }
    return isOwner;
  }

  async #run(): Promise<void> {
    if (this.#end.signal.aborted || !this.#source) return;
    this.#running = this.#source.run();
    try {
      await this.#running;
    } catch (thrown) {
      this.#running = Promise.resolve();
      this.#ended(thrown);
    }
  }

  #seen = 0n;

  async #lookForItems(): Promise<void> {
    try {
      const lastItem = (await this.#source?.standing())?.lastItem ?? 0n;
      if (lastItem === this.#seen) return;
      this.#seen = lastItem;
      this.#around.post({ type: "event", event: { type: "stored", lastItem } });
    } catch (thrown) {
      if (!this.#end.signal.aborted) this.#ended(thrown);
    }
  }

  #ended(thrown: unknown): void {
    if (this.#end.signal.aborted) return;
    this.#end.abort();
    this.#around.post({ type: "ended", error: RemudaError.from(thrown).toData() });
  }

  #signInPage(message: Uint8Array): Promise<Uint8Array> {
    const id = this.#ids++;
    return new Promise((resolve, reject) => {
      this.#signatures.set(id, { resolve, reject });
      this.#around.post({ type: "sign", id, message });
    });
  }
}
