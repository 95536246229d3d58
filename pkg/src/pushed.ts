import type { RemudaError } from "./error.js";

/** What an iterator over what is told as it comes needs of its client. */
export interface PushSource<T> {
  /** Registers the subscription, and returns its key. */
  acquire(): Promise<string>;
  /** Undoes one `acquire`. */
  release(key: string): void;
  /** Calls back with everything that comes, and once with how it ended, until undone. */
  listen(key: string, listener: PushListener<T>): () => void;
}

export interface PushListener<T> {
  pushed(value: T): void;
  /** By a failure, or because the client was closed. */
  ended(error: RemudaError | null): void;
}

/**
 * What is told from the first `next` on. It ends when the client is closed; it throws what ended it, after what waits, and the reason of its
 * signal when that is aborted, without.
 */
export class PushIterator<T> implements AsyncIterableIterator<T> {
  protected readonly waiting: T[] = [];
  readonly #source: PushSource<T>;
  readonly #signal: AbortSignal | undefined;
  #key: string | null = null;
  #unlisten: (() => void) | null = null;
  /** How it ended: null by itself. */
  #end: { error: unknown } | null = null;
  #wake: (() => void) | null = null;
  #turn: Promise<unknown> = Promise.resolve();
  readonly #onAbort = () => this.checkSignal();

  constructor(source: PushSource<T>, signal?: AbortSignal) {
    this.#source = source;
    this.#signal = signal;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next one; calls that overlap are answered one after the other. */
  next(): Promise<IteratorResult<T, undefined>> {
    const turn = this.#turn.then(() => this.#advance());
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    this.left(this.waiting.splice(0));
    this.#ended(null);
    return { done: true, value: undefined };
  }

  /** Takes one more to wait for its consumer. */
  protected keep(value: T): void {
    this.waiting.push(value);
  }

  /** What waited when its consumer left. */
  protected left(_values: T[]): void {}

  /** What is handed out. */
  protected taken(value: T): T {
    return value;
  }

  /** Whether what was handed out needs the subscription for longer. */
  protected isBusy(): boolean {
    return false;
  }

  /** Ends it when its signal is aborted, as soon as nothing that was handed out is in the way. */
  protected checkSignal(): void {
    if (this.#signal?.aborted && !this.isBusy()) this.#abort();
  }

  #abort(): void {
    this.left(this.waiting.splice(0));
    this.#ended(this.#signal?.reason);
  }

  async #advance(): Promise<IteratorResult<T, undefined>> {
    if (!this.#end && this.#key === null) await this.#begin();
    // Whoever asks for more is done with what there was.
    if (!this.#end && this.#signal?.aborted) this.#abort();
    for (;;) {
      const value = this.waiting.shift();
      if (value !== undefined) return { done: false, value: this.taken(value) };
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
      pushed: (value) => {
        this.keep(value);
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
