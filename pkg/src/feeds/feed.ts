import { Source, commonOptions, spawnWorker } from "./source.js";
import type { SourceEvents, Spawn } from "./source.js";
import type { ItemsOptions } from "./types.js";
import type { CursorTooOld, FeedItem, FeedOptions, FeedStanding, FeedStatus, TooOldChoice } from "./watchtower-types.js";

/** The events of a {@link Feed}, by name. */
export interface FeedEvents extends SourceEvents<FeedStatus> {
  /** Messages wait for the content key of this epoch: {@link Feed.giveKey}. */
  "access-required": CustomEvent<{ keyEpoch: bigint }>;
  /** The position is no longer retained: {@link Feed.choose}. */
  "cursor-too-old": CustomEvent<CursorTooOld>;
  /** The publisher signed two messages for one sequence: a file to show to others, null where this database has not both. */
  equivocation: CustomEvent<{ evidence: Uint8Array | null }>;
}

/**
 * A Watchtower feed, pulled, verified and kept by a worker. Made by `openFeed`.
 *
 * An answer that is refused stops the feed: what was verified before it is stored, the position stays, and `retry` asks again.
 */
export class Feed extends Source<FeedStatus, FeedEvents> {
  /** @internal Use `openFeed`. */
  static async open(options: FeedOptions, spawn: Spawn = spawnWorker): Promise<Feed> {
    const { stream, start = "floor", schedule = [], keys = [], filter, mode = "pull", cadence, whenTooOld } = options;
    const feed = new Feed(spawn, null);
    await feed.start("Feed", {
      ...commonOptions(options),
      stream,
      start,
      schedule,
      keys,
      mode,
      ...(filter && { filter: JSON.stringify(filter) }),
      ...(cadence && { cadence: { leastMs: BigInt(Math.round(cadence.leastMs)), mostMs: BigInt(Math.round(cadence.mostMs)) } }),
      ...(whenTooOld && { whenTooOld }),
    });
    return feed;
  }

  /**
   * Verified messages and gaps in order, each stored before it is handed out. Iterators are independent of each other.
   *
   * Iterating ends when the feed is closed. It throws, from `next`: `RemudaError` with the `watchtower/…` or `store/…` code that stopped
   * the feed, after the last stored item; or the reason of `signal`.
   */
  items(options: ItemsOptions = {}): AsyncIterable<FeedItem> {
    return this.iterate<FeedItem>(options);
  }

  /** Stored items after one, about `maxBytes` of them. Throws `RemudaError`: `client/closed`, a `store/…` code. */
  read(after: bigint, maxBytes: number): Promise<FeedItem[]> {
    return this.call("read", after, maxBytes);
  }

  /** Where it durably stands. Throws as {@link read}. */
  standing(): Promise<FeedStanding> {
    return this.call("standing");
  }

  /** Takes the content key of an epoch: what waits for it is stored. Throws `misuse/argument` for a key of another length. */
  giveKey(keyEpoch: bigint, key: Uint8Array): Promise<void> {
    return this.call("giveKey", keyEpoch, key);
  }

  /** Goes on after `cursor-too-old`: with the oldest that is retained, or at the head. What is lost becomes an item. */
  choose(choice: TooOldChoice): Promise<void> {
    return this.call("choose", choice);
  }

  /** Asks again after a failure, from where it stands. */
  retry(): Promise<void> {
    return this.call("retry");
  }

  /** Hands in a message that came some other way, one encoded `StreamMessage`. It counts when it is the next one and verifies. */
  push(message: Uint8Array): Promise<void> {
    return this.call("push", message);
  }
}
