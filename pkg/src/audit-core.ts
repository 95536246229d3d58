/** An audit over any source, in chunks: what browsers and Node.js share. */
import type { Verifier } from "./audit-glue.js";
import type { AuditOptions, AuditProgress, AuditReport } from "./audit-types.js";
import { RemudaError } from "./error.js";

/** Bytes at a time: large enough to cost nothing, small enough to stop soon. */
const CHUNK_BYTES = 1 << 20;
/** How long a page may be kept from its own work. */
const MAX_BUSY_MS = 40;

/** Gives the page its turn whenever it has waited for long enough. */
export function breather(): () => Promise<void> {
  let freeSince = performance.now();
  return async () => {
    if (performance.now() - freeSince <= MAX_BUSY_MS) return;
    await new Promise((resolve) => setTimeout(resolve));
    freeSince = performance.now();
  };
}

/** What an audit file can come from. None but a `Uint8Array` is ever whole in memory. */
export type AuditSource = Uint8Array | Blob | ReadableStream<Uint8Array>;

/** Audits `source` with a verifier that is already loaded. */
export async function auditWith(verifier: Verifier, source: AuditSource, options: AuditOptions): Promise<AuditReport> {
  const { signal, onProgress } = options;
  const totalBytes = sizeOf(source);
  const audit = new verifier.Audit();
  let over = false;
  const breathe = breather();
  try {
    for await (const chunk of chunks(source, signal)) {
      audit.push(chunk);
      if (onProgress) onProgress(progressOf(audit, totalBytes));
      await breathe();
      signal?.throwIfAborted();
    }
    over = true;
    return JSON.parse(audit.finish()) as AuditReport;
  } catch (thrown) {
    // An instance that trapped can free nothing.
    over ||= thrown instanceof WebAssembly.RuntimeError;
    throw signal?.aborted && thrown === signal.reason ? thrown : RemudaError.from(thrown);
  } finally {
    if (!over) audit.free();
  }
}

function progressOf(audit: InstanceType<Verifier["Audit"]>, totalBytes: bigint | null): AuditProgress {
  const progress = audit.progress();
  const { bytes, items, declaredItems } = progress;
  progress.free();
  return { bytes, totalBytes, items, declaredItems: declaredItems ?? null };
}

export function sizeOf(source: AuditSource): bigint | null {
  if (source instanceof Uint8Array) return BigInt(source.length);
  return source instanceof Blob ? BigInt(source.size) : null;
}

export async function* chunks(source: AuditSource, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array, void, void> {
  signal?.throwIfAborted();
  if (source instanceof Uint8Array) {
    yield* pieces(source);
  } else if (source instanceof Blob) {
    for (let at = 0; at < source.size; at += CHUNK_BYTES) {
      yield new Uint8Array(await source.slice(at, at + CHUNK_BYTES).arrayBuffer());
    }
  } else if (typeof source?.getReader === "function") {
    yield* streamed(source, signal);
  } else {
    throw RemudaError.client("client/invalid-argument", "an audit file is a Uint8Array, a Blob or a ReadableStream of bytes");
  }
}

function* pieces(bytes: Uint8Array): Generator<Uint8Array, void, void> {
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES);
}

async function* streamed(stream: ReadableStream<Uint8Array>, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array, void, void> {
  const reader = stream.getReader();
  let done = false;
  // Cancelling ends a read that waits.
  const abort = () => void reader.cancel(signal?.reason).catch(() => undefined);
  signal?.addEventListener("abort", abort, { once: true });
  try {
    while (!done) {
      const read = await reader.read();
      signal?.throwIfAborted();
      done = read.done;
      if (read.value === undefined) continue;
      if (!(read.value instanceof Uint8Array)) {
        throw RemudaError.client("client/invalid-argument", "the stream's chunks are not Uint8Arrays");
      }
      yield* pieces(read.value);
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    if (!done) await reader.cancel().catch(() => undefined);
    reader.releaseLock();
  }
}
