/** Stands in for the glue where `cargo xtask wasm` has not made it yet: a file that exists is preferred to a pattern. */
declare module "*/generated/inspect/remuda_inspect.js" {
  import type { InspectModule } from "./inspect-glue.js";

  export default function init(options: { module_or_path: URL | Response | BufferSource }): Promise<unknown>;
  export const FileOutline: InspectModule["FileOutline"];
  export const ItemPage: InspectModule["ItemPage"];
  export const describeItem: InspectModule["describeItem"];
  export const portableEvidence: InspectModule["portableEvidence"];
}
