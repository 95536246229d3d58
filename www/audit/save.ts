/** Gives a file to the reader. */
import { element } from "../shared/dom.js";

/** How long the browser has to take it. */
const TAKEN_MS = 10_000;

export function save(name: string, file: Blob): void {
  const address = URL.createObjectURL(file);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), TAKEN_MS);
}
