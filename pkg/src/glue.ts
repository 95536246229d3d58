/** The shape of the generated WebAssembly client, `generated/client/remuda_client.js`. Only the worker uses it. */
import type {
  AppendRecord,
  AppendResult,
  BatchEvent,
  Boundary,
  DataKey,
  FailureEvent,
  Item,
  LaneMutation,
  LanePage,
  NewLane,
  ReceiptsEvent,
  Status,
  SubscriptionSpec,
  TransitionEvent,
} from "./types.js";

/** New rows are durable. */
export interface CommittedEvent {
  type: "committed";
  key: string;
  lastItem: bigint;
}

export type ClientEvent = { type: "status"; status: Status } | CommittedEvent | BatchEvent | ReceiptsEvent | TransitionEvent | FailureEvent;

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
  grant: Uint8Array;
  sign: (digest: Uint8Array) => Promise<Uint8Array>;
  renewGrant: (() => Promise<Uint8Array>) | null;
  onEvent: (event: ClientEvent) => void;
}

/** Opens a database; touches no network before `run`. */
export interface Client {
  run(): Promise<void>;
  /** Throws, or rejects, when the spec is not possible. */
  subscribe(spec: SubscriptionSpec): string | Promise<string>;
  unsubscribe(key: string): void;
  read(key: string, afterItem: bigint, maxBytes: number): Promise<Item[]>;
  boundary(key: string): Promise<Boundary | null>;
  append(record: AppendRecord): Promise<AppendResult>;
  createLane(lane: NewLane): Promise<LaneMutation>;
  closeLane(lane: string): Promise<LaneMutation>;
  listLanes(after: string | null | undefined, limit: number): Promise<LanePage>;
  addDataKey(generation: bigint, key: Uint8Array): void;
  online(isOnline: boolean): void;
  close(): void;
}

export interface ClientFactory {
  open(options: OpenOptions): Promise<Client>;
}
