/** The functions of `remuda/inspect` over a way to load its WebAssembly. */
import { type AuditSource, breather, chunks, sizeOf } from "./audit-core.js";
import { RemudaError } from "./error.js";
import type { InspectModule } from "./inspect-glue.js";
import type { Description, ItemRow, Outline, OutlineOptions } from "./inspect-types.js";

/** How much is read at a time to find an item. */
const WINDOW_BYTES = 1 << 18;

export interface InspectApi {
  /**
   * A whole file in outline, in bounded memory: what a picture of it needs. A file that cannot be read to its end is outlined as far as it
   * can.
   *
   * @throws `client/invalid-argument`, `client/trap`, `client/unexpected`; the signal's reason; what the stream itself throws.
   */
  outline(source: AuditSource, options?: OutlineOptions): Promise<Outline>;

  /**
   * Where items `first` to `first + count - 1` are: those that the file has. `of` is its outline.
   *
   * @throws `client/trap`, `client/unexpected`.
   */
  items(source: Blob, of: Outline, first: number, count: number): Promise<ItemRow[]>;

  /**
   * One item in full, from its bytes; null where they are none.
   *
   * @throws `client/trap`, `client/unexpected`.
   */
  describe(item: Uint8Array): Promise<Description | null>;

  /**
   * An audit file of two items that contradict each other: the head of theirs, and the two signed objects on their own. Null where no two
   * objects of the items do, under the chain reads of that head. `head` is the start of the file (`head.bytes` of its outline).
   *
   * @throws `client/trap`, `client/unexpected`.
   */
  portableEvidence(of: { head: Uint8Array; a: Uint8Array; b: Uint8Array }): Promise<Uint8Array | null>;
}

/** Every `u64` comes as digits with an `n`. What is in a text of the file is none. */
function revive(key: string, value: unknown): unknown {
  return typeof value === "string" && key !== "text" && /^\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value;
}

export function inspectApi(load: () => Promise<InspectModule>): InspectApi {
  let loading: Promise<InspectModule> | undefined;
  const use = async <T>(act: (module: InspectModule) => T | Promise<T>): Promise<T> => {
    try {
      // What did not load is tried again by the next call.
      loading ??= load().catch((thrown: unknown) => {
        loading = undefined;
        throw thrown;
      });
      return await act(await loading);
    } catch (thrown) {
      throw RemudaError.from(thrown);
    }
  };
  return {
    async outline(source, { signal, onProgress } = {}) {
      signal?.throwIfAborted();
      const outline = await use(({ FileOutline }) => new FileOutline());
      const totalBytes = sizeOf(source);
      const breathe = breather();
      let bytes = 0n;
      let over = false;
      try {
        for await (const chunk of chunks(source, signal)) {
          outline.push(chunk);
          bytes += BigInt(chunk.length);
          onProgress?.({ bytes, totalBytes, items: outline.items() });
          await breathe();
          signal?.throwIfAborted();
        }
        over = true;
        return JSON.parse(outline.finish(), revive) as Outline;
      } catch (thrown) {
        // An instance that trapped can free nothing.
        over ||= thrown instanceof WebAssembly.RuntimeError;
        throw signal?.aborted && thrown === signal.reason ? thrown : RemudaError.from(thrown);
      } finally {
        if (!over) outline.free();
      }
    },
    items: (source, of, first, count) =>
      use(async ({ ItemPage }) => {
        const at = Math.min(Math.floor(first / of.indexStep), of.index.length - 1);
        const from = of.index[at];
        if (from === undefined || count <= 0) return [];
        const page = new ItemPage(at * of.indexStep, first, count);
        for (let begin = from; begin < source.size; begin += WINDOW_BYTES) {
          const window = new Uint8Array(await source.slice(begin, begin + WINDOW_BYTES).arrayBuffer());
          if (page.push(window)) break;
        }
        const rows = JSON.parse(page.finish()) as ItemRow[];
        return rows.map((row) => ({ ...row, offset: row.offset + from }));
      }),
    describe: (item) =>
      use(({ describeItem }) => {
        const described = describeItem(item);
        return described === undefined ? null : (JSON.parse(described, revive) as Description);
      }),
    portableEvidence: ({ head, a, b }) => use((module) => module.portableEvidence(head, a, b) ?? null),
  };
}
