import { RemudaError } from "./error.js";
import type { Failure, Item } from "./types.js";

/** How many bytes of payload are read from the database at a time. */
export const PAGE_BYTES = 256 * 1024;

/** An item has a local number, ascending: what `after` takes. */
export interface Numbered {
  item: bigint;
}

/** What an iterator needs of its client. */
export interface ItemSource<T extends Numbered = Item> {
  /** Registers the subscription, and returns its key. */
  acquire(): Promise<string>;
  /** Undoes one `acquire`. */
  release(key: string): void;
  /** Committed items after one, ascending; none when there are none. */
  read(key: string, after: bigint, maxBytes: number): Promise<T[]>;
  /** Calls back at every change that could end a wait, until undone. */
  watch(key: string, changed: () => void): () => void;
  /** Why no more items will come, if so. */
  failure(key: string): Failure | null;
  isClosed(): boolean;
}

/**
 * The committed items of a subscription, one after the other.
 *
 * It holds one page of rows at most, and reads the next one when that is used up: a slow consumer costs no memory, since what it has not
 * taken yet is in the database. It ends when the client is closed. It throws what ended its subscription, after the last stored item, and
 * the reason of its signal when that is aborted.
 */
export class ItemIterator<T extends Numbered = Item> implements AsyncIterableIterator<T> {
  readonly #source: ItemSource<T>;
  readonly #signal: AbortSignal | undefined;
  #key: string | null = null;
  #after: bigint;
  #page: T[] = [];
  #next = 0;
  #isDone = false;
  #isHeld = false;
  #turn: Promise<unknown> = Promise.resolve();
  /** Changes whenever a wait should look again; `#wake` ends the wait of the moment. */
  #changes = 0;
  #wake: (() => void) | null = null;
  #unwatch: (() => void) | null = null;
  readonly #onAbort = () => this.#changed();

  constructor(source: ItemSource<T>, after: bigint, signal?: AbortSignal) {
    this.#source = source;
    this.#after = after;
    this.#signal = signal;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next item, in order; calls that overlap are answered one after the other. */
  next(): Promise<IteratorResult<T, undefined>> {
    const turn = this.#turn.then(() => this.#advance());
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Ends it, a `next` that is waiting included. */
  async return(): Promise<IteratorResult<T, undefined>> {
    this.#finish();
    return { done: true, value: undefined };
  }

  async #advance(): Promise<IteratorResult<T, undefined>> {
    try {
      for (;;) {
        if (this.#isDone || this.#source.isClosed()) {
          this.#finish();
          return { done: true, value: undefined };
        }
        this.#signal?.throwIfAborted();
        const item = this.#page[this.#next];
        if (item) {
          this.#next += 1;
          this.#after = item.item;
          return { done: false, value: item };
        }
        await this.#turnPage();
      }
    } catch (thrown) {
      // What fails because the client closed meanwhile is no failure.
      if (this.#isDone || this.#source.isClosed()) {
        this.#finish();
        return { done: true, value: undefined };
      }
      this.#finish();
      throw thrown;
    }
  }

  async #turnPage(): Promise<void> {
    const key = this.#key ?? (await this.#begin());
    const failure = this.#source.failure(key);
    const changes = this.#changes;
    this.#page = await this.#source.read(key, this.#after, PAGE_BYTES);
    this.#next = 0;
    if (this.#page.length > 0 || this.#isDone) return;
    if (failure) throw RemudaError.fromFailure(failure);
    if (changes === this.#changes && !this.#signal?.aborted) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  async #begin(): Promise<string> {
    this.#signal?.addEventListener("abort", this.#onAbort);
    const key = await this.#source.acquire();
    this.#key = key;
    this.#isHeld = true;
    if (this.#isDone) this.#release();
    else this.#unwatch = this.#source.watch(key, () => this.#changed());
    return key;
  }

  #changed(): void {
    this.#changes += 1;
    this.#wake?.();
    this.#wake = null;
  }

  #finish(): void {
    this.#isDone = true;
    this.#page = [];
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#release();
    this.#changed();
  }

  #release(): void {
    this.#unwatch?.();
    this.#unwatch = null;
    if (!this.#isHeld || this.#key === null) return;
    this.#isHeld = false;
    this.#source.release(this.#key);
  }
}
