/** `remuda/bps` in Node.js: what needs no worker. */
import { bpsApi } from "./feeds/bps-api.js";
import { load } from "./feeds/load-node.js";

export { RemudaError } from "./error.js";
export type * from "./feeds/bps-types.js";
export type { Publisher, Subscriber } from "./feeds/cohort.js";
export type { SourceEvents } from "./feeds/source.js";
export type * from "./feeds/types.js";

export const { openSubscriber, openPublisher, checkUpdate, evidence, checkEvidence, chunkAddress, socAddress, singleOwnerChunk, ownerOf } =
  bpsApi(load);
