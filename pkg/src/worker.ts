/// <reference path="./generated.d.ts" />
/** The dedicated worker: its globals, given to {@link Host}. */
import init, { Client, x25519, x25519PublicKey } from "../generated/client/remuda_client.js";
import { agree } from "./agreement.js";
import type { ClientFactory } from "./glue.js";
import type { Channel } from "./host.js";
import { Host } from "./host.js";
import { openVault } from "./member-vault.js";
import type { FromWorker, ToWorker } from "./protocol.js";

const scope = self as unknown as {
  postMessage(message: FromWorker): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
};

const host = new Host({
  async load() {
    await init({ module_or_path: new URL("../generated/client/remuda_client_bg.wasm", import.meta.url) });
    return Client as unknown as ClientFactory;
  },
  locks: navigator.locks,
  channel: (name) => new BroadcastChannel(name) as Channel,
  post: (message) => scope.postMessage(message),
  sign: async (key, digest) => new Uint8Array(await crypto.subtle.sign("Ed25519", key, new Uint8Array(digest))),
  agree: (key, publicKey) => agree(key, publicKey, async () => ({ x25519, x25519PublicKey })),
  vault: openVault,
  tab: crypto.randomUUID(),
});

// Code that panics inside a task of its own rejects no promise of ours: it comes here.
self.addEventListener("error", (event) => {
  host.uncaught(event.error ?? event.message);
  event.preventDefault();
});
self.addEventListener("unhandledrejection", (event) => {
  host.uncaught(event.reason);
  event.preventDefault();
});
scope.onmessage = ({ data }) => host.receive(data);
