/** The functions of `remuda/bps` over a way to load the WebAssembly. */
import type { Cohort, CohortJudgement, PublisherOptions, SubscriberOptions } from "./bps-types.js";
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
   * Makes a file of evidence of two updates, each as it was `signed`; null where they do not contradict each other: an author signs the
   * same words again under another challenge.
   *
   * Throws `RemudaError`: `misuse/argument`; a `bps/…` code where one of them is no update of the owner.
   */
  evidence(of: Cohort & { a: Uint8Array; b: Uint8Array }): Promise<Uint8Array | null>;

  /** Judges a file of evidence that anybody made: its owner and topic are what it is about. */
  checkEvidence(file: Uint8Array): Promise<CohortJudgement>;

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
    evidence: async (of) => (await use((module) => module.bpsEvidence(of))) ?? null,
    checkEvidence: (file) => use((module) => module.checkBpsEvidence(file)),
    chunkAddress: (payload) => use((module) => module.chunkAddress(payload)),
    socAddress: (id, owner) => use((module) => module.socAddress(id, owner)),
    singleOwnerChunk: (id, payload, secretKey) => use((module) => module.singleOwnerChunk(id, payload, secretKey)),
    ownerOf: (secretKey) => use((module) => module.ownerOf(secretKey)),
  };
}
