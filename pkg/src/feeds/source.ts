/** The page's side of a source: its worker, its events, its iterators. */
import type { ErrorData } from "../error.js";
import { RemudaError } from "../error.js";
import type { Numbered } from "../items.js";
import { ItemIterator } from "../items.js";
import type { Failure, Role } from "../types.js";
import type { SourceEvent } from "./glue.js";
import type { FromFeedWorker, OpenMessage, Opened, SourceKind, ToFeedWorker } from "./protocol.js";
import type { CommonStatus, DialOptions, ItemsOptions, StorageOptions } from "./types.js";

/** The part of `Worker` that is used. */
export interface FeedWorkerLike {
  postMessage(message: ToFeedWorker): void;
  onmessage: ((event: { data: FromFeedWorker }) => void) | null;
  onerror: ((event: { message?: string; preventDefault?(): void }) => void) | null;
  terminate(): void;
}

/** Makes the worker of a source. */
export type Spawn = () => FeedWorkerLike;

/** Starts a worker of this package. Throws `client/no-worker`, `client/no-locks`. */
export const spawnWorker: Spawn = () => {
  if (typeof Worker === "undefined") throw RemudaError.client("client/no-worker");
  if (!globalThis.navigator?.locks) throw RemudaError.client("client/no-locks");
  return new Worker(new URL("./worker.js", import.meta.url), { type: "module" }) as FeedWorkerLike;
};

/** The members that every kind of source is opened with. */
export function commonOptions(options: StorageOptions & DialOptions) {
  return {
    database: options.database ?? "remuda",
    storage: options.storage ?? "durable",
    endpoint: String(options.endpoint),
    allowLoopback: options.allowLoopback ?? false,
  } as const;
}

/** Asks for signatures that only the page can make. */
export type PageSigner = (message: Uint8Array) => Promise<Uint8Array>;

/** The events of every source, by name. */
export interface SourceEvents<Status> {
  status: CustomEvent<Status>;
  role: CustomEvent<Role>;
  /** Items up to this one are durable. */
  stored: CustomEvent<bigint>;
  /** An answer was refused or a connection ended; the status says whether it goes on by itself. */
  failure: CustomEvent<Failure>;
}

/**
 * A source that runs in a worker. Of several tabs that open it on one database one is the `owner` and runs it; all of them see the same
 * items.
 */
export class Source<Status extends CommonStatus, Events extends SourceEvents<Status>> extends EventTarget {
  readonly #worker: FeedWorkerLike;
  readonly #sign: PageSigner | null;
  #status: Status | null = null;
  #role: Role = "follower";
  #key = "";
  #owner: string | null = null;
  #isClosed = false;
  #ids = 0;
  readonly #pending = new Map<number, { resolve(value: never): void; reject(error: unknown): void }>();
  readonly #watchers = new Set<() => void>();

  /** @internal */
  protected constructor(spawn: Spawn, sign: PageSigner | null) {
    super();
    this.#sign = sign;
    this.#worker = spawn();
    this.#worker.onmessage = ({ data }) => this.#receive(data);
    this.#worker.onerror = (event) => {
      event.preventDefault?.();
      this.#ended(RemudaError.client("client/no-worker", event.message).toData());
    };
  }

  /** The state of the source, as last reported. */
  get status(): Status {
    return this.#status!;
  }

  /** Whether this tab runs the source. It can change from `follower` to `owner`, never back. */
  get role(): Role {
    return this.#role;
  }

  /** @internal */
  protected get signsAs(): string | null {
    return this.#owner;
  }

  /** @internal */
  protected async start(kind: SourceKind, options: Omit<OpenMessage["options"], "hasSigner">): Promise<void> {
    try {
      const hasSigner = this.#sign !== null;
      const opened = await this.#ask<Opened>((id) => ({ type: "open", id, kind, options: { ...options, hasSigner } as OpenMessage["options"] }));
      this.#key = opened.key;
      this.#owner = opened.owner;
      this.#role = opened.role;
      // What it was told since is newer than what it was opened with.
      this.#status ??= opened.status as unknown as Status;
    } catch (thrown) {
      this.#finish();
      this.#worker.terminate();
      throw thrown;
    }
  }

  /** @internal */
  protected call<T>(method: string, ...parameters: unknown[]): Promise<T> {
    return this.#ask<T>((id) => ({ type: "call", id, method, arguments: parameters }));
  }

  /** @internal Items of the database, then those that come. */
  protected iterate<T extends Numbered>({ after = 0n, signal }: ItemsOptions): AsyncIterable<T> {
    const source = {
      acquire: async () => this.#key,
      release: () => undefined,
      read: (_: string, from: bigint, maxBytes: number) => this.call<T[]>("read", from, maxBytes),
      watch: (_: string, changed: () => void) => {
        this.#watchers.add(changed);
        return () => this.#watchers.delete(changed);
      },
      failure: (): Failure | null => (this.#status?.state === "failed" ? this.#status.failure : null),
      isClosed: () => this.#isClosed,
    };
    return { [Symbol.asyncIterator]: () => new ItemIterator<T>(source, after, signal) };
  }

  /**
   * Ends the source in this tab; iterators end, pending calls are rejected with `client/closed`. Another tab that has it open takes it
   * over. Throws nothing; closing twice is closing once.
   */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    const closing = this.#ask((id) => ({ type: "close", id })).catch(() => null);
    this.#isClosed = true;
    this.#wake();
    await closing;
    this.#finish();
    this.#worker.terminate();
  }

  override addEventListener<Name extends keyof Events>(
    type: Name,
    listener: (event: Events[Name]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  override addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
  override addEventListener(
    type: string,
    listener: ((event: never) => void) | EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void {
    super.addEventListener(type, listener as EventListenerOrEventListenerObject | null, options);
  }

  #ask<T>(message: (id: number) => ToFeedWorker): Promise<T> {
    if (this.#isClosed) return Promise.reject(RemudaError.client("client/closed"));
    const id = this.#ids++;
    return new Promise<T>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      try {
        this.#worker.postMessage(message(id));
      } catch (thrown) {
        // What cannot be cloned is an argument of the caller.
        this.#pending.delete(id);
        reject(RemudaError.client("client/invalid-argument", String(thrown), thrown));
      }
    });
  }

  #receive(message: FromFeedWorker): void {
    switch (message.type) {
      case "result":
        this.#pending.get(message.id)?.resolve(message.value as never);
        this.#pending.delete(message.id);
        break;
      case "error":
        this.#pending.get(message.id)?.reject(new RemudaError(message.error));
        this.#pending.delete(message.id);
        break;
      case "sign":
        void this.#signFor(message.id, message.message);
        break;
      case "role":
        this.#role = message.role;
        this.emit("role", message.role);
        break;
      case "ended":
        this.#ended(message.error);
        break;
      case "event":
        this.#happened(message.event);
        break;
    }
  }

  #happened(event: SourceEvent): void {
    switch (event.type) {
      case "status":
        this.#status = event.status as unknown as Status;
        this.emit("status", this.#status);
        this.#wake();
        break;
      case "stored":
        this.emit("stored", event.lastItem);
        this.#wake();
        break;
      case "failure":
        this.emit("failure", event.failure);
        break;
      default:
        this.emit(event.type, event);
    }
  }

  async #signFor(id: number, bytes: Uint8Array): Promise<void> {
    try {
      if (!this.#sign) throw RemudaError.client("client/unexpected", "asked to sign without a signer");
      this.#worker.postMessage({ type: "signed", id, signature: await this.#sign(bytes) });
    } catch (thrown) {
      this.#worker.postMessage({ type: "unsigned", id, error: RemudaError.from(thrown).toData() });
    }
  }

  /** The worker goes on no more: what is stored stays readable by opening again. */
  #ended(data: ErrorData): void {
    const error = new RemudaError(data);
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    if (this.#isClosed) return;
    const failure = error.toFailure();
    if (this.#status) {
      this.#status = { ...this.#status, state: "failed", failure };
      this.emit("status", this.#status);
    }
    this.emit("failure", failure);
    this.#wake();
  }

  #finish(): void {
    this.#isClosed = true;
    for (const { reject } of this.#pending.values()) reject(RemudaError.client("client/closed"));
    this.#pending.clear();
    if (this.#status && this.#status.state !== "closed") {
      this.#status = { ...this.#status, state: "closed" };
      this.emit("status", this.#status);
    }
    this.#wake();
  }

  #wake(): void {
    for (const changed of [...this.#watchers]) changed();
  }

  /** @internal */
  protected emit(type: string, detail: unknown): void {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
