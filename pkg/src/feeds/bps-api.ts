/** The functions of `remuda/bps` over a way to load the WebAssembly. */
import type { Cohort, PublisherOptions, SubscriberOptions } from "./bps-types.js";
import { lazily } from "./call.js";
import { Publisher, Subscriber } from "./cohort.js";
import type { FeedsModule } from "./glue.js";

export interface BpsApi {
  /**
   * Opens a subscriber: its database, and a worker that receives. What is stored can be read at once, offline too.
   *
   * Throws `RemudaError`: `client/no-worker`, `client/no-locks`; `misuse/argument` when an option is malformed; a `store/…` code when the
   * database cannot be opened.
   */
  openSubscriber(options: SubscriberOptions): Promise<Subscriber>;

  /** Opens a publisher. Throws as {@link openSubscriber}. */
  openPublisher(options: PublisherOptions): Promise<Publisher>;

  /** Judges an update as it was stored (`signed`): `null` when the owner signed it for its index, or the code of why not. */
  checkUpdate(claim: Cohort & { update: Uint8Array }): Promise<string | null>;

  /**
   * Judges a pair of updates: `contradiction` where they are of one index and say different things, a `bps/…` code where one of them is
   * no update of the owner, and `null` where both are and get along.
   */
  checkEvidence(claim: Cohort & { pair: Uint8Array }): Promise<string | null>;

  /** The address of the content-addressed chunk of a payload of at most 4,096 bytes. Throws `bps/chunk-length`. */
  chunkAddress(payload: Uint8Array): Promise<string>;

  /** Where an owner's chunk of this identifier is. Throws `misuse/argument`. */
  socAddress(id: string, owner: string): Promise<string>;

  /** The bytes of a single-owner chunk, signed with `secretKey`. Throws `misuse/argument`, `bps/chunk-length`. */
  singleOwnerChunk(id: string, payload: Uint8Array, secretKey: Uint8Array): Promise<Uint8Array>;

  /** The address that a secret key signs as. Throws `misuse/argument`. */
  ownerOf(secretKey: Uint8Array): Promise<string>;
}

export function bpsApi(load: () => Promise<FeedsModule>): BpsApi {
  const use = lazily(load);
  return {
    openSubscriber: (options) => Subscriber.open(options),
    openPublisher: (options) => Publisher.open(options),
    async checkUpdate({ update, ...cohort }) {
      return (await use((module) => module.checkBpsUpdate(cohort, update))) ?? null;
    },
    async checkEvidence({ pair, ...cohort }) {
      return (await use((module) => module.checkBpsEvidence(cohort, pair))) ?? null;
    },
    chunkAddress: (payload) => use((module) => module.chunkAddress(payload)),
    socAddress: (id, owner) => use((module) => module.socAddress(id, owner)),
    singleOwnerChunk: (id, payload, secretKey) => use((module) => module.singleOwnerChunk(id, payload, secretKey)),
    ownerOf: (secretKey) => use((module) => module.ownerOf(secretKey)),
  };
}
