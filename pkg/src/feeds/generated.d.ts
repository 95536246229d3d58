/** Stands in for the glue where `cargo xtask wasm` has not made it yet: a file that exists is preferred to a pattern. */
declare module "*/generated/feeds/remuda_feeds.js" {
  import type { FeedsModule } from "./glue.js";

  export default function init(options: { module_or_path: URL | Response | BufferSource }): Promise<unknown>;
  export const Feed: FeedsModule["Feed"];
  export const Subscriber: FeedsModule["Subscriber"];
  export const Publisher: FeedsModule["Publisher"];
  export const FeedPublisher: FeedsModule["FeedPublisher"];
  export const watchtowerEvidence: FeedsModule["watchtowerEvidence"];
  export const bpsEvidence: FeedsModule["bpsEvidence"];
  export const checkWatchtowerEvidence: FeedsModule["checkWatchtowerEvidence"];
  export const checkBpsEvidence: FeedsModule["checkBpsEvidence"];
  export const checkBpsUpdate: FeedsModule["checkBpsUpdate"];
  export const deriveContentKey: FeedsModule["deriveContentKey"];
  export const contentKeyIdentity: FeedsModule["contentKeyIdentity"];
  export const wrappedDekAad: FeedsModule["wrappedDekAad"];
  export const chunkAddress: FeedsModule["chunkAddress"];
  export const socAddress: FeedsModule["socAddress"];
  export const singleOwnerChunk: FeedsModule["singleOwnerChunk"];
  export const ownerOf: FeedsModule["ownerOf"];
}

declare module "*/generated/recovery/remuda_recovery.js" {
  import type { RecoveryModule } from "./recovery-api.js";

  export default function init(options: { module_or_path: URL | Response | BufferSource }): Promise<unknown>;
  export const unwrapContentKey: RecoveryModule["unwrapContentKey"];
}
