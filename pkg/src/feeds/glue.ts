/** The shape of the generated WebAssembly of feeds and broadcasts, `generated/feeds/remuda_feeds.js`. */
import type { CohortJudgement, PublisherStatus, SubscriberStatus, Update } from "./bps-types.js";
import type { SourceStanding } from "./types.js";
import type { CursorTooOld, Draft, FeedItem, FeedJudgement, FeedStatus, KeyEntry, Published } from "./watchtower-types.js";
import type { Failure } from "../types.js";

/** New items are durable. */
export interface StoredEvent {
  type: "stored";
  lastItem: bigint;
}

export type SourceStatus = FeedStatus | SubscriberStatus | PublisherStatus;
export type SourceItem = FeedItem | Update;

export type SourceEvent =
  | { type: "status"; status: SourceStatus }
  | StoredEvent
  | { type: "failure"; failure: Failure }
  | { type: "access-required"; keyEpoch: bigint }
  | ({ type: "cursor-too-old" } & CursorTooOld)
  | { type: "equivocation"; evidence: Uint8Array | null };

/** What every source can; whatever else a kind can is called by its name. */
export interface WasmSource {
  readonly key: string;
  run(): Promise<void>;
  status(): SourceStatus;
  standing(): Promise<SourceStanding>;
  close(): void;
}

export interface SourceFactory {
  /** Opens a database; touches no network before `run`. */
  open(options: unknown): Promise<WasmSource>;
}

export interface WasmFeedPublisher {
  publish(draft: Draft, sign: (bytes: Uint8Array) => Promise<Uint8Array>): Promise<Published>;
  rotate(signingKeyId: bigint, publicKey: string): void;
  free(): void;
}

export interface FeedsModule {
  Feed: SourceFactory;
  Subscriber: SourceFactory;
  Publisher: SourceFactory;
  FeedPublisher: new (options: object) => WasmFeedPublisher;
  watchtowerEvidence(options: object): Uint8Array | undefined;
  checkWatchtowerEvidence(options: { schedule?: readonly KeyEntry[] }, file: Uint8Array): FeedJudgement;
  bpsEvidence(options: object): Uint8Array | undefined;
  checkBpsEvidence(file: Uint8Array): CohortJudgement;
  checkBpsUpdate(options: { topic: string; owner: string }, broadcast: Uint8Array): string | undefined;
  deriveContentKey(options: object): Uint8Array;
  contentKeyIdentity(options: object): Uint8Array;
  wrappedDekAad(options: object): Uint8Array;
  chunkAddress(payload: Uint8Array): string;
  socAddress(id: string, owner: string): string;
  singleOwnerChunk(id: string, payload: Uint8Array, secretKey: Uint8Array): Uint8Array;
  ownerOf(secretKey: Uint8Array): string;
}
