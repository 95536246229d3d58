/** Receives a CBQS stream, verifies it in WebAssembly, and keeps it durably in the browser with its position. */
import { RemudaError } from "./error.js";
import type { WorkerLike } from "./remuda.js";
import { Remuda } from "./remuda.js";
import type { ConnectOptions } from "./types.js";

export { RemudaError } from "./error.js";
export type { ClientCode } from "./error.js";
export { generateHolderKey, holderKey } from "./holder-key.js";
export type { HolderKey } from "./holder-key.js";
export { generateMemberKey, memberKey } from "./member-key.js";
export type { MemberKey, WrappedMemberKey } from "./agreement.js";
export { Remuda } from "./remuda.js";
export { Subscription } from "./subscription.js";
export { AppendTicket } from "./ticket.js";
export type { RemudaEvents, SubscribeOptions } from "./remuda.js";
export type {
  ExpectedGeneration,
  Hydrated,
  Place,
  Snapshot,
  SnapshotGeneration,
  SnapshotPart,
  SnapshotSigner,
} from "./snapshots.js";
export { TailIterator } from "./tail.js";
export { Delivery, GroupIterator, UNDECRYPTABLE } from "./group.js";
export type * from "./group-types.js";
export type * from "./types.js";

/**
 * Starts the worker and opens the database. The network is not waited for: what is stored can be read at once, offline too.
 *
 * Throws `RemudaError`:
 * - `client/no-worker` when the worker or its WebAssembly does not load, `client/no-locks` outside of secure contexts;
 * - `client/invalid-argument` when an option is malformed, `endpoint/…` when an endpoint is not admitted;
 * - a `store/…` code when the database cannot be opened, a `decode/…` code when context or grant are not canonical bytes.
 */
export async function connect(options: ConnectOptions): Promise<Remuda> {
  if (!/^[0-9a-f]{64}$/.test(options.streamId)) {
    throw RemudaError.client("client/invalid-argument", "streamId: 64 lower-case hex digits");
  }
  const endpoints = options.endpoint === undefined ? [] : [options.endpoint].flat();
  if (endpoints.length > 0 && !options.allowLoopback) {
    throw RemudaError.client("client/invalid-argument", "endpoint needs allowLoopback");
  }
  const { keyStream } = options;
  if (typeof Worker === "undefined") throw RemudaError.client("client/no-worker");
  if (!globalThis.navigator?.locks) throw RemudaError.client("client/no-locks");

  const remuda = new Remuda(
    () => new Worker(new URL("./worker.js", import.meta.url), { type: "module" }) as WorkerLike,
    {
      database: options.database ?? "remuda",
      storage: options.storage ?? "durable",
      context: options.context,
      streamId: options.streamId,
      nodes: [options.node].flat().map(String),
      quorum: options.quorum ?? null,
      endpoints: endpoints.map(String),
      allowLoopback: options.allowLoopback ?? false,
      dataKeys: options.dataKeys ?? null,
      grant: options.grant,
      keyStream: keyStream
        ? { memberKey: keyStream.memberKey, grant: keyStream.grant, renewsGrant: keyStream.renewGrant !== undefined }
        : null,
    },
    options.signer,
    options.renewGrant ?? null,
    keyStream?.renewGrant ?? null,
  );
  await remuda.open();
  const online = () => remuda.online(true);
  const offline = () => remuda.online(false);
  globalThis.addEventListener?.("online", online);
  globalThis.addEventListener?.("offline", offline);
  remuda.addEventListener("status", ({ detail }) => {
    if (detail.connection !== "closed") return;
    globalThis.removeEventListener?.("online", online);
    globalThis.removeEventListener?.("offline", offline);
  });
  return remuda;
}
