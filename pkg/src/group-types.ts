/** What an application sees of consumer groups (CIP-39 §11.2). */
import type { RecordFields } from "./types.js";

/** A group of the stream: its lane, and its own name in it, random when it was created. */
export interface GroupName {
  lane: string;
  group: string;
}

/** What can change of a group. */
export interface GroupSettings {
  /** `strict-fifo` hands out only the first record that is not over; `concurrent` up to `maxInFlight` of them. */
  mode: "strict-fifo" | "concurrent";
  /** How long a lease lasts. */
  visibilityTimeoutMs: bigint;
  /** How long it can be made to last, and how long a record can be given back for. */
  maxVisibilityMs: bigint;
  /** Leases at a time, of all consumers. */
  maxInFlight: number;
  /** After so many leases without `ack` a record is a dead letter. */
  maxAttempts: number;
  /** After this long in the group a record has expired. */
  recordDeadlineMs: bigint;
  /** How long a dead letter can be brought back. */
  deadLetterTtlMs: bigint;
  /** Until when the group keeps its records from being pruned; 0 for not at all. */
  retentionPinUntilMs: bigint;
}

export interface NewGroup extends GroupName, GroupSettings {
  /** The sequence of the first record; absent or null for those that come from now on. It never changes. */
  start?: bigint | null;
}

/** A group as it is since a mutation, null once it is deleted, and the digest of the receipt. */
export interface GroupMutation {
  config: NewGroup | null;
  receipt: string;
}

/** A record that is to be brought back: its sequence, and the delivery cycle that is over. */
export interface Redrive extends GroupName {
  sequence: bigint;
  cycle: string;
}

/** What a consumer says of a lease. */
export type Decision =
  | { action: "ack" }
  | { action: "nack"; retryAfterMs: bigint }
  | { action: "extend"; extendByMs: bigint }
  | { action: "reject"; reason: string };

/** What became of a record, as the verified receipts of its group say. */
export interface DeliveryState {
  action: "ack" | "nack" | "extend" | "reject" | "redrive" | "lease-issue" | "lease-expire" | "attempts-exhaust" | "record-expire";
  /** The lease that it was about. */
  lease: string | null;
  /** The delivery cycle: a record that is brought back begins another. */
  cycle: string;
  sequence: bigint;
  attempt: number;
  /** When it is given again at the earliest. */
  availableAtMs: bigint | null;
  leaseExpiresAtMs: bigint | null;
  /** When its cycle was over. */
  terminalAtMs: bigint | null;
  /** Of a dead letter, until when it can be brought back. */
  deadUntilMs: bigint | null;
  /** Why it was rejected: the application's hash. */
  reason: string | null;
  /** The cycle that it was brought back as. */
  successor: string | null;
}

/** A state, and the digest of its receipt. */
export interface Redriven extends DeliveryState {
  receipt: string;
}

/** A verified record under a lease of ours. Times are by the provider's clock. */
export interface LeasedRecord extends Omit<RecordFields, "item"> {
  lease: string;
  cycle: string;
  sequence: bigint;
  /** From 1 on. */
  attempt: number;
  leaseExpiresAtMs: bigint;
}

/** A record was leased to us; it is handed to one consumer. */
export interface DeliveryEvent extends LeasedRecord {
  type: "delivery";
  key: string;
}

/**
 * A leased record cannot be read, so it was not handed out: `nack` gives it back for want of its key, `reject` makes a dead letter of what does
 * not open under its key, by the reason {@link UNDECRYPTABLE}.
 */
export interface UndecryptableEvent extends LeasedRecord {
  type: "undecryptable";
  key: string;
  decided: "nack" | "reject";
}

/** What became of a lease of ours, or of any record of the group that died, expired or was brought back. */
export interface DeliveryStateEvent extends DeliveryState {
  type: "delivery-state";
  key: string;
}

/** A group was created or changed; null: it was deleted, and every lease is over. */
export interface GroupEvent {
  type: "group";
  key: string;
  config: NewGroup | null;
}

/** What one subscribes to. */
export interface GroupSpec extends GroupName {
  verification: "group";
}
