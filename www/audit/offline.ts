/** Keeps the page for when there is no network: a service worker that answers with the files of this build. */
import { chip } from "../shared/source-view.js";

const SCRIPT = "./offline.js";

export async function keepOffline(): Promise<void> {
  if (!("serviceWorker" in navigator)) return chip("offline", "unsupported", "wait", "needs the network");
  try {
    await navigator.serviceWorker.register(SCRIPT, { updateViaCache: "none" });
    await navigator.serviceWorker.ready;
    chip("offline", "ready", "good", "works offline");
  } catch {
    // Served without it, or forbidden: the page works as long as it is open.
    chip("offline", "unsupported", "wait", "needs the network");
  }
}
