import type { ErrorData } from "./error.js";
import { RemudaError } from "./error.js";
import type { ItemSource } from "./items.js";
import { UNKNOWN } from "./protocol.js";
import { Delivery, GroupIterator, Groups } from "./group.js";
import type {
  DeliveryStateEvent,
  GroupEvent,
  GroupMutation,
  GroupName,
  GroupSettings,
  LeasedRecord,
  NewGroup,
  Redrive,
  Redriven,
  UndecryptableEvent,
} from "./group-types.js";
import type { PushListener } from "./pushed.js";
import { Subscription } from "./subscription.js";
import { TailIterator } from "./tail.js";
import { AppendTicket } from "./ticket.js";
import type { AnySpec, Call, CallName, Calls, FromWorker, PageQuestion, Request, RequestName, Requests, ToWorker, WorkerOptions } from "./protocol.js";
import type {
  AppendEvent,
  AppendRecord,
  BatchEvent,
  DataKey,
  FailureEvent,
  KeyBatch,
  KeyEvent,
  Lane,
  LaneMutation,
  LanePage,
  NewLane,
  OutboxEntry,
  PaintedRecord,
  ReceiptsEvent,
  Role,
  Signer,
  Status,
  SubscriptionSpec,
  TransitionEvent,
  GapEvent,
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
  gap: CustomEvent<GapEvent>;
  append: CustomEvent<AppendEvent>;
  key: CustomEvent<KeyEvent>;
  "delivery-state": CustomEvent<DeliveryStateEvent>;
  undecryptable: CustomEvent<UndecryptableEvent>;
  group: CustomEvent<GroupEvent>;
  failure: CustomEvent<FailureEvent>;
}

export interface SubscribeOptions {
  /** Hand out items after this one. Default 0: everything that is stored, then what comes. */
  after?: bigint;
  /** Ends the iterators with its reason. */
  signal?: AbortSignal;
}

/** About how much of the outbox is read at a time. */
const OUTBOX_PAGE_BYTES = 1 << 20;
/** How many lanes are asked for at a time. */
const LANES_A_PAGE = 256;
/** A worker that broke is replaced after this long, doubled each time up to the most. */
const RESTART_MS = 250;
const RESTART_MOST_MS = 30_000;
/** A worker that lived this long was well: the next wait is short again. */
const HEALTHY_MS = 60_000;

/** How often a floor is accepted that a subscription is told anew meanwhile. */
const GAP_ATTEMPTS = 3;

interface Pending {
  call: Call;
  resolve(value: never): void;
  reject(error: unknown): void;
}

type CallArguments<Name extends CallName> = Calls[Name]["arguments"];

/**
 * A stream, received, verified and kept by a worker. Made by `connect`.
 *
 * Events: `status`, `role`, `batch`, `receipts`, `transition`, `gap`, `append`, `key`, `delivery-state`, `undecryptable`, `group`, `failure`, each a
 * `CustomEvent` with its value as `detail`. Of several tabs on one
 * database one is the `owner` of the connection; all of them see the same items and the same events.
 */
export class Remuda extends EventTarget {
  #status: Status = UNKNOWN;
  #role: Role = "follower";
  readonly #spawn: () => WorkerLike;
  readonly #options: WorkerOptions;
  readonly #sign: ((digest: Uint8Array) => Promise<Uint8Array>) | null;
  readonly #renewGrant: (() => Promise<Uint8Array>) | null;
  readonly #renewKeyGrant: (() => Promise<Uint8Array>) | null;
  #worker: WorkerLike | null = null;
  #isOpen = false;
  #isClosed = false;
  #ids = 0;
  readonly #pending = new Map<number, Pending>();
  readonly #held = new Map<string, { spec: AnySpec; holders: number; watchers: Set<() => void> }>();
  /** Who iterates over which tail. */
  readonly #listeners = new Map<string, Set<PushListener<PaintedRecord>>>();
  readonly #groups = new Groups();
  /** How to end the iterators over groups, by key. */
  readonly #groupEnds = new Map<string, Set<(error: RemudaError | null) => void>>();
  /** What waits for an event, and is over when the client closes. */
  readonly #ends = new Set<AbortController>();
  /** The appends of this page that have not ended. */
  readonly #tickets = new Map<bigint, AppendTicket>();
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
    renewKeyGrant: (() => Promise<Uint8Array>) | null = null,
  ) {
    super();
    this.#spawn = spawn;
    const isFunction = typeof signer === "function";
    this.#options = { ...options, key: isFunction ? null : signer, renewsGrant: renewGrant !== null };
    this.#sign = isFunction ? signer : null;
    this.#renewGrant = renewGrant;
    this.#renewKeyGrant = renewKeyGrant;
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
    return new Subscription(
      source,
      {
        boundary: (key) => this.#call("boundary", { key }),
        startRecording: (key, maxBytes) => this.#request({ name: "startRecording", argument: { key, maxBytes } }, undefined),
        stopRecording: () => this.#request({ name: "stopRecording", argument: null }, undefined),
        hydrate: async (generation, aborted) => {
          // The worker has it wait for its snapshots before it hears of the subscription in any other way.
          const hydrated = this.#request({ name: "hydrate", argument: { spec: rest, generation } }, aborted);
          const [result, key] = await Promise.allSettled([hydrated, this.#acquire(rest)]);
          if (key.status === "fulfilled") this.#release(key.value);
          if (result.status === "rejected") throw result.reason;
          return result.value;
        },
        draftSnapshots: (key, lastItem, parts) =>
          this.#request({ name: "draftSnapshots", argument: { key, lastItem, parts } }, undefined),
        acceptGap: (key) => this.#acceptGap(key),
      },
      after,
      signal,
    );
  }

  /**
   * Records of a fast stream as they come, before any proof and before they are stored: to paint with. What a subscription of the same lanes brings
   * later confirms them. It begins with the first `next`, keeps nothing, and after a cut goes on with what comes then.
   *
   * Iterating ends when the client is closed. It throws, from `next`: `RemudaError` with the code that ended the tail, `client/invalid-argument`
   * when the lanes are not possible, and the reason of `signal`.
   */
  tail(options: { lanes: readonly string[] | "all"; signal?: AbortSignal }): TailIterator {
    return new TailIterator(
      {
        acquire: () => this.#acquire({ lanes: options.lanes, verification: "none" }),
        release: (key) => this.#release(key),
        listen: (key, listener) => addTo(this.#listeners, key, listener),
      },
      options.signal,
    );
  }

  /**
   * Consumes a group of a standard stream (CIP-39 §11.2): each record is leased to one consumer at a time, until one acknowledges it. Iterators
   * over one group, of all tabs, share its deliveries. Nothing happens before the first `next`.
   *
   * Every receipt of the group is verified, and where its chain was left is kept in the database. A record that cannot be read is not handed
   * out: `undecryptable` tells what became of it.
   *
   * Iterating ends when the client is closed. It throws, from `next`: `RemudaError` with the code that ended the subscription, any `verify/…`,
   * `protocol/…` or `provider/…` code, `provider/group-not-found` among them; `client/invalid-argument`; the reason of `signal`.
   */
  group(options: GroupName & { signal?: AbortSignal }): GroupIterator {
    const { lane, group, signal } = options;
    return new GroupIterator(
      {
        acquire: () => this.#acquire({ lane, group, verification: "group" }),
        release: (key) => this.#release(key),
        listen: (key, { pushed, ended }) => {
          const undo = [this.#groups.add(key, pushed), addTo(this.#groupEnds, key, ended)];
          return () => undo.forEach((one) => one());
        },
      },
      signal,
    );
  }

  /**
   * Creates a group. The same configuration again is the same group, and the name of a group that was deleted is never used again:
   * choose it at random. Throws as {@link createLane}.
   */
  async createGroup(group: NewGroup, options: { signal?: AbortSignal } = {}): Promise<GroupMutation> {
    return this.#request({ name: "createGroup", argument: group }, options.signal);
  }

  /** Changes a group; records that have entered it keep their terms. Throws as {@link createLane}. */
  async updateGroup(group: GroupName & GroupSettings, options: { signal?: AbortSignal } = {}): Promise<GroupMutation> {
    return this.#request({ name: "updateGroup", argument: group }, options.signal);
  }

  /** Deletes a group for good: its leases are over. Throws as {@link createLane}. */
  async deleteGroup(group: GroupName, options: { signal?: AbortSignal } = {}): Promise<GroupMutation> {
    return this.#request({ name: "deleteGroup", argument: group }, options.signal);
  }

  /**
   * Brings back a record whose cycle is over, a dead letter as long as it is kept: it is given again in a new cycle, once, however often it is
   * asked for. `sequence` and `cycle` are those of its `delivery-state`. Throws as {@link createLane}.
   */
  async redrive(over: Redrive, options: { signal?: AbortSignal } = {}): Promise<Redriven> {
    return this.#request({ name: "redrive", argument: over }, options.signal);
  }

  /**
   * Puts a record into the outbox of the database, sealed where the stream is encrypted, and resolves once it is durable there: from then on it
   * is sent, as the same bytes under the same `messageId`, until its outcome is known, whatever becomes of this page. Offline too. What becomes
   * of it is said by the {@link AppendTicket}, by `append` events in every tab, and by {@link outbox} to whoever comes later.
   *
   * Records of one lane are sent in the order in which they were appended. On a standard stream each becomes one record. A fast stream knows
   * no retry: there an answer that was lost can make a record appear twice, under one `messageId`, unless a subscription of this client
   * verifies the lane; keep one open, and let readers tell by `messageId`.
   *
   * Throws `RemudaError`, with nothing queued: `store/outbox-full`, another `store/…`, an `encryption/…`, `client/invalid-argument`,
   * `client/closed`. `client/trap` when the worker broke meanwhile: {@link outbox} says whether it is there.
   */
  async append(record: AppendRecord): Promise<AppendTicket> {
    isId(record.lane, "lane");
    const { entry, messageId } = await this.#call("append", { record });
    const ticket = new AppendTicket(entry, messageId);
    if (this.#isClosed) ticket.reject(RemudaError.client("client/closed"));
    else this.#tickets.set(entry, ticket);
    return ticket;
  }

  /** What waits to be appended, then the newest of what has ended, ascending. Throws a `store/…`, `client/closed`. */
  async *outbox(): AsyncIterableIterator<OutboxEntry> {
    let page: OutboxEntry[];
    let after = 0n;
    do {
      page = await this.#call("outbox", { after, maxBytes: OUTBOX_PAGE_BYTES });
      yield* page;
      after = page.at(-1)?.entry ?? after;
    } while (page.length > 0);
  }

  /** Forgets a `failed` entry of the outbox that was seen. Throws `client/closed`. */
  async dismiss(entry: bigint): Promise<void> {
    await this.#call("dismiss", { entry });
  }

  /**
   * Creates a lane; its event arrives as an item of the default lane.
   *
   * Throws `RemudaError`:
   * - a `provider/…` code that the provider refused it with;
   * - `client/owner-unreachable` (not sent), `command/outcome-unknown`, `client/owner-lost` or `client/trap` (outcome unknown);
   * - `client/invalid-argument`, `client/closed`;
   *
   * or the reason of `signal`: it may be done nevertheless.
   */
  async createLane(lane: NewLane = {}, options: { signal?: AbortSignal } = {}): Promise<LaneMutation> {
    return this.#request({ name: "createLane", argument: lane }, options.signal);
  }

  /** Closes a lane for good. Throws as {@link createLane}. */
  async closeLane(lane: string, options: { signal?: AbortSignal } = {}): Promise<LaneMutation> {
    isId(lane, "lane");
    return this.#request({ name: "closeLane", argument: lane }, options.signal);
  }

  /** Every lane, ascending by id, one page after the other. Throws as {@link createLane}. */
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
   * Throws `misuse/argument` for a key of another length, or of a stream that was not opened with `dataKeys`, and
   * `encryption/generation-conflict` when another key of the generation is known.
   */
  async addDataKey(dataKey: DataKey): Promise<void> {
    await this.#call("addDataKey", { dataKey });
    // A worker that is replaced opens with it.
    this.#options.dataKeys = [...(this.#options.dataKeys ?? []), dataKey];
  }

  /**
   * Publishes a key batch on the key stream, and resolves to its receipt (`KeyBatchReceiptV1`, canonical bytes) once it is durable there: what
   * the stream's owner activates a next generation with. It is sent as the same bytes until then, however often the connection breaks. The
   * grant of `keyStream` has APPEND for it. Where another tab holds the connection, that one publishes, and is given the data key.
   *
   * Throws as {@link createLane}, and `encryption/empty-rotation`, `encryption/membership-too-large`, `encryption/membership-unknown`;
   * `verify/key-generation`, `verify/signature` when the rotation key is not the stream's, `verify/envelope-root` when the provider committed something else.
   */
  async publishKeyBatch(batch: KeyBatch, options: { signal?: AbortSignal } = {}): Promise<Uint8Array> {
    return this.#request({ name: "publishKeyBatch", argument: batch }, options.signal);
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

  async #acquire(spec: AnySpec): Promise<string> {
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

  /** Whether the subscription is behind a floor is known once it has failed, or is live; whether it goes on, once its gap is durable. */
  async #acceptGap(key: string): Promise<void> {
    const end = new AbortController();
    const when = <Name extends keyof RemudaEvents>(name: Name, is: (event: RemudaEvents[Name]) => boolean) =>
      new Promise<RemudaEvents[Name]>((resolve) => {
        this.addEventListener(name, (event) => is(event) && resolve(event), { signal: end.signal });
      });
    const closed = new Promise<never>((_, reject) => {
      end.signal.addEventListener("abort", () => reject(RemudaError.client("client/closed")));
      this.#ends.add(end);
    });
    closed.catch(() => undefined);
    const known = () => this.#status.subscriptions.find((one) => one.key === key && (one.state === "failed" || one.state === "live"));
    try {
      for (let attempt = 1; ; attempt++) {
        if (!known()) await Promise.race([closed, when("status", () => known() !== undefined)]);
        const { floor = null, failure = null } = known() ?? {};
        if (floor === null) throw failure ? RemudaError.fromFailure(failure) : RemudaError.client("client/no-floor");
        const gap = when("gap", ({ detail }) => detail.key === key).then(() => null);
        const failed = when("failure", ({ detail }) => detail.key === key).then(({ detail }) => detail.failure);
        await this.#request({ name: "acceptGap", argument: key }, undefined);
        const refused = await Promise.race([closed, gap, failed]);
        if (!refused) return;
        // What was known was of the subscription before this one: it asks again, and is told the same.
        if (refused.code !== "provider/cursor-too-old" || attempt === GAP_ATTEMPTS) throw RemudaError.fromFailure(refused);
      }
    } finally {
      this.#ends.delete(end);
      end.abort();
    }
  }

  #release(key: string): void {
    const held = this.#held.get(key);
    if (!held || --held.holders > 0) return;
    this.#held.delete(key);
    // What is not followed any more can be settled no more.
    this.#groups.end(key);
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
          this.#endFailedGroups();
        } else if (event.type === "painted") {
          for (const listener of this.#listeners.get(event.key) ?? []) listener.pushed(event.record);
        } else if (event.type === "tail-failed") {
          const error = RemudaError.fromFailure(event.failure);
          for (const listener of [...(this.#listeners.get(event.key) ?? [])]) listener.ended(error);
        } else if (event.type === "delivery") {
          this.#deliver(event);
        } else {
          if (event.type === "delivery-state") this.#groups.told(event);
          if (event.type === "group" && event.config === null) this.#groups.end(event.key);
          if (event.type === "append") this.#settle(event.entry, (ticket) => ticket.take(event));
          this.#emit(event.type, event);
        }
        break;
      }
      case "forgotten":
        this.#settle(message.entry, (ticket) => ticket.reject(RemudaError.client("client/outcome-forgotten")));
        break;
    }
  }

  #deliver({ type: _, key, ...record }: LeasedRecord & { type: string; key: string }): void {
    const decide: ConstructorParameters<typeof Delivery>[1] = (decision) =>
      this.#request({ name: "decide", argument: { key, lease: record.lease, decision } }, undefined);
    this.#groups.hand(key, new Delivery(record, decide));
  }

  #endFailedGroups(): void {
    for (const { key, state, failure } of this.#status.subscriptions) {
      if (state !== "failed" || !failure) continue;
      for (const end of [...(this.#groupEnds.get(key) ?? [])]) end(RemudaError.fromFailure(failure));
    }
  }

  #settle(entry: bigint, settle: (ticket: AppendTicket) => void): void {
    const ticket = this.#tickets.get(entry);
    if (!ticket) return;
    settle(ticket);
    if (ticket.hasEnded) this.#tickets.delete(entry);
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
    if (question.name === "renewKeyGrant") {
      const { keyStream } = this.#options;
      if (!keyStream || !this.#renewKeyGrant) throw RemudaError.client("client/unexpected", "asked for a grant without a source of them");
      const grant = await this.#renewKeyGrant();
      this.#options.keyStream = { ...keyStream, grant };
      return grant;
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
      // A request may have been sent, and a record be queued, so it is not asked for again; to open is for `#start` to repeat. The rest changes nothing: it waits.
      if (call.name === "request" || call.name === "append" || call.name === "open" || call.name === "close") {
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
      if (this.#tickets.size > 0) await this.#call("watch", { entries: [...this.#tickets.keys()] });
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
    for (const end of this.#ends) end.abort();
    for (const ticket of this.#tickets.values()) ticket.reject(RemudaError.client("client/closed"));
    this.#tickets.clear();
    if (!this.#isOpen) {
      this.#worker?.terminate();
      this.#worker = null;
    }
    for (const listeners of [...this.#listeners.values()]) for (const listener of [...listeners]) listener.ended(null);
    for (const ends of [...this.#groupEnds.values()]) for (const end of [...ends]) end(null);
    this.#groups.end();
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

/** Adds to a set of a map; call what it returns to take it out. */
function addTo<T>(map: Map<string, Set<T>>, key: string, value: T): () => void {
  const set = map.get(key) ?? new Set();
  map.set(key, set.add(value));
  return () => {
    if (set.delete(value) && set.size === 0) map.delete(key);
  };
}

function isId(text: string, name: string): void {
  if (!/^[0-9a-f]{64}$/.test(text)) throw RemudaError.client("client/invalid-argument", `${name}: 64 lower-case hex digits`);
}
