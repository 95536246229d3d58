/** Calling the WebAssembly where it is: loaded once, its errors typed. */
import { RemudaError } from "../error.js";
import type { FeedsModule } from "./glue.js";

export type Use = <T>(use: (module: FeedsModule) => T | Promise<T>) => Promise<T>;

/** A way to use what `load` loads, at the first use. */
export function lazily(load: () => Promise<FeedsModule>): Use {
  let loading: Promise<FeedsModule> | undefined;
  return async (use) => {
    try {
      // What did not load is tried again by the next call.
      loading ??= load().catch((thrown: unknown) => {
        loading = undefined;
        throw thrown;
      });
      return await use(await loading);
    } catch (thrown) {
      throw RemudaError.from(thrown);
    }
  };
}
