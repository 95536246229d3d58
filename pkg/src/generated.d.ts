/** Stands in for the glue where `cargo xtask wasm` has not made it yet: a file that exists is preferred to a pattern. */
declare module "*/generated/client/remuda_client.js" {
  import type { ClientFactory } from "./glue.js";

  export default function init(options: { module_or_path: URL | Response | BufferSource }): Promise<unknown>;
  export const Client: ClientFactory;
  export function x25519PublicKey(secretKey: Uint8Array): Uint8Array;
  export function x25519(secretKey: Uint8Array, publicKey: Uint8Array): Uint8Array;
}
