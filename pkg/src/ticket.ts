import { RemudaError } from "./error.js";
import type { AppendEvent, AppendState, DurableAppend, ProvisionalAppend } from "./types.js";

/**
 * A record that is in the outbox. Both promises reject with a `RemudaError`: the code that it failed with, a `provider/…` or `outbox/…`; or
 * `client/closed`, after which it is sent by whoever opens the database next. Nobody needs to listen to either.
 */
export class AppendTicket {
  /** Its number in the outbox, ascending. */
  readonly entry: bigint;
  readonly messageId: string;
  /** Resolves when the provider has the record: acknowledged by a fast stream, durable on a standard one. */
  readonly provisional: Promise<ProvisionalAppend | DurableAppend>;
  /**
   * Resolves when the record is durable at the provider, by a receipt, or on a fast stream by a checkpoint that a subscription of this client
   * verified. A void in between only delays it: the record is sent again.
   */
  readonly durable: Promise<DurableAppend>;
  readonly #provisional: Settlement<ProvisionalAppend | DurableAppend>;
  readonly #durable: Settlement<DurableAppend>;
  #state: AppendState = "queued";
  #hasEnded = false;

  /** @internal */
  constructor(entry: bigint, messageId: string) {
    this.entry = entry;
    this.messageId = messageId;
    this.#provisional = settlement();
    this.#durable = settlement();
    this.provisional = this.#provisional.promise;
    this.durable = this.#durable.promise;
  }

  /** Where it stands, as last told. */
  get state(): AppendState {
    return this.#state;
  }

  /** @internal */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** @internal */
  take({ state, record, failure }: AppendEvent): void {
    this.#state = state;
    if (record) this.#provisional.resolve(record);
    if (record?.durable) {
      this.#hasEnded = true;
      this.#durable.resolve(record);
    }
    if (failure) this.reject(RemudaError.fromFailure({ ...failure, atMs: Date.now() }));
  }

  /** @internal */
  reject(error: RemudaError): void {
    this.#hasEnded = true;
    this.#provisional.reject(error);
    this.#durable.reject(error);
  }
}

interface Settlement<T> {
  promise: Promise<T>;
  resolve(value: T): void;
  reject(error: RemudaError): void;
}

function settlement<T>(): Settlement<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: RemudaError) => void;
  const promise = new Promise<T>((resolved, rejected) => {
    resolve = resolved;
    reject = rejected;
  });
  // An append that fails unheard is still in the outbox, and in the status: it is no error of the page.
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}
