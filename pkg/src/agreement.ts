/** What a member's key is, and what it does: X25519. */
import type { Wrapped } from "./wrapping.js";
import { unwrap } from "./wrapping.js";

/** What a wrapped secret is for: it opens for nothing else. */
export const MEMBER_KEY = "remuda/member-key";

export interface MemberKey {
  /** 32 bytes: what a grant binds as its HPKE key, and what envelopes name. */
  publicKey: Uint8Array;
  /** What agrees, and no script can read. */
  privateKey: CryptoKey | WrappedMemberKey;
}

/** A secret that is readable only together with a key that is not. */
export interface WrappedMemberKey extends Wrapped {
  wrappingKey: CryptoKey;
}

/** X25519 in code, for browsers whose WebCrypto has none. */
export interface SoftwareX25519 {
  x25519PublicKey(secretKey: Uint8Array): Uint8Array;
  /** Throws for a public key of small order. */
  x25519(secretKey: Uint8Array, publicKey: Uint8Array): Uint8Array;
}

/** X25519 of a member's key and a public key. The caller erases it. Throws for a public key of small order. */
export async function agree(
  { privateKey }: Pick<MemberKey, "privateKey">,
  publicKey: Uint8Array,
  software: () => Promise<SoftwareX25519>,
): Promise<Uint8Array> {
  if (!("wrappingKey" in privateKey)) {
    const theirs = await crypto.subtle.importKey("raw", new Uint8Array(publicKey), "X25519", false, []);
    return new Uint8Array(await crypto.subtle.deriveBits({ name: "X25519", public: theirs }, privateKey, 256));
  }
  const { x25519 } = await software();
  const secret = await unwrap(privateKey.wrappingKey, privateKey, MEMBER_KEY);
  try {
    return x25519(secret, publicKey);
  } finally {
    secret.fill(0);
  }
}
