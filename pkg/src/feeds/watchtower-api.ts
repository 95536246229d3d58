/** The functions of `remuda/watchtower` over a way to load the WebAssembly. */
import { lazily } from "./call.js";
import type { Use } from "./call.js";
import { Feed } from "./feed.js";
import type { FeedsModule, WasmFeedPublisher } from "./glue.js";
import type {
  ContentKeyIdentity,
  Draft,
  FeedJudgement,
  FeedOptions,
  FeedPublisherOptions,
  KeyEntry,
  MessageSigner,
  Published,
  Stream,
  WrappedDekAad,
} from "./watchtower-types.js";

/** Composes, seals and signs the messages of one stream. Whoever has it submits them. */
export class FeedPublisher {
  readonly #use: Use;
  readonly #wasm: WasmFeedPublisher;
  #signer: MessageSigner;
  #turn: Promise<unknown> = Promise.resolve();

  /** @internal Use `feedPublisher`. */
  constructor(use: Use, wasm: WasmFeedPublisher, signer: MessageSigner) {
    this.#use = use;
    this.#wasm = wasm;
    this.#signer = signer;
  }

  /**
   * Signs a message for the next sequence; calls that overlap are done one after the other. A sequence is taken once its message is
   * signed: keep what this answers before you submit it, for signing another message for its sequence is equivocation.
   *
   * Throws `RemudaError`: `misuse/argument`, `watchtower/payload-too-large`, `watchtower/signature` when the signer has another key, or
   * what the signer throws.
   */
  publish(draft: Draft): Promise<Published> {
    return this.#inOrder(() => this.#wasm.publish(draft, (bytes) => sign(this.#signer, bytes)));
  }

  /** Signs with another key from the next message on. Throws `watchtower/key-schedule` for what is no key. */
  rotate(signingKeyId: bigint, publicKey: string, signer: MessageSigner): Promise<void> {
    return this.#inOrder(async () => {
      this.#wasm.rotate(signingKeyId, publicKey);
      this.#signer = signer;
    });
  }

  #inOrder<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(() => this.#use(task));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }
}

async function sign(signer: MessageSigner, bytes: Uint8Array): Promise<Uint8Array> {
  if (typeof signer === "function") return signer(bytes);
  return new Uint8Array(await crypto.subtle.sign("Ed25519", signer, new Uint8Array(bytes)));
}

export interface WatchtowerApi {
  /**
   * Opens a feed: its database, and a worker that follows it. What is stored can be read at once, offline too.
   *
   * Throws `RemudaError`: `client/no-worker`, `client/no-locks`; `misuse/argument` when an option is malformed; `watchtower/filter` for a
   * filter that is none; a `store/…` code when the database cannot be opened.
   */
  openFeed(options: FeedOptions): Promise<Feed>;

  /** Begins to publish behind `headSequence`. Throws `misuse/argument`, `watchtower/key-schedule` for what is no key. */
  feedPublisher(options: FeedPublisherOptions): Promise<FeedPublisher>;

  /**
   * Makes a file of evidence of two messages, each as it was `signed`; null where they do not contradict each other.
   *
   * Throws `RemudaError`: `misuse/argument`; a `watchtower/…` code where one of them is not signed under the schedule.
   */
  evidence(of: { stream: Stream; schedule: readonly KeyEntry[]; a: Uint8Array; b: Uint8Array }): Promise<Uint8Array | null>;

  /**
   * Judges a file of evidence that anybody made. Give the schedule that you trust: without one the file's own is taken, which only says
   * that whoever has those keys contradicted themselves.
   */
  checkEvidence(file: Uint8Array, trusted?: { schedule?: readonly KeyEntry[] }): Promise<FeedJudgement>;

  /** `derive_content_key`: the content key of an epoch, from the publisher's stream secret. */
  deriveContentKey(of: { streamSecret: Uint8Array; chainId: bigint; stream: Stream; keyEpoch: bigint }): Promise<Uint8Array>;

  /** `content_key_identity_bytes`: what is hashed to the curve. */
  contentKeyIdentity(identity: ContentKeyIdentity): Promise<Uint8Array>;

  /** `base_wrapped_dek_aad`: what a wrapped content key is bound to. */
  wrappedDekAad(of: WrappedDekAad): Promise<Uint8Array>;
}

export function watchtowerApi(load: () => Promise<FeedsModule>): WatchtowerApi {
  const use = lazily(load);
  return {
    openFeed: (options) => Feed.open(options),
    feedPublisher: ({ signer, ...options }) => use((module) => new FeedPublisher(use, new module.FeedPublisher(options), signer)),
    evidence: async (of) => (await use((module) => module.watchtowerEvidence(of))) ?? null,
    checkEvidence: (file, trusted = {}) => use((module) => module.checkWatchtowerEvidence(trusted, file)),
    deriveContentKey: (of) => use((module) => module.deriveContentKey(of)),
    contentKeyIdentity: (identity) => use((module) => module.contentKeyIdentity(identity)),
    wrappedDekAad: (of) => use((module) => module.wrappedDekAad(of)),
  };
}
