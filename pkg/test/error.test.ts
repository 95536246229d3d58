import { describe, expect, test } from "vitest";
import { generateHolderKey } from "../src/holder-key.js";
import { RemudaError } from "../src/error.js";
import { lockName, tabLockName } from "../src/protocol.js";

describe("RemudaError", () => {
  test("takes code, remedy, meaning and rule of what the client throws", () => {
    const thrown = Object.assign(new Error("m"), { code: "verify/signature", remedy: "halt", meaning: "bad", rule: "CIP-39 §9.1" });
    expect(RemudaError.from(thrown)).toMatchObject({ code: "verify/signature", remedy: "halt", meaning: "bad", rule: "CIP-39 §9.1", cause: thrown });
  });

  test("gives an unknown error a code and keeps it as cause", () => {
    const thrown = new TypeError("odd");
    const error = RemudaError.from(thrown);
    expect(error).toMatchObject({ code: "client/unexpected", remedy: "surface", cause: thrown });
    expect(error.message).toContain("TypeError: odd");
    expect(RemudaError.from("text").message).toContain("text");
    expect(RemudaError.from(undefined).code).toBe("client/unexpected");
  });

  test("knows a trap", () => {
    expect(RemudaError.from(new WebAssembly.RuntimeError("unreachable"))).toMatchObject({ code: "client/trap", remedy: "retry" });
  });

  test("an unknown remedy is for a person", () => {
    expect(RemudaError.from({ code: "a/b", remedy: "dance" }).remedy).toBe("surface");
  });

  test("survives a structured clone", () => {
    const error = RemudaError.client("client/no-worker", "404 (x)");
    const again = new RemudaError(structuredClone(error.toData()));
    expect(again.message).toBe(error.message);
    expect(again.toData()).toEqual(error.toData());
  });

  test("is itself when wrapped again, and becomes a failure", () => {
    const error = RemudaError.client("client/closed");
    expect(RemudaError.from(error)).toBe(error);
    expect(error.toFailure()).toMatchObject({ code: "client/closed", remedy: "fix-request", rule: "" });
    expect(RemudaError.fromFailure(error.toFailure())).toMatchObject({ code: "client/closed" });
  });
});

test("lock names tell databases, streams and tabs apart", () => {
  const names = [lockName("a", "b"), lockName("a", "c"), lockName("x", "b"), tabLockName("a", "b", "1"), tabLockName("a", "b", "2")];
  expect(new Set(names).size).toBe(names.length);
  expect(names[0]).toBe("remuda:a:b");
});

test("a holder key signs and cannot be read", async () => {
  const { privateKey, publicKey } = await generateHolderKey();
  expect(publicKey).toHaveLength(32);
  expect(privateKey.extractable).toBe(false);
  await expect(crypto.subtle.exportKey("pkcs8", privateKey)).rejects.toThrow();
  expect(await crypto.subtle.sign("Ed25519", privateKey, new Uint8Array(32))).toHaveProperty("byteLength", 64);
});
