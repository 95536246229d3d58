/** The function of `remuda/watchtower/recovery` over a way to load its WebAssembly. */
import { RemudaError } from "../error.js";

/** A content key, sealed to the committee: version 2, 12 bytes of nonce, 96 of `ephemeralU`, 48 of ciphertext. */
export interface WrappedDek {
  version: number;
  ciphertext: Uint8Array;
  nonce: Uint8Array;
  ephemeralU: Uint8Array;
  aad: Uint8Array;
}

interface Recovered {
  readonly key: Uint8Array | undefined;
  readonly code: string | undefined;
  readonly remedy: string | undefined;
  readonly meaning: string | undefined;
  free(): void;
}

/** The shape of the generated WebAssembly, `generated/recovery/remuda_recovery.js`. */
export interface RecoveryModule {
  unwrapContentKey(
    sigma: Uint8Array,
    baseAad: Uint8Array,
    version: number,
    ciphertext: Uint8Array,
    nonce: Uint8Array,
    ephemeralU: Uint8Array,
    aad: Uint8Array,
    domain?: string | null,
  ): Recovered;
}

export interface RecoveryApi {
  /**
   * Recovers a content key from the committee's combined signature. `baseAad` is what you expect it to be bound to: `wrappedDekAad` of
   * `remuda/watchtower`. `domain` is another family's, for its known answers.
   *
   * Throws `RemudaError`, in this order: `watchtower/wrapped-dek`, `watchtower/point`, `watchtower/aad`, `watchtower/aead`.
   */
  unwrapContentKey(of: { sigma: Uint8Array; baseAad: Uint8Array; wrapped: WrappedDek; domain?: string }): Promise<Uint8Array>;
}

export function recoveryApi(load: () => Promise<RecoveryModule>): RecoveryApi {
  let loading: Promise<RecoveryModule> | undefined;
  return {
    async unwrapContentKey({ sigma, baseAad, wrapped, domain }) {
      try {
        // What did not load is tried again by the next call.
        loading ??= load().catch((thrown: unknown) => {
          loading = undefined;
          throw thrown;
        });
        const { version, ciphertext, nonce, ephemeralU, aad } = wrapped;
        const recovered = (await loading).unwrapContentKey(sigma, baseAad, version, ciphertext, nonce, ephemeralU, aad, domain);
        const { key, code, remedy, meaning } = recovered;
        recovered.free();
        if (key === undefined) throw { code, remedy, meaning, rule: "CIP-7: recovery" };
        return key;
      } catch (thrown) {
        throw RemudaError.from(thrown);
      }
    },
  };
}
