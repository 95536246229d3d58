import { PushIterator } from "./pushed.js";
import type { PaintedRecord } from "./types.js";

/** How many records wait for a slow consumer before the oldest are dropped. */
export const WAITING_RECORDS = 1_024;

/**
 * The records of a tail from the first `next` on. Nothing of it is kept: a consumer that is slower than the stream loses the oldest ones, and
 * `missed` counts them. It ends when the client is closed; it throws what ended the tail, and the reason of its signal when that is aborted.
 */
export class TailIterator extends PushIterator<PaintedRecord> {
  /** How many records were dropped since the tail began. */
  missed = 0;

  protected override keep(record: PaintedRecord): void {
    if (this.waiting.push(record) > WAITING_RECORDS) {
      this.waiting.shift();
      this.missed += 1;
    }
  }
}
