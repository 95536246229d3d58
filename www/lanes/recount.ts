/** Reads everything that is stored, and checks what no verifier has to be believed for: order, uniqueness, and the position. */
import type { Boundary, Item, RecordItem, Subscription } from "remuda";

const PAGE_BYTES = 256 * 1024;

/** Stored items up to one, in order. */
export async function* stored(subscription: Subscription, through: bigint): AsyncGenerator<Item> {
  let after = 0n;
  while (after < through) {
    const page = await subscription.read(after, PAGE_BYTES);
    if (page.length === 0) return;
    for (const item of page) {
      if (item.item > through) return;
      after = item.item;
      yield item;
    }
  }
}

export interface Recount {
  items: number;
  records: number;
  transitions: number;
  boundary: Boundary | null;
  /** What is wrong, in words; empty when all is well. */
  problems: string[];
}

/**
 * Counts the store against its position.
 *
 * `isWhole` when every lane is subscribed to: then the sequences of an epoch must follow each other without a gap, and the last record must
 * be the very one that the position names.
 */
export async function recount(subscription: Subscription, isWhole: boolean, onItem: (item: Item) => void): Promise<Recount> {
  const boundary = await subscription.boundary();
  const counted: Recount = { items: 0, records: 0, transitions: 0, boundary, problems: [] };
  if (!boundary) return counted;
  const problem = (text: string) => counted.problems.length < 5 && counted.problems.push(text);
  const seen = new Set<string>();
  let last: Item | null = null;
  let lastRecord: RecordItem | null = null;
  for await (const item of stored(subscription, boundary.lastItem)) {
    onItem(item);
    counted.items += 1;
    if (last && item.item !== last.item + 1n) problem(`item ${item.item} follows item ${last.item}`);
    if (item.kind === "record") {
      counted.records += 1;
      if (seen.has(item.messageId)) problem(`message ${item.messageId.slice(0, 8)} is stored twice`);
      seen.add(item.messageId);
      if (lastRecord && lastRecord.brokerEpoch === item.brokerEpoch) {
        if (item.sequence <= lastRecord.sequence) problem(`sequence ${item.sequence} follows ${lastRecord.sequence}`);
        else if (isWhole && item.sequence !== lastRecord.sequence + 1n) problem(`nothing between ${lastRecord.sequence} and ${item.sequence}`);
      } else if (lastRecord && item.brokerEpoch < lastRecord.brokerEpoch) {
        problem(`epoch ${item.brokerEpoch} follows ${lastRecord.brokerEpoch}`);
      }
      lastRecord = item;
    } else if (item.kind === "transition") {
      counted.transitions += 1;
    } else {
      // Behind a hole nothing is expected to follow what was before it.
      lastRecord = null;
    }
    last = item;
  }
  if ((last?.item ?? 0n) !== boundary.lastItem) problem(`the position says item ${boundary.lastItem}, the last one stored is ${last?.item ?? 0n}`);
  if (last?.kind === "record") {
    // The last batches may have held nothing for us: then the position is ahead of our last record, and nothing is missing.
    const isBehind = last.brokerEpoch !== boundary.brokerEpoch || boundary.sequence === null || last.sequence > boundary.sequence;
    const isElsewhere = isWhole && (last.sequence !== boundary.sequence || last.checkpoint !== boundary.checkpoint);
    if (isBehind || isElsewhere) problem(`the position is ${boundary.brokerEpoch}/${boundary.sequence}, the last record ${last.brokerEpoch}/${last.sequence}`);
  }
  return counted;
}

/** An item as a line of JSON; what is 64 bits wide as decimal text, a payload as base64. */
export function line(item: Item): string {
  return `${JSON.stringify(item, (_, value: unknown) => {
    if (typeof value === "bigint") return value.toString();
    if (value instanceof Uint8Array) return btoa(Array.from(value, (byte) => String.fromCharCode(byte)).join(""));
    return value;
  })}\n`;
}
