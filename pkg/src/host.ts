/**
 * What runs in the worker, apart from its globals: answers the page, and agrees with the workers of other tabs on who owns the network.
 *
 * ```text
 *              lock granted                 client.run() ends
 *   follower ----------------> owner ---------------------------> broken (the page replaces the worker)
 *      |                         |
 *      +------- close -----------+---> closed (the lock passes to the next in line)
 * ```
 *
 * An owner runs the network and tells the others what it committed. A follower reads the same database, puts what it appends into its outbox,
 * and sends its other commands to the owner.
 */
import type { MemberKey } from "./agreement.js";
import { RemudaError, isTrap } from "./error.js";
import type { Client, ClientEvent, ClientFactory, Enqueued, MemberOptions } from "./glue.js";
import type { DeliveryEvent } from "./group-types.js";
import type { Vault } from "./member-vault.js";
import { FORGETFUL } from "./member-vault.js";
import type { AnySpec, BetweenTabs, Call, FromWorker, PageQuestion, Request, RequestResult, ToWorker, WorkerOptions } from "./protocol.js";
import { UNKNOWN, lockName, tabLockName } from "./protocol.js";
import type { AppendRecord, AppendState, Role, Status } from "./types.js";

/** How often a follower looks into the database, whatever messages it got. */
export const POLL_MS = 250;
/** How often a follower reminds the owner of what it has queued. */
const REMIND_MS = 5_000;
/** How long a request waits for an owner to take it. */
export const TAKE_MS = 30_000;

/** How long the network gets to say goodbye. */
const CLOSE_MS = 1_000;

/** The part of `LockManager` that is used. */
export interface Locks {
  request(
    name: string,
    options: { ifAvailable?: boolean; signal?: AbortSignal },
    whileHeld: (lock: object | null) => Promise<void>,
  ): Promise<void>;
}

/** The part of `BroadcastChannel` that is used. */
export interface Channel {
  postMessage(message: BetweenTabs): void;
  onmessage: ((event: { data: BetweenTabs }) => void) | null;
  close(): void;
}

/** The globals of a worker. */
export interface Surroundings {
  /** Loads the WebAssembly. */
  load(): Promise<ClientFactory>;
  locks: Locks;
  channel(name: string): Channel;
  post(message: FromWorker): void;
  sign(key: CryptoKey, digest: Uint8Array): Promise<Uint8Array>;
  /** X25519. */
  agree(key: MemberKey, publicKey: Uint8Array): Promise<Uint8Array>;
  /** Where the data keys of a stream are kept, wrapped. */
  vault(name: string): Promise<Vault>;
  tab: string;
}

/** A request that another tab, the owner, is to make for us. */
interface RemoteRequest {
  request: Request;
  taken: boolean;
  resolve(result: RequestResult): void;
  reject(error: RemudaError): void;
  timer: ReturnType<typeof setTimeout>;
}

/** About how much of the outbox is read to look for one entry: one is always read. */
const ONE_ENTRY = 1;

export class Host {
  readonly #around: Surroundings;
  #options: WorkerOptions | null = null;
  #client: Client | null = null;
  #channel: Channel | null = null;
  #role: Role = "follower";
  #over: "closed" | "broken" | null = null;
  readonly #end = new AbortController();
  /** What this tab subscribes to, and how often. */
  readonly #local = new Map<string, { spec: AnySpec; holders: number; seen: bigint }>();
  /** What other tabs subscribe to, by tab and key. */
  readonly #remote = new Map<string, Map<string, AnySpec>>();
  readonly #watched = new Set<string>();
  /** The appends of this tab that have not ended, with the state that the page was told. */
  readonly #appends = new Map<bigint, AppendState | null>();
  readonly #requests = new Map<number, RemoteRequest>();
  /** What the page was asked for. */
  readonly #questions = new Map<number, { resolve(answer: Uint8Array): void; reject(error: RemudaError): void }>();
  #ids = 0;
  #ownStatus: Status = UNKNOWN;
  #ownersStatus: Status = UNKNOWN;
  #poll: ReturnType<typeof setInterval> | null = null;
  #polling = false;
  #remindedAtMs = 0;
  /** Whose turn it is to be handed a delivery. */
  #deliveries = 0;
  /** Subscribing and unsubscribing, one after the other. */
  #order: Promise<unknown> = Promise.resolve();
  #running: Promise<void> = Promise.resolve();

  constructor(around: Surroundings) {
    this.#around = around;
  }

  /** Takes a message of the page. */
  receive(message: ToWorker): void {
    switch (message.type) {
      case "call":
        void this.#answer(message);
        break;
      case "online":
        this.#attempt(() => this.#client?.online(message.isOnline));
        break;
      case "told":
        this.#questions.get(message.id)?.resolve(message.answer);
        this.#questions.delete(message.id);
        break;
      case "untold":
        this.#questions.get(message.id)?.reject(new RemudaError(message.error));
        this.#questions.delete(message.id);
        break;
    }
  }

  /** Takes an error that no one caught: a trap breaks the worker, anything else is reported. */
  uncaught(thrown: unknown): void {
    if (isTrap(thrown)) this.#break(thrown);
    else this.#report(null, thrown);
  }

  async #answer(call: Call): Promise<void> {
    try {
      const value = await this.#perform(call);
      this.#around.post({ type: "result", id: call.id, value });
      // A subscriber that comes late learns what already failed.
      if (call.name === "subscribe") this.#postStatus();
    } catch (thrown) {
      this.#around.post({ type: "error", id: call.id, error: RemudaError.from(thrown).toData() });
      if (isTrap(thrown)) this.#break(thrown);
    }
  }

  async #perform(call: Call) {
    switch (call.name) {
      case "open":
        return { role: await this.#open(call.options) };
      case "subscribe":
        return this.#inOrder(() => this.#subscribe(call.spec));
      case "unsubscribe":
        await this.#inOrder(async () => this.#unsubscribe(call.key));
        return null;
      case "read":
        return this.#opened().read(call.key, call.after, call.maxBytes);
      case "boundary":
        return this.#opened().boundary(call.key);
      case "append":
        return this.#append(call.record);
      case "watch":
        for (const entry of call.entries) this.#appends.set(entry, null);
        await this.#lookForOutcomes();
        return null;
      case "outbox":
        return this.#opened().outbox(call.after, call.maxBytes);
      case "dismiss":
        if (this.#role === "owner") this.#opened().dismiss(call.entry);
        else this.#tell({ type: "dismiss", from: this.#around.tab, entry: call.entry });
        return null;
      case "request":
        return this.#role === "owner" ? this.#ask(this.#opened(), call.request) : this.#askOwner(call.request);
      case "addDataKey":
        this.#opened().addDataKey(call.dataKey.generation, call.dataKey.key);
        this.#tell({ type: "dataKey", from: this.#around.tab, dataKey: call.dataKey });
        return null;
      case "close":
        this.#close();
        await Promise.race([this.#running, new Promise((resolve) => setTimeout(resolve, CLOSE_MS))]);
        return null;
    }
  }

  // --- opening and closing

  async #open(options: WorkerOptions): Promise<Role> {
    if (this.#options) throw RemudaError.client("client/invalid-argument", "already open");
    this.#options = options;
    // Until the network runs nothing is known but this.
    if (options.storage === "memory") this.#ownStatus = { ...UNKNOWN, storage: "memory" };
    const { key, renewsGrant, keyStream, ...rest } = options;
    const factory = await this.#around.load();
    this.#client = await factory.open({
      ...rest,
      sign: (digest) => (key ? this.#around.sign(key, digest) : this.#askPage({ name: "sign", digest })),
      renewGrant: renewsGrant ? () => this.#askPage({ name: "renewGrant" }) : null,
      members: keyStream && (await this.#members(options, keyStream)),
      onEvent: (event) => this.#happened(event),
    });
    const name = lockName(options.database, options.streamId);
    this.#channel = this.#around.channel(name);
    this.#channel.onmessage = ({ data }) => this.#heard(data);
    this.#hold(this.#tabLock(this.#around.tab), () => this.#ended());
    this.#channel.postMessage({ type: "hello", from: this.#around.tab });

    const isOwner = await new Promise<boolean>((resolve, reject) => {
      this.#around.locks
        .request(name, { ifAvailable: true }, (lock) => {
          resolve(lock !== null);
          return lock ? this.#own() : Promise.resolve();
        })
        .catch(reject);
    });
    if (!isOwner) {
      this.#hold(name, () => this.#own());
      this.#poll = setInterval(() => void this.#look(), POLL_MS);
    }
    return isOwner ? "owner" : "follower";
  }

  async #members(
    { database, storage, streamId }: WorkerOptions,
    { memberKey, grant, renewsGrant }: NonNullable<WorkerOptions["keyStream"]>,
  ): Promise<MemberOptions> {
    const vault = storage === "memory" ? FORGETFUL : await this.#around.vault(`${database}:${streamId}`);
    return {
      publicKey: memberKey.publicKey,
      grant,
      renewGrant: renewsGrant ? () => this.#askPage({ name: "renewKeyGrant" }) : null,
      agree: (publicKey) => this.#around.agree(memberKey, publicKey),
      load: () => vault.load(),
      keep: async (secret) => {
        if (await vault.keep(secret)) this.#tell({ type: "keysKept", from: this.#around.tab });
      },
    };
  }

  #close(): void {
    if (this.#over) return;
    this.#over = "closed";
    this.#channel?.postMessage({ type: "bye", from: this.#around.tab });
    this.#stop(RemudaError.client("client/closed"));
    this.#client?.close();
  }

  #break(thrown: unknown): void {
    if (this.#over) return;
    this.#over = "broken";
    const error = RemudaError.from(thrown);
    this.#stop(error);
    this.#around.post({ type: "broken", error: error.toData() });
  }

  #stop(error: RemudaError): void {
    if (this.#poll !== null) clearInterval(this.#poll);
    for (const id of [...this.#requests.keys()]) this.#settle(id, (request) => request.reject(error));
    this.#channel?.close();
    this.#end.abort(error);
  }

  /** Resolves when this host is over: until then a lock is held. */
  #ended(): Promise<void> {
    const { signal } = this.#end;
    return new Promise((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  // --- ownership

  /** Asks for a lock, for as long as it takes. */
  #hold(name: string, whileHeld: () => Promise<void>): void {
    this.#around.locks.request(name, { signal: this.#end.signal }, whileHeld).catch((thrown) => {
      // The request is aborted with the reason that ended this host; everything else is news.
      if (!this.#end.signal.aborted) this.#report(null, thrown);
    });
  }

  #tabLock(tab: string): string {
    const { database, streamId } = this.#options!;
    return tabLockName(database, streamId, tab);
  }

  async #own(): Promise<void> {
    if (this.#over) return;
    const client = this.#opened();
    this.#role = "owner";
    if (this.#poll !== null) clearInterval(this.#poll);
    this.#poll = null;
    this.#around.post({ type: "role", role: "owner" });
    this.#tell({ type: "owner", from: this.#around.tab });
    this.#postStatus();

    for (const [tab, specs] of this.#remote) {
      this.#watch(tab);
      for (const [key, spec] of specs) this.#register(key, spec);
    }
    for (const [id, { taken, request }] of [...this.#requests]) {
      if (taken) this.#settle(id, ({ reject }) => reject(RemudaError.client("client/owner-lost")));
      else this.#ask(client, request).then(
        (result) => this.#settle(id, ({ resolve }) => resolve(result)),
        (thrown) => this.#settle(id, ({ reject }) => reject(RemudaError.from(thrown))),
      );
    }
    // What the last owner settled and could not tell any more; what it did not settle, this one reads by itself.
    void this.#look();
    try {
      this.#running = client.run();
      await this.#running;
      if (!this.#over) this.#break(RemudaError.client("client/stopped"));
    } catch (thrown) {
      this.#break(thrown);
    }
  }

  /** Waits for the end of another tab, to drop what only it subscribed to. */
  #watch(tab: string): void {
    if (this.#watched.has(tab)) return;
    this.#watched.add(tab);
    this.#hold(this.#tabLock(tab), async () => this.#forget(tab));
  }

  #forget(tab: string): void {
    this.#watched.delete(tab);
    const specs = this.#remote.get(tab);
    this.#remote.delete(tab);
    for (const key of specs?.keys() ?? []) void this.#inOrder(async () => this.#dropIfUnused(key));
  }

  #dropIfUnused(key: string): void {
    const used = this.#local.has(key) || [...this.#remote.values()].some((specs) => specs.has(key));
    if (!used && !this.#over) this.#attempt(() => this.#client?.unsubscribe(key));
  }

  #inOrder<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#order.then(task);
    this.#order = turn.catch(() => undefined);
    return turn;
  }

  // --- subscriptions

  async #subscribe(spec: AnySpec): Promise<string> {
    const key = await this.#opened().subscribe(spec);
    const known = this.#local.get(key);
    if (known) {
      known.holders += 1;
    } else {
      this.#local.set(key, { spec, holders: 1, seen: -1n });
      if (this.#role === "follower") this.#tell({ type: "subscribe", from: this.#around.tab, key, spec });
    }
    return key;
  }

  #unsubscribe(key: string): void {
    const known = this.#local.get(key);
    if (!known || --known.holders > 0) return;
    this.#local.delete(key);
    if (this.#role === "follower") this.#tell({ type: "unsubscribe", from: this.#around.tab, key });
    this.#dropIfUnused(key);
  }

  /** Opens what another tab subscribes to. */
  #register(key: string, spec: AnySpec): void {
    this.#inOrder(async () => this.#opened().subscribe(spec)).catch((thrown) => this.#report(key, thrown));
  }

  // --- appends

  async #append(record: AppendRecord): Promise<Enqueued> {
    const enqueued = await this.#opened().enqueue(record);
    this.#appends.set(enqueued.entry, "queued");
    this.#tellEnqueued();
    return enqueued;
  }

  #tellEnqueued(): void {
    if (this.#role === "owner") this.#attempt(() => this.#client?.enqueued());
    else this.#tell({ type: "enqueued", from: this.#around.tab });
  }

  async #lookForOutcomes(): Promise<void> {
    let isWaiting = false;
    for (const entry of [...this.#appends.keys()]) {
      const [found] = await this.#opened().outbox(entry - 1n, ONE_ENTRY);
      if (found?.entry !== entry) {
        if (this.#appends.delete(entry)) this.#around.post({ type: "forgotten", entry });
        continue;
      }
      const { messageId, state, record, failure } = found;
      if (state === "queued") isWaiting = true;
      if (this.#appends.get(entry) !== state) this.#around.post({ type: "event", event: { type: "append", entry, messageId, state, record, failure } });
      this.#noteAppend(entry, state);
    }
    if (!isWaiting || Date.now() - this.#remindedAtMs < REMIND_MS) return;
    this.#remindedAtMs = Date.now();
    this.#tellEnqueued();
  }

  #noteAppend(entry: bigint, state: AppendState): void {
    if (!this.#appends.has(entry)) return;
    if (state === "durable" || state === "failed") this.#appends.delete(entry);
    else this.#appends.set(entry, state);
  }

  // --- other tabs

  #tell(message: BetweenTabs): void {
    if (!this.#over) this.#channel?.postMessage(message);
  }

  #heard(message: BetweenTabs): void {
    if (this.#over) return;
    const { tab } = this.#around;
    if ("to" in message && message.to !== tab) return;
    const isOwner = this.#role === "owner";
    switch (message.type) {
      case "hello":
        if (isOwner) this.#tell({ type: "event", from: tab, event: { type: "status", status: this.#ownStatus } });
        break;
      case "owner":
        for (const [key, { spec }] of this.#local) this.#tell({ type: "subscribe", from: tab, key, spec });
        for (const [id, { taken, request }] of [...this.#requests]) {
          if (taken) this.#settle(id, ({ reject }) => reject(RemudaError.client("client/owner-lost")));
          else this.#tell({ type: "request", from: tab, id, request });
        }
        break;
      case "event":
        if (!isOwner) this.#followed(message.event);
        break;
      case "delivery":
        this.#around.post({ type: "event", event: message.event });
        break;
      case "subscribe": {
        const specs = this.#remote.get(message.from) ?? new Map<string, AnySpec>();
        this.#remote.set(message.from, specs.set(message.key, message.spec));
        if (isOwner) {
          this.#watch(message.from);
          this.#register(message.key, message.spec);
        }
        break;
      }
      case "unsubscribe":
        this.#remote.get(message.from)?.delete(message.key);
        if (isOwner) void this.#inOrder(async () => this.#dropIfUnused(message.key));
        break;
      case "request":
        if (isOwner) void this.#askFor(message);
        break;
      case "enqueued":
        if (isOwner) this.#tellEnqueued();
        break;
      case "dismiss":
        if (isOwner) this.#attempt(() => this.#client?.dismiss(message.entry));
        break;
      case "dataKey":
        this.#attempt(() => this.#client?.addDataKey(message.dataKey.generation, message.dataKey.key));
        break;
      case "keysKept":
        if (!isOwner) this.#client?.restoreKeys().catch((thrown) => this.#report(null, thrown));
        break;
      case "taken": {
        const request = this.#requests.get(message.id);
        if (request) {
          request.taken = true;
          clearTimeout(request.timer);
        }
        break;
      }
      case "answered":
        this.#settle(message.id, ({ resolve }) => resolve(message.result));
        break;
      case "refused":
        this.#settle(message.id, ({ reject }) => reject(new RemudaError(message.error)));
        break;
      case "bye":
        if (isOwner) this.#forget(message.from);
        else this.#remote.delete(message.from);
        break;
    }
  }

  async #askFor({ from, id, request }: BetweenTabs & { type: "request" }): Promise<void> {
    this.#tell({ type: "taken", to: from, id });
    try {
      this.#tell({ type: "answered", to: from, id, result: await this.#ask(this.#opened(), request) });
    } catch (thrown) {
      this.#tell({ type: "refused", to: from, id, error: RemudaError.from(thrown).toData() });
      if (isTrap(thrown)) this.#break(thrown);
    }
  }

  #askOwner(request: Request): Promise<RequestResult> {
    this.#opened();
    const id = this.#ids++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => this.#settle(id, () => reject(RemudaError.client("client/owner-unreachable"))),
        TAKE_MS,
      );
      this.#requests.set(id, { request, taken: false, resolve, reject, timer });
      this.#tell({ type: "request", from: this.#around.tab, id, request });
    });
  }

  #settle(id: number, settle: (request: RemoteRequest) => void): void {
    const request = this.#requests.get(id);
    if (!request) return;
    this.#requests.delete(id);
    clearTimeout(request.timer);
    settle(request);
  }

  // --- events

  /** An event of our own client. */
  #happened(event: ClientEvent): void {
    if (event.type === "status") this.#ownStatus = event.status;
    if (this.#over) return;
    if (event.type === "delivery") return this.#hand(event);
    if (event.type === "append") this.#noteAppend(event.entry, event.state);
    if (this.#role === "owner") this.#tell({ type: "event", from: this.#around.tab, event });
    if (event.type === "status") this.#postStatus();
    else this.#around.post({ type: "event", event });
  }

  /** Hands a leased record to one of the tabs that consume its group; without any its lease runs out. */
  #hand(event: DeliveryEvent): void {
    const tabs: string[] = this.#local.has(event.key) ? [this.#around.tab] : [];
    for (const [tab, specs] of this.#remote) if (specs.has(event.key)) tabs.push(tab);
    const to = tabs[this.#deliveries++ % Math.max(tabs.length, 1)];
    if (to === this.#around.tab) this.#around.post({ type: "event", event });
    else if (to !== undefined) this.#tell({ type: "delivery", to, event });
  }

  /** An event of the owner's client. */
  #followed(event: ClientEvent): void {
    if (event.type === "status") {
      this.#ownersStatus = event.status;
      this.#postStatus();
    } else if (event.type === "committed") {
      this.#committed(event.key, event.lastItem);
    } else {
      if (event.type === "append") this.#noteAppend(event.entry, event.state);
      this.#around.post({ type: "event", event });
    }
  }

  #postStatus(): void {
    const status =
      this.#role === "owner" ? this.#ownStatus : { ...this.#ownersStatus, storage: this.#ownStatus.storage };
    this.#around.post({ type: "event", event: { type: "status", status } });
  }

  #committed(key: string, lastItem: bigint): void {
    const known = this.#local.get(key);
    if (!known || known.seen >= lastItem) return;
    known.seen = lastItem;
    this.#around.post({ type: "event", event: { type: "committed", key, lastItem } });
  }

  /** Looks into the database for what a message may have been lost of. */
  async #look(): Promise<void> {
    if (this.#polling || this.#over) return;
    this.#polling = true;
    try {
      for (const key of [...this.#local.keys()]) {
        const boundary = await this.#opened().boundary(key);
        if (boundary) this.#committed(key, boundary.lastItem);
      }
      await this.#lookForOutcomes();
    } catch (thrown) {
      if (isTrap(thrown)) this.#break(thrown);
      else if (!this.#over) this.#report(null, thrown);
    } finally {
      this.#polling = false;
    }
  }

  #report(key: string | null, thrown: unknown): void {
    if (isTrap(thrown)) return this.#break(thrown);
    this.#around.post({ type: "event", event: { type: "failure", key, failure: RemudaError.from(thrown).toFailure() } });
  }

  // --- help

  #attempt(action: () => void): void {
    try {
      action();
    } catch (thrown) {
      this.#report(null, thrown);
    }
  }

  #opened(): Client {
    if (!this.#client || this.#over) throw RemudaError.client("client/closed");
    return this.#client;
  }

  #askPage(question: PageQuestion): Promise<Uint8Array> {
    const id = this.#ids++;
    return new Promise((resolve, reject) => {
      this.#questions.set(id, { resolve, reject });
      this.#around.post({ type: "ask", id, question });
    });
  }

  /** Asks the provider for one thing. */
  async #ask(client: Client, request: Request): Promise<RequestResult> {
    switch (request.name) {
      case "createLane":
        return client.createLane(request.argument);
      case "closeLane":
        return client.closeLane(request.argument);
      case "listLanes":
        return client.listLanes(request.argument.after, request.argument.limit);
      case "publishKeyBatch": {
        const { rotationKey, ...batch } = request.argument;
        return client.publishKeyBatch({ ...batch, sign: (digest) => this.#around.sign(rotationKey, digest) });
      }
      case "startRecording":
        client.startRecording(request.argument.key, request.argument.maxBytes);
        return null;
      case "stopRecording":
        return client.stopRecording();
      case "hydrate":
        return client.hydrate(request.argument.spec, request.argument.generation);
      case "draftSnapshots":
        return client.draftSnapshots(request.argument.key, request.argument.lastItem, request.argument.parts);
      case "acceptGap":
        client.acceptGap(request.argument);
        return null;
      case "decide":
        return client.decide(request.argument.key, request.argument.lease, request.argument.decision);
      case "createGroup":
        return client.createGroup(request.argument);
      case "updateGroup":
        return client.updateGroup(request.argument);
      case "deleteGroup":
        return client.deleteGroup(request.argument);
      case "redrive":
        return client.redrive(request.argument);
    }
  }
}
