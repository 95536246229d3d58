import { RemudaError } from "./error.js";
import type { PaintedRecord } from "./types.js";

/** How many records wait for a slow consumer before the oldest are dropped. */
export const WAITING_RECORDS = 1_024;

/** What an iterator over a tail needs of its client. */
export interface TailSource {
  /** Registers the tail, and returns its key. */
  acquire(): Promise<string>;
  /** Undoes one `acquire`. */
  release(key: string): void;
  /** Calls back with every record, and once with how it ended, until undone. */
  listen(key: string, listener: TailListener): () => void;
}

export interface TailListener {
  painted(record: PaintedRecord): void;
  /** By a failure, or because the client was closed. */
  ended(error: RemudaError | null): void;
}

/**
 * The records of a tail from the first `next` on. Nothing of it is kept: a consumer that is slower than the stream loses the oldest ones, and
 * `missed` counts them. It ends when the client is closed; it throws what ended the tail, and the reason of its signal when that is aborted.
 */
export class TailIterator implements AsyncIterableIterator<PaintedRecord> {
  /** How many records were dropped since the tail began. */
  missed = 0;
  readonly #source: TailSource;
  readonly #signal: AbortSignal | undefined;
  readonly #waiting: PaintedRecord[] = [];
  #key: string | null = null;
  #unlisten: (() => void) | null = null;
  /** How it ended: null by itself. */
  #end: { error: unknown } | null = null;
  #wake: (() => void) | null = null;
  #turn: Promise<unknown> = Promise.resolve();
  readonly #onAbort = () => this.#ended(this.#signal?.reason);

  constructor(source: TailSource, signal?: AbortSignal) {
    this.#source = source;
    this.#signal = signal;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next record; calls that overlap are answered one after the other. */
  next(): Promise<IteratorResult<PaintedRecord, undefined>> {
    const turn = this.#turn.then(() => this.#advance());
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async return(): Promise<IteratorResult<PaintedRecord, undefined>> {
    this.#waiting.length = 0;
    this.#ended(null);
    return { done: true, value: undefined };
  }

  async #advance(): Promise<IteratorResult<PaintedRecord, undefined>> {
    if (!this.#end && this.#key === null) await this.#begin();
    for (;;) {
      const record = this.#waiting.shift();
      if (record) return { done: false, value: record };
      if (this.#end) {
        const { error } = this.#end;
        this.#end = { error: null };
        if (error !== null && error !== undefined) throw error;
        return { done: true, value: undefined };
      }
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  async #begin(): Promise<void> {
    this.#signal?.throwIfAborted();
    this.#signal?.addEventListener("abort", this.#onAbort);
    const key = await this.#source.acquire();
    if (this.#end) {
      this.#source.release(key);
      return;
    }
    this.#key = key;
    this.#unlisten = this.#source.listen(key, {
      painted: (record) => {
        if (this.#waiting.push(record) > WAITING_RECORDS) {
          this.#waiting.shift();
          this.missed += 1;
        }
        this.#wake?.();
      },
      ended: (error) => this.#ended(error),
    });
  }

  #ended(error: unknown): void {
    if (this.#end) return;
    this.#end = { error };
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#unlisten?.();
    if (this.#key !== null) this.#source.release(this.#key);
    this.#wake?.();
  }
}
