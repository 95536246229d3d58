/** The browser's parts that workers share, in one process: locks, channels, and a database with one network behind it. */
import type { Client, ClientEvent, ClientFactory, Enqueued, OpenOptions } from "../src/glue.js";
import type { Channel, Locks, Surroundings } from "../src/host.js";
import { Host } from "../src/host.js";
import type { AnySpec, BetweenTabs, Call, CallName, Calls, FromWorker, WorkerOptions } from "../src/protocol.js";
import type { Decision, DeliveryState, GroupMutation, GroupName, GroupSettings, NewGroup, Redrive, Redriven } from "../src/group-types.js";
import { FORGETFUL } from "../src/member-vault.js";
import { UNKNOWN } from "../src/protocol.js";
import type { ExpectedGeneration, Hydrated, SnapshotDraft, SnapshotPart } from "../src/snapshots.js";
import type {
  AppendEvent,
  AppendRecord,
  Boundary,
  Item,
  Lane,
  LaneMutation,
  LanePage,
  NewLane,
  OutboxEntry,
  Recording,
  Status,
  SubscriptionSpec,
} from "../src/types.js";

export const LANE = "11".repeat(32);
export const STREAM = "22".repeat(32);
export const SPEC: SubscriptionSpec = { lanes: [LANE], verification: "scoped-proofs" };

/** Lets every promise and timer of now run. */
export const settle = () => new Promise<void>((resolve) => setTimeout(resolve, 5));

export function record(item: bigint, bytes = 1): Item {
  return {
    kind: "record",
    item,
    record: "application",
    encryptionGeneration: 0n,
    sealed: null,
    brokerEpoch: 0n,
    sequence: item - 1n,
    checkpoint: "33".repeat(32),
    lane: LANE,
    messageId: item.toString(16).padStart(64, "0"),
    createdAtMs: 1n,
    expiresAtMs: 2n,
    payload: new Uint8Array(bytes),
    assurance: "lane-set",
  };
}

export class Origin {
  readonly held = new Map<string, object>();
  readonly queues = new Map<string, (() => void)[]>();
  readonly channels = new Set<FakeChannel>();
  readonly rows = new Map<string, Item[]>();
  /** The outbox of the database. */
  readonly outbox: OutboxEntry[] = [];
  /** Loses every message between tabs. */
  isDeaf = false;

  locks(tab: { isDead: boolean; releases: (() => void)[] }): Locks {
    return {
      request: async (name, options, whileHeld) => {
        if (this.held.has(name)) {
          if (options.ifAvailable) return whileHeld(null);
          await new Promise<void>((resolve, reject) => {
            const queue = this.queues.get(name) ?? [];
            this.queues.set(name, queue);
            const turn = () => resolve();
            queue.push(turn);
            options.signal?.addEventListener("abort", () => {
              const at = queue.indexOf(turn);
              if (at < 0) return;
              queue.splice(at, 1);
              reject(options.signal!.reason);
            });
            tab.releases.push(() => void (queue.indexOf(turn) >= 0 && queue.splice(queue.indexOf(turn), 1)));
          });
        }
        const lock = { name };
        this.held.set(name, lock);
        const release = () => {
          if (this.held.get(name) !== lock) return;
          this.held.delete(name);
          this.queues.get(name)?.shift()?.();
        };
        tab.releases.push(release);
        try {
          await whileHeld(lock);
        } finally {
          release();
        }
      },
    };
  }

  /** What the owner makes of an entry: in the database first, then told by it. */
  advance(entry: bigint, change: Partial<AppendEvent>): AppendEvent {
    const found = this.outbox.find((one) => one.entry === entry)!;
    Object.assign(found, change);
    const { messageId, state, record, failure } = found;
    return { type: "append", entry, messageId, state, record, failure };
  }

  commit(key: string, items: Item[]): void {
    this.rows.set(key, [...(this.rows.get(key) ?? []), ...items]);
  }
}

export class FakeChannel implements Channel {
  onmessage: ((event: { data: BetweenTabs }) => void) | null = null;
  constructor(private readonly origin: Origin) {
    origin.channels.add(this);
  }
  postMessage(message: BetweenTabs): void {
    if (this.origin.isDeaf) return;
    const data = structuredClone(message);
    for (const other of this.origin.channels) {
      if (other !== this) queueMicrotask(() => this.origin.channels.has(other) && other.onmessage?.({ data }));
    }
  }
  close(): void {
    this.origin.channels.delete(this);
  }
}

interface Hydration {
  key: string;
  generation: ExpectedGeneration;
  resolve(hydrated: Hydrated): void;
  reject(error: unknown): void;
}

export class FakeClient implements Client {
  readonly open = new Set<string>();
  /** How often it was told to look into the outbox. */
  looks = 0;
  isRunning = false;
  /** Answers the making of a lane instead. */
  laneAnswer: (() => Promise<LaneMutation>) | null = null;
  /** Where an append waits instead of being stored. */
  stall: Promise<never> | null = null;
  #ended!: { resolve(): void; reject(error: unknown): void };
  constructor(
    readonly origin: Origin,
    readonly options: OpenOptions,
  ) {}
  run(): Promise<void> {
    this.isRunning = true;
    return new Promise((resolve, reject) => (this.#ended = { resolve, reject }));
  }
  fail(error: unknown): void {
    this.#ended.reject(error);
  }
  async subscribe(spec: AnySpec): Promise<string> {
    const key = spec.verification === "group" ? `group:${spec.lane}:${spec.group}` : `${spec.verification}:${spec.lanes}`;
    this.open.add(key);
    return key;
  }
  unsubscribe(key: string): void {
    this.open.delete(key);
  }
  recorded: string | null = null;
  startRecording(key: string, maxBytes: number): void {
    this.recorded = `${key} ${maxBytes}`;
  }
  async stopRecording(): Promise<Recording | null> {
    const file = this.recorded === null ? null : new TextEncoder().encode(this.recorded);
    this.recorded = null;
    return file && { file, items: 1, isComplete: true };
  }
  hydrations: Hydration[] = [];
  async hydrate(spec: SubscriptionSpec, generation: ExpectedGeneration): Promise<Hydrated> {
    const key = await this.subscribe(spec);
    return new Promise((resolve, reject) => this.hydrations.push({ key, generation, resolve, reject }));
  }
  async draftSnapshots(_: string, lastItem: bigint, parts: readonly SnapshotPart[]): Promise<SnapshotDraft> {
    const manifests = parts.map((_, index) => ({ bytes: new Uint8Array(100).fill(index + 1), digest: new Uint8Array(32).fill(index) }));
    return { receipt: Uint8Array.of(Number(lastItem)), manifests };
  }
  accepted: string[] = [];
  acceptGap(key: string): void {
    this.accepted.push(key);
  }
  async read(key: string, after: bigint, maxBytes: number): Promise<Item[]> {
    const page: Item[] = [];
    let bytes = 0;
    for (const item of this.origin.rows.get(key) ?? []) {
      if (item.item <= after) continue;
      if (bytes >= maxBytes) break;
      page.push(item);
      bytes += item.kind === "record" ? (item.payload?.length ?? 0) : 0;
    }
    return page;
  }
  async boundary(key: string): Promise<Boundary | null> {
    const last = this.origin.rows.get(key)?.at(-1);
    if (!last) return null;
    return { brokerEpoch: 0n, sequence: last.item, checkpoint: null, lastItem: last.item, revision: 1n, anchor: "provider" };
  }
  async enqueue({ lane, payload, messageId = "44".repeat(32), expiresAtMs = 0n }: AppendRecord): Promise<Enqueued> {
    await this.stall;
    const entry = BigInt(this.origin.outbox.length + 1);
    const rest = { record: null, failure: null, createdAtMs: 1n, sealed: null };
    this.origin.outbox.push({ entry, messageId, state: "queued", lane, payload, expiresAtMs, ...rest });
    return { entry, messageId };
  }
  enqueued(): void {
    this.looks += 1;
  }
  async outbox(after: bigint, maxBytes: number): Promise<OutboxEntry[]> {
    const entries = this.origin.outbox.filter(({ entry }) => entry > after);
    return structuredClone(entries.slice(0, maxBytes === 1 ? 1 : 2));
  }
  dismiss(entry: bigint): void {
    this.origin.outbox.splice(this.origin.outbox.findIndex((one) => one.entry === entry), 1);
  }
  readonly lanes: Lane[] = [];
  readonly dataKeys: bigint[] = [];
  async createLane(lane: NewLane): Promise<LaneMutation> {
    if (this.laneAnswer) return this.laneAnswer();
    const made: Lane = { lane: lane.laneNonce ?? LANE, metadataHash: lane.metadataHash ?? "0".repeat(64), status: "active" };
    this.lanes.push(made);
    return { ...made, receipt: "0".repeat(64) };
  }
  async closeLane(lane: string): Promise<LaneMutation> {
    const made = this.lanes.find((one) => one.lane === lane)!;
    made.status = "closed";
    return { ...made, receipt: "0".repeat(64) };
  }
  async listLanes(after: string | null | undefined, limit: number): Promise<LanePage> {
    const lanes = this.lanes.filter(({ lane }) => lane > (after ?? "")).slice(0, limit);
    return { lanes, nextAfter: lanes.length === limit ? lanes.at(-1)!.lane : null };
  }
  /** What was decided of which lease, and how each is answered. */
  readonly decided: [string, Decision][] = [];
  refuseDecision: unknown = null;
  async decide(_: string, lease: string, decision: Decision): Promise<DeliveryState> {
    this.decided.push([lease, decision]);
    if (this.refuseDecision) throw this.refuseDecision;
    return deliveryState(lease, decision.action);
  }
  readonly groups = new Map<string, NewGroup>();
  async createGroup(config: NewGroup): Promise<GroupMutation> {
    this.groups.set(config.group, config);
    return { config, receipt: "66".repeat(32) };
  }
  async updateGroup(config: GroupName & GroupSettings): Promise<GroupMutation> {
    return this.createGroup(config);
  }
  async deleteGroup({ group }: GroupName): Promise<GroupMutation> {
    this.groups.delete(group);
    return { config: null, receipt: "66".repeat(32) };
  }
  async redrive({ sequence }: Redrive): Promise<Redriven> {
    return { ...deliveryState("", "redrive"), lease: null, sequence, receipt: "66".repeat(32) };
  }
  addDataKey(generation: bigint): void {
    this.dataKeys.push(generation);
  }
  async publishKeyBatch({ generation, sign }: Parameters<Client["publishKeyBatch"]>[0]): Promise<Uint8Array> {
    return sign(new Uint8Array(32).fill(Number(generation)));
  }
  /** How often it read the kept data keys. */
  restored = 0;
  async restoreKeys(): Promise<void> {
    this.restored += 1;
  }
  online(): void {}
  close(): void {
    if (this.isRunning) this.#ended.resolve();
  }
  emit(event: ClientEvent): void {
    this.options.onEvent(event);
  }
}

export function deliveryState(lease: string, action: DeliveryState["action"]): DeliveryState {
  const times = { availableAtMs: null, leaseExpiresAtMs: null, terminalAtMs: null, deadUntilMs: null };
  return { action, lease, cycle: "77".repeat(32), sequence: 0n, attempt: 1, ...times, reason: null, successor: null };
}

/** As a fast stream acknowledges, and as it then shows. */
export const PROVISIONAL = { state: "provisional", record: { brokerEpoch: 0n, sequence: 7n, durable: false } } as const;
export const DURABLE = { state: "durable", record: { brokerEpoch: 0n, sequence: 7n, durable: true, evidence: "55".repeat(32) } } as const;
export const FAILED = {
  state: "failed",
  failure: { code: "provider/idempotency-conflict", remedy: "fix-request", rule: "CIP-39 §11.1", meaning: "m" },
} as const;

export function status(over: Partial<Status> = {}): Status {
  return { ...UNKNOWN, connection: "open", transport: "web-socket", ...over };
}

/** A worker's host, driven as its page would. */
export class Tab {
  readonly posted: FromWorker[] = [];
  readonly host: Host;
  readonly life = { isDead: false, releases: [] as (() => void)[] };
  client!: FakeClient;
  channel!: FakeChannel;
  onPost: ((message: FromWorker) => void) | null = null;
  #ids = 0;
  readonly #waiting = new Map<number, { resolve(value: never): void; reject(error: unknown): void }>();

  constructor(
    readonly origin: Origin,
    name: string,
    over: Partial<Surroundings> = {},
  ) {
    const factory: ClientFactory = {
      open: async (options) => (this.client = new FakeClient(origin, options)),
    };
    this.host = new Host({
      load: async () => factory,
      locks: origin.locks(this.life),
      channel: () => (this.channel = new FakeChannel(origin)),
      post: (message) => this.#took(structuredClone(message)),
      sign: async () => new Uint8Array(64),
      agree: async () => new Uint8Array(32),
      vault: async () => FORGETFUL,
      tab: name,
      ...over,
    });
  }

  call<Name extends CallName>(name: Name, parameters: Calls[Name]["arguments"]): Promise<Calls[Name]["result"]> {
    const id = this.#ids++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.host.receive({ type: "call", id, name, ...parameters } as unknown as Call);
    });
  }

  open(over: Partial<WorkerOptions> = {}) {
    return this.call("open", { options: { ...OPTIONS, ...over } });
  }

  /** As when a tab is killed: its worker says nothing any more, and the browser lets its locks go. */
  kill(): void {
    this.life.isDead = true;
    this.origin.channels.delete(this.channel);
    this.channel.postMessage = () => undefined;
    for (const release of this.life.releases.splice(0)) release();
  }

  events(type: string) {
    return this.posted.flatMap((message) => (message.type === "event" && message.event.type === type ? [message.event] : []));
  }

  #took(message: FromWorker): void {
    this.posted.push(message);
    this.onPost?.(message);
    if (message.type === "result") this.#waiting.get(message.id)?.resolve(message.value as never);
    if (message.type === "error") this.#waiting.get(message.id)?.reject(message.error);
  }
}

export const OPTIONS = {
  database: "d",
  storage: "durable" as const,
  context: "",
  streamId: STREAM,
  nodes: ["https://node.example"],
  quorum: null,
  endpoints: [],
  allowLoopback: false,
  dataKeys: null,
  grant: new Uint8Array(1),
  keyStream: null,
  key: null,
  renewsGrant: false,
};
