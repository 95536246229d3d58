import type { ErrorData } from "./error.js";
import { RemudaError } from "./error.js";
import { ItemIterator } from "./items.js";
import type { ItemSource } from "./items.js";
import type { Call, CallName, Calls, FromWorker, PageQuestion, Request, RequestName, Requests, ToWorker, WorkerOptions } from "./protocol.js";
import type {
  AppendRecord,
  AppendResult,
  BatchEvent,
  Boundary,
  DataKey,
  FailureEvent,
  Item,
  Lane,
  LaneMutation,
  LanePage,
  NewLane,
  ReceiptsEvent,
  Role,
  Signer,
  Status,
  SubscriptionSpec,
  TransitionEvent,
} from "./types.js";

/** The part of `Worker` that is used. */
export interface WorkerLike {
  postMessage(message: ToWorker): void;
  onmessage: ((event: { data: FromWorker }) => void) | null;
  onerror: ((event: { message?: string; preventDefault?(): void }) => void) | null;
  terminate(): void;
}

/** The events of a {@link Remuda}, by name. */
export interface RemudaEvents {
  status: CustomEvent<Status>;
  role: CustomEvent<Role>;
  batch: CustomEvent<BatchEvent>;
  receipts: CustomEvent<ReceiptsEvent>;
  transition: CustomEvent<TransitionEvent>;
  failure: CustomEvent<FailureEvent>;
}

export interface SubscribeOptions {
  /** Hand out items after this one. Default 0: everything that is stored, then what comes. */
  after?: bigint;
  /** Ends the iterators with its reason. */
  signal?: AbortSignal;
}

/** How many lanes are asked for at a time. */
const LANES_A_PAGE = 256;
/** A worker that broke is replaced after this long, doubled each time up to the most. */
const RESTART_MS = 250;
const RESTART_MOST_MS = 30_000;
/** A worker that lived this long was well: the next wait is short again. */
const HEALTHY_MS = 60_000;

interface Pending {
  call: Call;
  resolve(value: never): void;
  reject(error: unknown): void;
}

type CallArguments<Name extends CallName> = Calls[Name]["arguments"];

/**
 * A stream, received, verified and kept by a worker. Made by `connect`.
 *
 * Events: `status`, `role`, `batch`, `receipts`, `transition`, `failure`, each a `CustomEvent` with its value as `detail`. Of several tabs on one
 * database one is the `owner` of the connection; all of them see the same items and the same events.
 */
export class Remuda extends EventTarget {
  #status: Status = { connection: "idle", retryAtMs: null, transport: null, storage: "ready", subscriptions: [] };
  #role: Role = "follower";
  readonly #spawn: () => WorkerLike;
  readonly #options: WorkerOptions;
  readonly #sign: ((digest: Uint8Array) => Promise<Uint8Array>) | null;
  readonly #renewGrant: (() => Promise<Uint8Array>) | null;
  #worker: WorkerLike | null = null;
  #isOpen = false;
  #isClosed = false;
  #ids = 0;
  readonly #pending = new Map<number, Pending>();
  readonly #held = new Map<string, { spec: SubscriptionSpec; holders: number; watchers: Set<() => void> }>();
  #restarts = 0;
  #startedAtMs = 0;
  #restart: ReturnType<typeof setTimeout> | null = null;
  #isOnline: boolean | null = null;

  /** @internal Use `connect`. */
  constructor(
    spawn: () => WorkerLike,
    options: Omit<WorkerOptions, "key" | "renewsGrant">,
    signer: Signer,
    renewGrant: (() => Promise<Uint8Array>) | null = null,
  ) {
    super();
    this.#spawn = spawn;
    const isFunction = typeof signer === "function";
    this.#options = { ...options, key: isFunction ? null : signer, renewsGrant: renewGrant !== null };
    this.#sign = isFunction ? signer : null;
    this.#renewGrant = renewGrant;
  }

  /** The state of connection, storage and subscriptions, as last reported. */
  get status(): Status {
    return this.#status;
  }

  /** Whether this tab holds the connection. It can change from `follower` to `owner`, never back. */
  get role(): Role {
    return this.#role;
  }

  /** @internal */
  async open(): Promise<void> {
    try {
      await this.#start();
    } catch (thrown) {
      this.#end();
      throw thrown;
    }
  }

  /**
   * Subscribes for as long as something iterates. Nothing happens before the first `next`; each iterator has its own place, and reads from
   * the database as fast as it is asked, so no consumer delays another or the network.
   *
   * Iterating ends when the client is closed. It throws, from `next`:
   * - `RemudaError` with the code that ended the subscription, after the last stored item: any `verify/…`, `protocol/…`, `decode/…`,
   *   `admission/…` or `evidence/…` code. What is stored stays, and the position does not move;
   * - `RemudaError` with a `store/…` code when the database refuses a read;
   * - `client/invalid-argument` when the lanes or the verification are not possible;
   * - the reason of `signal`, when that is aborted.
   */
  subscribe(spec: SubscriptionSpec & SubscribeOptions): Subscription {
    const { after = 0n, signal, ...rest } = spec;
    const source: ItemSource = {
      acquire: () => this.#acquire(rest),
      release: (key) => this.#release(key),
      read: (key, from, maxBytes) => this.#call("read", { key, after: from, maxBytes }),
      watch: (key, changed) => {
        const watchers = this.#held.get(key)?.watchers;
        watchers?.add(changed);
        return () => watchers?.delete(changed);
      },
      failure: (key) => {
        const status = this.#status.subscriptions.find((subscription) => subscription.key === key);
        return status?.state === "failed" ? status.failure : null;
      },
      isClosed: () => this.#isClosed,
    };
    return new Subscription(source, (key) => this.#call("boundary", { key }), after, signal);
  }

  /**
   * Appends a record. A fast stream answers provisionally: the record is durable when it arrives as an item with this epoch and sequence, and a
   * `void` transition that discards it means: send it again. A standard stream answers with a verified receipt.
   *
   * Throws `RemudaError`:
   * - a `provider/…` code that the provider refused it with, an `encryption/…` code when it cannot be sealed;
   * - `client/owner-unreachable` (not sent), `command/outcome-unknown`, `client/owner-lost` or `client/trap` (outcome unknown);
   * - `client/invalid-argument`, `client/closed`;
   *
   * or the reason of `signal`: the record may be appended nevertheless.
   */
  async append(record: AppendRecord, options: { signal?: AbortSignal } = {}): Promise<AppendResult> {
    isId(record.lane, "lane");
    return this.#request({ name: "append", argument: record }, options.signal);
  }

  /** Creates a lane; its event arrives as an item of the default lane. Throws as `append`. */
  async createLane(lane: NewLane = {}, options: { signal?: AbortSignal } = {}): Promise<LaneMutation> {
    return this.#request({ name: "createLane", argument: lane }, options.signal);
  }

  /** Closes a lane for good. Throws as `append`. */
  async closeLane(lane: string, options: { signal?: AbortSignal } = {}): Promise<LaneMutation> {
    isId(lane, "lane");
    return this.#request({ name: "closeLane", argument: lane }, options.signal);
  }

  /** Every lane, ascending by id, one page after the other. Throws as `append`. */
  async *lanes(options: { signal?: AbortSignal; pageSize?: number } = {}): AsyncIterableIterator<Lane> {
    const { signal, pageSize: limit = LANES_A_PAGE } = options;
    let after: string | null = null;
    do {
      const page: LanePage = await this.#request({ name: "listLanes", argument: { after, limit } }, signal);
      yield* page.lanes;
      after = page.nextAfter;
    } while (after !== null);
  }

  /**
   * Adds the key of an encryption generation, in every tab: items that were `sealed` for want of it can be read from now on.
   *
   * Throws `misuse/argument` for a key of another length, or of a stream that was not opened with `dataKeys`.
   */
  async addDataKey(dataKey: DataKey): Promise<void> {
    await this.#call("addDataKey", { dataKey });
    // A worker that is replaced opens with it.
    this.#options.dataKeys = [...(this.#options.dataKeys ?? []), dataKey];
  }

  async #request<Name extends RequestName>(
    request: { name: Name; argument: Requests[Name]["argument"] },
    signal: AbortSignal | undefined,
  ): Promise<Requests[Name]["result"]> {
    signal?.throwIfAborted();
    const result = this.#call("request", { request: request as Request }) as Promise<Requests[Name]["result"]>;
    if (!signal) return result;
    let onAbort: (() => void) | undefined;
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason);
      signal.addEventListener("abort", onAbort);
    });
    try {
      return await Promise.race([result, aborted]);
    } finally {
      if (onAbort) signal.removeEventListener("abort", onAbort);
    }
  }

  /** A hint that the machine is online, or not: try again now, or stop trying. Pages get it from `connect` already. Throws nothing. */
  online(isOnline: boolean): void {
    this.#isOnline = isOnline;
    if (this.#isOpen) this.#worker?.postMessage({ type: "online", isOnline });
  }

  /**
   * Closes connection and database; iterators end, pending calls are rejected with `client/closed`. Another tab takes the connection over.
   * Throws nothing; closing twice is closing once.
   */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const closing = this.#isOpen ? this.#call("close", {}).catch(() => null) : null;
    this.#end();
    await closing;
    this.#worker?.terminate();
    this.#worker = null;
  }

  override addEventListener<Name extends keyof RemudaEvents>(
    type: Name,
    listener: (event: RemudaEvents[Name]) => void,
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

  // --- subscriptions

  async #acquire(spec: SubscriptionSpec): Promise<string> {
    const key = await this.#call("subscribe", { spec });
    const held = this.#held.get(key);
    if (held) {
      held.holders += 1;
      // The worker counts each of its calls as one holder; this page is one, however many iterators it has.
      await this.#call("unsubscribe", { key });
    } else {
      this.#held.set(key, { spec, holders: 1, watchers: new Set() });
    }
    return key;
  }

  #release(key: string): void {
    const held = this.#held.get(key);
    if (!held || --held.holders > 0) return;
    this.#held.delete(key);
    if (!this.#isClosed) this.#call("unsubscribe", { key }).catch((thrown) => this.#fail(key, thrown));
  }

  #wake(key?: string): void {
    for (const [held, { watchers }] of this.#held) {
      if (key === undefined || key === held) for (const changed of [...watchers]) changed();
    }
  }

  // --- the worker

  #call<Name extends CallName>(name: Name, parameters: CallArguments<Name>): Promise<Calls[Name]["result"]> {
    if (this.#isClosed && name !== "close") return Promise.reject(RemudaError.client("client/closed"));
    const id = this.#ids++;
    const call = { type: "call", id, name, ...parameters } as unknown as Call;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { call, resolve, reject });
      // While a worker is being replaced calls wait for the next one.
      if (this.#isOpen || name === "open") this.#send(call);
    });
  }

  #send(call: Call): void {
    try {
      this.#worker?.postMessage(call);
    } catch (thrown) {
      // What cannot be cloned is an argument of the caller.
      const pending = this.#pending.get(call.id);
      this.#pending.delete(call.id);
      pending?.reject(RemudaError.client("client/invalid-argument", String(thrown), thrown));
    }
  }

  async #start(): Promise<void> {
    this.#startedAtMs = Date.now();
    let worker: WorkerLike;
    try {
      worker = this.#spawn();
    } catch (thrown) {
      throw RemudaError.client("client/no-worker", String(thrown), thrown);
    }
    this.#worker = worker;
    worker.onmessage = ({ data }) => {
      if (this.#worker === worker) this.#receive(data);
    };
    worker.onerror = (event) => {
      event.preventDefault?.();
      if (this.#worker === worker) this.#broke(RemudaError.client("client/no-worker", event.message).toData());
    };
    const { role } = await this.#call("open", { options: this.#options });
    this.#isOpen = true;
    this.#setRole(role);
    if (this.#isOnline !== null) this.online(this.#isOnline);
    for (const { call } of [...this.#pending.values()]) this.#send(call);
  }

  #receive(message: FromWorker): void {
    switch (message.type) {
      case "result":
        this.#pending.get(message.id)?.resolve(message.value as never);
        this.#pending.delete(message.id);
        break;
      case "error":
        this.#pending.get(message.id)?.reject(new RemudaError(message.error));
        this.#pending.delete(message.id);
        break;
      case "ask":
        void this.#tell(message.id, message.question);
        break;
      case "role":
        this.#setRole(message.role);
        break;
      case "broken":
        this.#broke(message.error);
        break;
      case "event": {
        const { event } = message;
        if (event.type === "committed") {
          this.#wake(event.key);
        } else if (event.type === "status") {
          this.#status = event.status;
          this.#emit("status", event.status);
          this.#wake();
        } else {
          this.#emit(event.type, event);
        }
        break;
      }
    }
  }

  async #tell(id: number, question: PageQuestion): Promise<void> {
    const worker = this.#worker;
    try {
      const answer = await this.#answer(question);
      worker?.postMessage({ type: "told", id, answer });
    } catch (thrown) {
      worker?.postMessage({ type: "untold", id, error: RemudaError.from(thrown).toData() });
    }
  }

  async #answer(question: PageQuestion): Promise<Uint8Array> {
    if (question.name === "sign") {
      if (!this.#sign) throw RemudaError.client("client/unexpected", "asked to sign without a signer");
      return this.#sign(question.digest);
    }
    if (!this.#renewGrant) throw RemudaError.client("client/unexpected", "asked for a grant without a source of them");
    const grant = await this.#renewGrant();
    // A worker that is replaced opens with it.
    this.#options.grant = grant;
    return grant;
  }

  /** Replaces a worker that broke: the database is where the next one goes on. */
  #broke(data: ErrorData): void {
    const error = new RemudaError(data);
    const wasOpen = this.#isOpen;
    this.#worker?.terminate();
    this.#worker = null;
    this.#isOpen = false;
    for (const [id, { call, reject }] of [...this.#pending]) {
      // A request may have been sent, so it is not sent again; to open is for `#start` to repeat. The rest changes nothing: it waits.
      if (call.name === "request" || call.name === "open" || call.name === "close") {
        this.#pending.delete(id);
        reject(error);
      }
    }
    if (!wasOpen || this.#isClosed) return;
    this.#fail(null, error);
    this.#scheduleRestart();
  }

  #scheduleRestart(): void {
    if (Date.now() - this.#startedAtMs >= HEALTHY_MS) this.#restarts = 0;
    const wait = Math.min(RESTART_MS * 2 ** this.#restarts, RESTART_MOST_MS);
    this.#restarts += 1;
    this.#status = { ...this.#status, connection: "waiting", retryAtMs: Date.now() + wait, transport: null };
    this.#emit("status", this.#status);
    this.#restart = setTimeout(() => {
      this.#restart = null;
      void this.#startAgain();
    }, wait);
  }

  async #startAgain(): Promise<void> {
    try {
      await this.#start();
      await Promise.all([...this.#held.values()].map(({ spec }) => this.#call("subscribe", { spec })));
      this.#wake();
    } catch (thrown) {
      if (this.#isClosed) return;
      this.#worker?.terminate();
      this.#worker = null;
      this.#isOpen = false;
      this.#fail(null, thrown);
      this.#scheduleRestart();
    }
  }

  #end(): void {
    this.#isClosed = true;
    if (this.#restart !== null) clearTimeout(this.#restart);
    for (const [id, { call, reject }] of [...this.#pending]) {
      if (call.name === "close") continue;
      this.#pending.delete(id);
      reject(RemudaError.client("client/closed"));
    }
    if (!this.#isOpen) {
      this.#worker?.terminate();
      this.#worker = null;
    }
    this.#status = { ...this.#status, connection: "closed", retryAtMs: null, transport: null };
    this.#emit("status", this.#status);
    this.#wake();
  }

  #setRole(role: Role): void {
    if (this.#role === role) return;
    this.#role = role;
    this.#emit("role", role);
  }

  #fail(key: string | null, thrown: unknown): void {
    this.#emit("failure", { type: "failure", key, failure: RemudaError.from(thrown).toFailure() });
  }

  #emit<Name extends keyof RemudaEvents>(type: Name, detail: RemudaEvents[Name]["detail"]): void {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** A subscription: iterate it. Iterators are independent of each other; each one holds the subscription open while it lasts. */
export class Subscription implements AsyncIterable<Item> {
  readonly #source: ItemSource;
  readonly #boundary: (key: string) => Promise<Boundary | null>;
  readonly #after: bigint;
  readonly #signal: AbortSignal | undefined;

  /** @internal Use `Remuda.subscribe`. */
  constructor(
    source: ItemSource,
    boundary: (key: string) => Promise<Boundary | null>,
    after: bigint,
    signal: AbortSignal | undefined,
  ) {
    this.#source = source;
    this.#boundary = boundary;
    this.#after = after;
    this.#signal = signal;
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Item> {
    return new ItemIterator(this.#source, this.#after, this.#signal);
  }

  /** Its key, the same in every tab: what `status` and the events name it by. Throws as {@link boundary} does. */
  async key(): Promise<string> {
    const key = await this.#source.acquire();
    this.#source.release(key);
    return key;
  }

  /**
   * The durable position, from the database; null when nothing is stored. Throws `RemudaError`: `client/closed`,
   * `client/invalid-argument`, or a `store/…` code.
   */
  async boundary(): Promise<Boundary | null> {
    const key = await this.#source.acquire();
    try {
      return await this.#boundary(key);
    } finally {
      this.#source.release(key);
    }
  }

  /** Committed items after one, ascending, about `maxBytes` of them; none when there are none. Throws as {@link boundary} does. */
  async read(after: bigint, maxBytes: number): Promise<Item[]> {
    const key = await this.#source.acquire();
    try {
      return await this.#source.read(key, after, maxBytes);
    } finally {
      this.#source.release(key);
    }
  }
}

function isId(text: string, name: string): void {
  if (!/^[0-9a-f]{64}$/.test(text)) throw RemudaError.client("client/invalid-argument", `${name}: 64 lower-case hex digits`);
}
