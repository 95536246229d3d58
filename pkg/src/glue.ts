/** The shape of the generated WebAssembly client, `generated/client/remuda_client.js`. Only the worker uses it. */
import type { ExpectedGeneration, Hydrated, SnapshotDraft, SnapshotPart } from "./snapshots.js";
import type {
  AppendEvent,
  AppendRecord,
  BatchEvent,
  Boundary,
  DataKey,
  Failure,
  FailureEvent,
  Item,
  KeyBatch,
  KeyEvent,
  LaneMutation,
  LanePage,
  NewLane,
  OutboxEntry,
  PaintedRecord,
  ReceiptsEvent,
  Recording,
  Status,
  SubscriptionSpec,
  TailSpec,
  TransitionEvent,
  GapEvent,
} from "./types.js";
import type {
  Decision,
  DeliveryEvent,
  DeliveryState,
  DeliveryStateEvent,
  GroupEvent,
  GroupMutation,
  GroupName,
  GroupSettings,
  GroupSpec,
  NewGroup,
  Redrive,
  Redriven,
  UndecryptableEvent,
} from "./group-types.js";

/** New rows are durable. */
export interface CommittedEvent {
  type: "committed";
  key: string;
  lastItem: bigint;
}

export type ClientEvent =
  | { type: "status"; status: Status }
  | CommittedEvent
  | BatchEvent
  | ReceiptsEvent
  | TransitionEvent
  | GapEvent
  | AppendEvent
  | PaintedEvent
  | TailFailedEvent
  | KeyEvent
  | DeliveryEvent
  | UndecryptableEvent
  | DeliveryStateEvent
  | GroupEvent
  | FailureEvent;

/** A record of a tail. */
export interface PaintedEvent {
  type: "painted";
  key: string;
  record: PaintedRecord;
}

/** A tail ended by what repeating cannot help. */
export interface TailFailedEvent {
  type: "tail-failed";
  key: string;
  failure: Failure;
}

/** A record that the database holds, to be sent. */
export interface Enqueued {
  entry: bigint;
  messageId: string;
}

export interface MemberOptions {
  publicKey: Uint8Array;
  grant: Uint8Array;
  renewGrant: (() => Promise<Uint8Array>) | null;
  /** X25519 with the member's key. What it gives is erased by the client, as is what `load` gives. */
  agree: (publicKey: Uint8Array) => Promise<Uint8Array>;
  load: () => Promise<Uint8Array | null>;
  /** Erases what it is given. */
  keep: (secret: Uint8Array) => Promise<void>;
}

export interface OpenOptions {
  database: string;
  storage: "durable" | "memory";
  context: string;
  streamId: string;
  nodes: string[];
  quorum: number | null;
  endpoints: string[];
  allowLoopback: boolean;
  /** Of an encrypted stream; null for one in the clear. */
  dataKeys: readonly DataKey[] | null;
  /** The key stream, and what the member who follows it can do. */
  members: MemberOptions | null;
  grant: Uint8Array;
  sign: (digest: Uint8Array) => Promise<Uint8Array>;
  renewGrant: (() => Promise<Uint8Array>) | null;
  onEvent: (event: ClientEvent) => void;
}

/** Opens a database; touches no network before `run`. */
export interface Client {
  run(): Promise<void>;
  /** Throws, or rejects, when the spec is not possible. */
  subscribe(spec: SubscriptionSpec | TailSpec | GroupSpec): string | Promise<string>;
  unsubscribe(key: string): void;
  startRecording(key: string, maxBytes: number): void;
  stopRecording(): Promise<Recording | null>;
  /** Subscribes too. */
  hydrate(spec: SubscriptionSpec, generation: ExpectedGeneration): Promise<Hydrated>;
  draftSnapshots(key: string, lastItem: bigint, parts: readonly SnapshotPart[]): Promise<SnapshotDraft>;
  acceptGap(key: string): void;
  read(key: string, afterItem: bigint, maxBytes: number): Promise<Item[]>;
  boundary(key: string): Promise<Boundary | null>;
  /** Resolves when the database holds it. */
  enqueue(record: AppendRecord): Promise<Enqueued>;
  /** Tells a running client to look for what was enqueued. */
  enqueued(): void;
  outbox(after: bigint, maxBytes: number): Promise<OutboxEntry[]>;
  dismiss(entry: bigint): void;
  createLane(lane: NewLane): Promise<LaneMutation>;
  closeLane(lane: string): Promise<LaneMutation>;
  listLanes(after: string | null | undefined, limit: number): Promise<LanePage>;
  /** Resolves once the receipts of the group show what came of it. */
  decide(key: string, lease: string, decision: Decision): Promise<DeliveryState>;
  createGroup(config: NewGroup): Promise<GroupMutation>;
  updateGroup(config: GroupName & GroupSettings): Promise<GroupMutation>;
  deleteGroup(group: GroupName): Promise<GroupMutation>;
  redrive(over: Redrive): Promise<Redriven>;
  addDataKey(generation: bigint, key: Uint8Array): void;
  /** Reads the data keys that were kept, unless this client runs: then it is ahead of them. */
  restoreKeys(): Promise<void>;
  publishKeyBatch(batch: Omit<KeyBatch, "rotationKey"> & { sign: (digest: Uint8Array) => Promise<Uint8Array> }): Promise<Uint8Array>;
  online(isOnline: boolean): void;
  close(): void;
}

export interface ClientFactory {
  open(options: OpenOptions): Promise<Client>;
}
