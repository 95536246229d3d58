/** The functions of `remuda/verify` over a way to load the verifier. */
import { type AuditSource, auditWith } from "./audit-core.js";
import type { Verifier } from "./audit-glue.js";
import type { AuditOptions, AuditReport, EvidencePair } from "./audit-types.js";
import { RemudaError } from "./error.js";

export interface VerifyApi {
  /**
   * Judges an audit file item by item, in bounded memory, and answers a report: a file that lies is a verdict, not an error.
   *
   * @throws `client/invalid-argument`, `client/trap`, `client/unexpected`; the signal's reason; what the stream itself throws.
   */
  audit(source: AuditSource, options?: AuditOptions): Promise<AuditReport>;

  /**
   * Judges two provider objects under one key. The code `evidence/…` where they contradict each other, another code where one of
   * them is no object of that key, context and stream, and `null` where both are and get along.
   *
   * @throws `client/trap`, `client/unexpected`.
   */
  checkEvidence(pair: EvidencePair): Promise<string | null>;

  /**
   * Strict Ed25519 (CIP-39 §9.1) over the message itself: every engine answers the same, unlike WebCrypto.
   *
   * @throws `client/trap`, `client/unexpected`.
   */
  verifySignature(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean>;
}

export function verifyApi(load: () => Promise<Verifier>): VerifyApi {
  let loading: Promise<Verifier> | undefined;
  const loaded = () => {
    // A verifier that did not load is tried again by the next call.
    loading ??= load().catch((thrown: unknown) => {
      loading = undefined;
      throw RemudaError.from(thrown);
    });
    return loading;
  };
  const call = async <T>(use: (verifier: Verifier) => T): Promise<T> => {
    const verifier = await loaded();
    try {
      return use(verifier);
    } catch (thrown) {
      throw RemudaError.from(thrown);
    }
  };
  return {
    async audit(source, options = {}) {
      options.signal?.throwIfAborted();
      return auditWith(await loaded(), source, options);
    },
    async checkEvidence({ context, streamId, providerKey, a, b }) {
      return (await call((verifier) => verifier.checkEvidence(context, streamId, providerKey, a, b))) ?? null;
    },
    async verifySignature(publicKey, message, signature) {
      return call((verifier) => verifier.verifySignature(publicKey, message, signature));
    },
  };
}
