/** The shape of the generated WebAssembly, `generated/inspect/remuda_inspect.js`. */
export interface WasmOutline {
  push(chunk: Uint8Array): void;
  items(): number;
  /** Ends the outline and frees it. */
  finish(): string;
  free(): void;
}

export interface WasmItemPage {
  push(chunk: Uint8Array): boolean;
  /** Ends the page and frees it. */
  finish(): string;
  free(): void;
}

export interface InspectModule {
  FileOutline: new () => WasmOutline;
  ItemPage: new (at: number, first: number, count: number) => WasmItemPage;
  describeItem(item: Uint8Array): string | undefined;
  portableEvidence(head: Uint8Array, a: Uint8Array, b: Uint8Array): Uint8Array | undefined;
}
