/** `remuda/watchtower` in browsers. */
import { load } from "./feeds/load.js";
import { watchtowerApi } from "./feeds/watchtower-api.js";

export { RemudaError } from "./error.js";
export type { Feed, FeedEvents } from "./feeds/feed.js";
export type { SourceEvents } from "./feeds/source.js";
export type * from "./feeds/types.js";
export type { FeedPublisher } from "./feeds/watchtower-api.js";
export type * from "./feeds/watchtower-types.js";

export const { openFeed, feedPublisher, evidence, checkEvidence, deriveContentKey, contentKeyIdentity, wrappedDekAad } = watchtowerApi(load);
