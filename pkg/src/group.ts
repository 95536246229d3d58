import { PushIterator } from "./pushed.js";
import { RemudaError } from "./error.js";
import type { Decision, DeliveryState, DeliveryStateEvent, LeasedRecord } from "./group-types.js";

/** The reason by which what does not open under its key is rejected: `keccak256("remuda/reject/undecryptable/v1")`. */
export const UNDECRYPTABLE = "3e32af291e2542d406bdf4104c4fc8ddb8b99b9a8de8e3a92756c7d532065a07";

const leaseOver = () => new RemudaError({ code: "group/lease-over", remedy: "surface", meaning: "This lease is over.", rule: "CIP-39 §11.2" });

/** A rejection without a reason. */
const UNSPECIFIED = "0".repeat(64);

/**
 * A verified record under a lease. It is given again, here or to another consumer, until one acknowledges it: so acknowledge it after your own work
 * is durable, and make that work such that doing it twice does no harm.
 *
 * `ack`, `nack`, `extend` and `reject` resolve once the verified receipts of the group show what came of them, over any number of connections.
 * One decision at a time: `extend` can be followed by another. They throw `RemudaError`:
 * - `group/lease-over`: the lease ran out, or its record is settled already; it was not done;
 * - `group/decision-outstanding`: another decision of this lease is on its way;
 * - a `provider/…` code that it was refused with, and had no effect;
 * - `client/owner-unreachable` (not sent), `command/outcome-unknown`, `client/owner-lost` or `client/trap` (outcome unknown: if it was not done the
 *   record is given again), `client/invalid-argument`, `client/closed`.
 */
export class Delivery {
  /** The record, and its lease as it was given. */
  readonly record: LeasedRecord;
  readonly #decide: (decision: Decision) => Promise<DeliveryState>;
  readonly #over = new AbortController();
  #leaseExpiresAtMs: bigint;

  /** @internal */
  constructor(record: LeasedRecord, decide: (decision: Decision) => Promise<DeliveryState>) {
    this.record = record;
    this.#decide = decide;
    this.#leaseExpiresAtMs = record.leaseExpiresAtMs;
  }

  /** Until when the lease lasts, by the provider's clock, as last told. */
  get leaseExpiresAtMs(): bigint {
    return this.#leaseExpiresAtMs;
  }

  /** Aborted once the lease is over: settled, run out, or gone with its group. The reason is a `RemudaError` with `group/lease-over`. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** It is done. */
  ack(): Promise<DeliveryState> {
    return this.#decide({ action: "ack" });
  }

  /** Not now: it is given again, not before `retryAfterMs` from now, as far as the group allows; after its last attempt it is a dead letter. */
  nack(retryAfterMs = 0n): Promise<DeliveryState> {
    return this.#decide({ action: "nack", retryAfterMs });
  }

  /** It takes longer: the lease lasts `extendByMs` from now, as far as the group allows. */
  extend(extendByMs: bigint): Promise<DeliveryState> {
    return this.#decide({ action: "extend", extendByMs });
  }

  /** Never: it is a dead letter. `reason` is a hash that means something to you, 64 hex digits. */
  reject(reason: string = UNSPECIFIED): Promise<DeliveryState> {
    return this.#decide({ action: "reject", reason });
  }

  /** @internal */
  told(state: DeliveryState): void {
    if (state.action === "extend") this.#leaseExpiresAtMs = state.leaseExpiresAtMs ?? this.#leaseExpiresAtMs;
    else this.end();
  }

  /** @internal */
  end(): void {
    if (!this.signal.aborted) this.#over.abort(leaseOver());
  }
}

/**
 * The deliveries of a group, from the first `next` on. Iterators over one group, of all tabs, share its deliveries: each goes to one of them. What is
 * leased and waits here when its consumer leaves is given back. Settle what you took before you leave, or ask for more once the signal is
 * aborted: by the signal alone it does not end before that is settled, or its lease is over.
 */
export class GroupIterator extends PushIterator<Delivery> {
  readonly #taken = new Set<Delivery>();

  protected override taken(delivery: Delivery): Delivery {
    const { signal } = delivery;
    if (signal.aborted) return delivery;
    this.#taken.add(delivery);
    signal.addEventListener("abort", () => {
      this.#taken.delete(delivery);
      this.checkSignal();
    });
    return delivery;
  }

  protected override isBusy(): boolean {
    return this.#taken.size > 0;
  }

  protected override left(deliveries: Delivery[]): void {
    for (const delivery of deliveries) delivery.nack().catch(() => undefined);
  }
}

/** The consumers of this page, by the key of their group. */
export class Groups {
  readonly #consumers = new Map<string, Set<(delivery: Delivery) => void>>();
  /** Deliveries whose lease is not over, by lease. */
  readonly #open = new Map<string, { key: string; delivery: Delivery }>();

  /** Adds a consumer; call what it returns to take it out. */
  add(key: string, consumer: (delivery: Delivery) => void): () => void {
    const consumers = this.#consumers.get(key) ?? new Set();
    this.#consumers.set(key, consumers.add(consumer));
    return () => {
      if (consumers.delete(consumer) && consumers.size === 0) this.#consumers.delete(key);
    };
  }

  /** Hands a delivery to the consumer whose turn it is; gives it back when all have left. */
  hand(key: string, delivery: Delivery): void {
    const consumers = this.#consumers.get(key);
    const [consumer] = consumers ?? [];
    if (!consumers || !consumer) {
      delivery.nack().catch(() => undefined);
      return;
    }
    this.#open.set(delivery.record.lease, { key, delivery });
    consumers.delete(consumer);
    consumers.add(consumer);
    consumer(delivery);
  }

  told({ lease, ...state }: DeliveryStateEvent): void {
    const open = lease === null ? undefined : this.#open.get(lease);
    open?.delivery.told({ lease, ...state });
    if (open?.delivery.signal.aborted) this.#open.delete(lease!);
  }

  /** Every lease of a group is over, or of all. */
  end(key?: string): void {
    for (const [lease, open] of [...this.#open]) {
      if (key !== undefined && key !== open.key) continue;
      this.#open.delete(lease);
      open.delivery.end();
    }
  }
}

