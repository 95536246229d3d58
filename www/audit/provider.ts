/** Recording from a provider: subscribes as anybody could, and makes an audit file of what is served. */
import { connect, holderKey } from "remuda";
import type { Info } from "../lanes/setup.js";
import { endpoints, hex, unhex } from "../lanes/setup.js";
import { json } from "../shared/source-view.js";

export interface Recorded {
  file: Blob;
  isComplete: boolean;
}

/** Records what `node` serves for so long, or until `signal`. Nothing is kept in this browser. */
export async function recordFrom(node: string, milliseconds: number, signal: AbortSignal): Promise<Recorded> {
  const info = await json<Info>(`${node}/demo/info`);
  const holder = await holderKey("demo");
  const { grant } = await json<{ grant: string }>(`${node}/demo/grant`, { holderKey: hex(holder.publicKey) });
  signal.throwIfAborted();
  const remuda = await connect({
    node,
    context: info.context,
    streamId: info.streamId,
    grant: unhex(grant),
    signer: holder.privateKey,
    storage: "memory",
    database: "remuda-audit",
    allowLoopback: true,
    endpoint: endpoints(info, null),
  });
  try {
    const subscription = remuda.subscribe({ lanes: info.lanes.map(({ id }) => id), verification: "scoped-proofs" });
    const stop = await subscription.record();
    await new Promise<void>((done, failed) => {
      const timer = setTimeout(done, milliseconds);
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        failed(signal.reason);
      });
    });
    const { file, isComplete } = await stop();
    return { file: new Blob([file as Uint8Array<ArrayBuffer>]), isComplete };
  } finally {
    await remuda.close();
  }
}
