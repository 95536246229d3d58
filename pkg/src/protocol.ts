/** The messages between a page and its worker, and between the workers of one database. All are structured clones. */
import type { MemberKey } from "./agreement.js";
import type { ErrorData } from "./error.js";
import type { ClientEvent, Enqueued } from "./glue.js";
import type { ExpectedGeneration, Hydrated, SnapshotDraft, SnapshotPart } from "./snapshots.js";
import type {
  Decision,
  DeliveryEvent,
  DeliveryState,
  GroupMutation,
  GroupName,
  GroupSettings,
  GroupSpec,
  NewGroup,
  Redrive,
  Redriven,
} from "./group-types.js";
import type {
  AppendRecord,
  Boundary,
  DataKey,
  Item,
  KeyBatch,
  LaneMutation,
  LanePage,
  NewLane,
  OutboxEntry,
  Recording,
  Role,
  Status,
  SubscriptionSpec,
  TailSpec,
} from "./types.js";

/** What the worker opens. A signer that is no key stays in the page, as does what renews grants: both are asked by messages. */
export interface WorkerOptions {
  database: string;
  storage: "durable" | "memory";
  context: string;
  streamId: string;
  nodes: string[];
  quorum: number | null;
  endpoints: string[];
  allowLoopback: boolean;
  dataKeys: readonly DataKey[] | null;
  grant: Uint8Array;
  /** The key stream, and the member who follows it. */
  keyStream: { memberKey: MemberKey; grant: Uint8Array; renewsGrant: boolean } | null;
  key: CryptoKey | null;
  renewsGrant: boolean;
}

/** What a worker asks its page for; both are answered with bytes. */
export type PageQuestion = { name: "sign"; digest: Uint8Array } | { name: "renewGrant" } | { name: "renewKeyGrant" };

/** What the owner of the connection asks the provider for, and what it is answered with. Records go through the outbox instead. */
export interface Requests {
  createLane: { argument: NewLane; result: LaneMutation };
  closeLane: { argument: string; result: LaneMutation };
  listLanes: { argument: { after: string | null; limit: number }; result: LanePage };
  publishKeyBatch: { argument: KeyBatch; result: Uint8Array };
  startRecording: { argument: { key: string; maxBytes: number }; result: null };
  stopRecording: { argument: null; result: Recording | null };
  hydrate: { argument: { spec: SubscriptionSpec; generation: ExpectedGeneration }; result: Hydrated };
  draftSnapshots: { argument: { key: string; lastItem: bigint; parts: readonly SnapshotPart[] }; result: SnapshotDraft };
  acceptGap: { argument: string; result: null };
  decide: { argument: { key: string; lease: string; decision: Decision }; result: DeliveryState };
  createGroup: { argument: NewGroup; result: GroupMutation };
  updateGroup: { argument: GroupName & GroupSettings; result: GroupMutation };
  deleteGroup: { argument: GroupName; result: GroupMutation };
  redrive: { argument: Redrive; result: Redriven };
}

/** What is received: verified and kept, painted, or leased. */
export type AnySpec = SubscriptionSpec | TailSpec | GroupSpec;

export type RequestName = keyof Requests;
export type Request = { [Name in RequestName]: { name: Name; argument: Requests[Name]["argument"] } }[RequestName];
export type RequestResult = Requests[RequestName]["result"];

/** What a page asks of its worker, and what it is answered with. */
export interface Calls {
  open: { arguments: { options: WorkerOptions }; result: { role: Role } };
  subscribe: { arguments: { spec: AnySpec }; result: string };
  unsubscribe: { arguments: { key: string }; result: null };
  read: { arguments: { key: string; after: bigint; maxBytes: number }; result: Item[] };
  boundary: { arguments: { key: string }; result: Boundary | null };
  append: { arguments: { record: AppendRecord }; result: Enqueued };
  /** Tells what becomes of these entries, also of what became of them before. */
  watch: { arguments: { entries: bigint[] }; result: null };
  outbox: { arguments: { after: bigint; maxBytes: number }; result: OutboxEntry[] };
  dismiss: { arguments: { entry: bigint }; result: null };
  request: { arguments: { request: Request }; result: RequestResult };
  addDataKey: { arguments: { dataKey: DataKey }; result: null };
  close: { arguments: Record<never, never>; result: null };
}

export type CallName = keyof Calls;
export type Call = { [Name in CallName]: { type: "call"; id: number; name: Name } & Calls[Name]["arguments"] }[CallName];

/** Page to worker. */
export type ToWorker =
  | Call
  | { type: "online"; isOnline: boolean }
  | { type: "told"; id: number; answer: Uint8Array }
  | { type: "untold"; id: number; error: ErrorData };

/** Worker to page. After `broken` the worker does nothing more, and wants to be replaced. */
export type FromWorker =
  | { type: "result"; id: number; value: Calls[CallName]["result"] }
  | { type: "error"; id: number; error: ErrorData }
  | { type: "ask"; id: number; question: PageQuestion }
  | { type: "role"; role: Role }
  | { type: "event"; event: ClientEvent }
  /** What became of this entry is no longer kept. */
  | { type: "forgotten"; entry: bigint }
  | { type: "broken"; error: ErrorData };

/**
 * Between the workers of one database and stream, over a BroadcastChannel. `from` is a tab.
 *
 * A message may be lost, so nothing depends on one: rows and what became of appends are found by polling, subscriptions are sent again to every
 * new owner, and a request that no owner took over within its time is given back to its caller.
 */
export type BetweenTabs =
  /** A tab is there; the owner answers with its status. */
  | { type: "hello"; from: string }
  /** A tab became the owner: others send again what the last one did not take. */
  | { type: "owner"; from: string }
  | { type: "event"; from: string; event: ClientEvent }
  /** A record that was leased to us is for this tab. */
  | { type: "delivery"; to: string; event: DeliveryEvent }
  | { type: "subscribe"; from: string; key: string; spec: AnySpec }
  | { type: "unsubscribe"; from: string; key: string }
  | { type: "request"; from: string; id: number; request: Request }
  /** The owner has taken a request: from here on its outcome may be unknown. */
  | { type: "taken"; to: string; id: number }
  | { type: "answered"; to: string; id: number; result: RequestResult }
  /** A tab was given a data key: what it opens can be read in every tab. */
  | { type: "dataKey"; from: string; dataKey: DataKey }
  /** The owner has kept more data keys: they are read from where it kept them, and are in no message. */
  | { type: "keysKept"; from: string }
  | { type: "refused"; to: string; id: number; error: ErrorData }
  /** A tab has put more into the outbox: the owner reads it there. */
  | { type: "enqueued"; from: string }
  /** A failed append was seen. */
  | { type: "dismiss"; from: string; entry: bigint }
  | { type: "bye"; from: string };

/** What is known before a worker has said anything. */
export const UNKNOWN: Status = {
  connection: "idle",
  retryAtMs: null,
  transport: null,
  storage: "ready",
  subscriptions: [],
  outbox: { queued: 0, sent: 0, provisional: 0, failed: 0 },
};

/** The name of the lock of the connection, and of the channel. */
export function lockName(database: string, streamId: string): string {
  return `remuda:${database}:${streamId}`;
}

/** The name of the lock that a tab holds for as long as it lives: whoever gets it knows that the tab is gone. */
export function tabLockName(database: string, streamId: string, tab: string): string {
  return `${lockName(database, streamId)}:tab:${tab}`;
}
