import type { CohortStanding, PublisherOptions, PublisherStatus, SubscriberOptions, SubscriberStatus, Update } from "./bps-types.js";
import { Source, commonOptions, spawnWorker } from "./source.js";
import type { SourceEvents, Spawn } from "./source.js";
import type { CommonStatus, ItemsOptions } from "./types.js";

class CohortSource<Status extends CommonStatus> extends Source<Status, SourceEvents<Status>> {
  /** Where it durably stands. Throws `RemudaError`: `client/closed`, a `store/…` code. */
  standing(): Promise<CohortStanding> {
    return this.call("standing");
  }
}

/**
 * The updates of a cohort, received, verified and kept by a worker. Made by `openSubscriber`. It connects again by itself, except when
 * its broker broke a rule or refused it: then it stays `failed`.
 */
export class Subscriber extends CohortSource<SubscriberStatus> {
  /** @internal Use `openSubscriber`. */
  static async open(options: SubscriberOptions, spawn: Spawn = spawnWorker): Promise<Subscriber> {
    const { topic, owner, broker, identity, cursor } = options;
    const subscriber = new Subscriber(spawn, null);
    await subscriber.start("Subscriber", { ...commonOptions(options), topic, owner, broker, identity, cursor });
    return subscriber;
  }

  /**
   * Verified updates in order, each stored with the cursor before it is handed out, gaps reported with the update behind them.
   *
   * Iterating ends when the subscriber is closed. It throws, from `next`: `RemudaError` with the code that stopped it, after the last
   * stored update; or the reason of `signal`.
   */
  updates(options: ItemsOptions = {}): AsyncIterable<Update> {
    return this.iterate<Update>(options);
  }

  /** Stored updates after an item, about `maxBytes` of them. Throws `RemudaError`: `client/closed`, a `store/…` code. */
  read(after: bigint, maxBytes: number): Promise<Update[]> {
    return this.call("read", after, maxBytes);
  }
}

/**
 * The author's side of a cohort, run by a worker. Made by `openPublisher`. An index is durable as used before its frame is sent, so none
 * is sent twice, whatever ends the page; publish from one database only.
 */
export class Publisher extends CohortSource<PublisherStatus> {
  /** @internal Use `openPublisher`. */
  static async open(options: PublisherOptions, spawn: Spawn = spawnWorker): Promise<Publisher> {
    const { topic, broker, key, nextIndex } = options;
    const signer = key instanceof Uint8Array ? null : key.signer;
    const publisher = new Publisher(spawn, signer);
    const named = key instanceof Uint8Array ? { secretKey: key } : { owner: key.owner };
    await publisher.start("Publisher", { ...commonOptions(options), topic, broker, nextIndex, ...named });
    return publisher;
  }

  /** The address that it signs as. */
  get owner(): string {
    return this.signsAs ?? "";
  }

  /**
   * Publishes an update of at most 4,096 bytes; resolves with its index once it is sent. Nothing tells whether it arrived. In a tab that
   * is a `follower` it waits until it is the owner.
   *
   * Throws `RemudaError`: a `publish/…` code when it is not taken, `close/requested` or `client/closed` when this ends before, a `store/…`
   * code when its index cannot be made durable.
   */
  publish(payload: Uint8Array): Promise<bigint> {
    return this.call("publish", payload);
  }
}
