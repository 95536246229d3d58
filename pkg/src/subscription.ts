import { RemudaError } from "./error.js";
import { ItemIterator } from "./items.js";
import type { ItemSource } from "./items.js";
import { signDraft } from "./snapshots.js";
import type { ExpectedGeneration, Hydrated, SnapshotDraft, SnapshotGeneration, SnapshotPart, SnapshotSigner } from "./snapshots.js";
import type { Boundary, Item, Recording } from "./types.js";

/** What a subscription asks of its client. */
export interface SubscriptionOwner {
  hydrate(generation: ExpectedGeneration, signal: AbortSignal | undefined): Promise<Hydrated>;
  draftSnapshots(key: string, lastItem: bigint, parts: readonly SnapshotPart[]): Promise<SnapshotDraft>;
  acceptGap(key: string): Promise<void>;
  boundary(key: string): Promise<Boundary | null>;
  startRecording(key: string, maxBytes: number): Promise<null>;
  stopRecording(): Promise<Recording | null>;
}

/** How much a recording holds at most, unless said otherwise. */
const RECORDING_BYTES = 64 * 1024 * 1024;

/** A subscription: iterate it. Iterators are independent of each other; each one holds the subscription open while it lasts. */
export class Subscription implements AsyncIterable<Item> {
  readonly #source: ItemSource;
  readonly #owner: SubscriptionOwner;
  readonly #after: bigint;
  readonly #signal: AbortSignal | undefined;

  /** @internal Use `Remuda.subscribe`. */
  constructor(
    source: ItemSource,
    owner: SubscriptionOwner,
    after: bigint,
    signal: AbortSignal | undefined,
  ) {
    this.#source = source;
    this.#owner = owner;
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
      return await this.#owner.boundary(key);
    } finally {
      this.#source.release(key);
    }
  }

  /**
   * Verifies snapshots by every check of CIP-39 §15, and has the position begin behind them, in one transaction: a `snapshot` item names them, and
   * what follows is complete from there. Hydrate from `contents`, then iterate with `after: lastItem`. To begin a new database with snapshots, call
   * this before anything iterates: what was verified already is never taken back.
   *
   * Throws `RemudaError`, with nothing changed: an `admission/…`, `verify/…` or `decode/…` of the snapshots; `client/snapshot-rollback` when the
   * position is there or further along; `client/hydrating`; a `store/…`; what a read of the chain failed with; and as `createLane`. A database that was
   * to begin with them begins nowhere else by itself: its subscription has failed, and goes on when somebody subscribes or hydrates again.
   */
  hydrate(generation: ExpectedGeneration, options: { signal?: AbortSignal } = {}): Promise<Hydrated> {
    return this.#owner.hydrate(generation, options.signal);
  }

  /**
   * Publishes snapshots of a replica that holds exactly the items through `lastItem`: their manifests are bound to the receipt there, and signed.
   * Keep the replica to what this subscription brings, so that nothing provisional is ever in a snapshot. Store `bytes` first, and promote the
   * generation only once all of it is stored.
   *
   * Throws `RemudaError`: `client/snapshot-place` when no receipt of late ends with `lastItem`, since it is within a batch or too far back;
   * `client/snapshot-scope`; and as `createLane`.
   */
  async publishSnapshots(lastItem: bigint, parts: readonly SnapshotPart[], signer: SnapshotSigner): Promise<SnapshotGeneration> {
    const key = await this.#source.acquire();
    try {
      return await signDraft(await this.#owner.draftSnapshots(key, lastItem, parts), parts, signer);
    } finally {
      this.#source.release(key);
    }
  }

  /**
   * Goes on from the signed floor that this subscription failed behind: a `gap` item says what is missing, and what follows is complete from there.
   * Where a snapshot can be had, `hydrate` instead. Throws `client/no-floor` where there is none, and as `createLane`.
   */
  async acceptGap(): Promise<void> {
    const key = await this.#source.acquire();
    try {
      await this.#owner.acceptGap(key);
    } finally {
      this.#source.release(key);
    }
  }

  /**
   * Records what this subscription is sent from here on, until the function that it resolves to is called: that ends the recording and gives it.
   * The subscription starts again at its durable position. A client makes one recording at a time: a second one takes the place of the
   * first. Throws as `createLane`; the end throws `client/no-recording` when the connection went to another tab meanwhile.
   */
  async record(options: { maxBytes?: number } = {}): Promise<() => Promise<Recording>> {
    const key = await this.#source.acquire();
    try {
      await this.#owner.startRecording(key, options.maxBytes ?? RECORDING_BYTES);
    } catch (thrown) {
      this.#source.release(key);
      throw thrown;
    }
    let isHeld = true;
    return async () => {
      try {
        const recording = await this.#owner.stopRecording();
        if (!recording) throw RemudaError.client("client/no-recording");
        return recording;
      } finally {
        if (isHeld) this.#source.release(key);
        isHeld = false;
      }
    };
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
