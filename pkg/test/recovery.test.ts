/** `remuda/watchtower/recovery` answers every vector of the recovery, and is an artefact that nobody else carries. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { RemudaError, unwrapContentKey } from "../src/watchtower-recovery-node.js";

interface Vector {
  name: string;
  op: string;
  in: { dst: string; sigma: string; base_aad: string; wrapped: Record<"ciphertext" | "nonce" | "ephemeral_u" | "aad", string> & { version: number } };
  expect: { ok?: unknown; err?: string };
}

const file = JSON.parse(readFileSync(new URL("../../vectors/watchtower.json", import.meta.url), "utf8")) as { vectors: Vector[] };
const vectors = file.vectors.filter(({ op }) => op === "watchtower_unwrap");
const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, "hex"));

describe("the content key", () => {
  test("there are vectors", () => expect(vectors.length).toBeGreaterThan(5));

  for (const { name, in: given, expect: expected } of vectors) {
    test(name, { timeout: 30_000 }, async () => {
      const { version, ciphertext, nonce, ephemeral_u, aad } = given.wrapped;
      const wrapped = { version, ciphertext: bytes(ciphertext), nonce: bytes(nonce), ephemeralU: bytes(ephemeral_u), aad: bytes(aad) };
      const answer = await unwrapContentKey({ sigma: bytes(given.sigma), baseAad: bytes(given.base_aad), wrapped, domain: given.dst }).then(
        (key) => Buffer.from(key).toString("hex"),
        (thrown: unknown) => {
          expect(thrown).toBeInstanceOf(RemudaError);
          return (thrown as RemudaError).code;
        },
      );
      if (expected.err !== undefined) expect(answer).toBe(expected.err);
      else expect(JSON.stringify(expected.ok)).toContain(answer);
    });
  }
});
