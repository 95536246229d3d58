/// <reference path="./generated.d.ts" />
/** The dedicated worker of one source: its globals, given to {@link FeedHost}. */
import init, * as glue from "../../generated/feeds/remuda_feeds.js";
import type { FeedsModule } from "./glue.js";
import { FeedHost } from "./host.js";
import type { FromFeedWorker, ToFeedWorker } from "./protocol.js";

const scope = self as unknown as {
  postMessage(message: FromFeedWorker): void;
  onmessage: ((event: MessageEvent<ToFeedWorker>) => void) | null;
};

const host = new FeedHost({
  async load() {
    await init({ module_or_path: new URL("../../generated/feeds/remuda_feeds_bg.wasm", import.meta.url) });
    return glue as unknown as FeedsModule;
  },
  locks: navigator.locks,
  post: (message) => scope.postMessage(message),
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
