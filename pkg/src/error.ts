import type { Failure, Remedy } from "./types.js";

/** Errors of this package itself. Those of the wire, the verifier and the database keep the codes that the client gives them. */
const CLIENT_CODES = {
  "client/closed": ["fix-request", "The client is closed."],
  "client/invalid-argument": ["fix-request", "An argument is not what this method takes."],
  "client/no-ed25519": ["surface", "This browser has no Ed25519 in WebCrypto."],
  "client/no-webcrypto": ["surface", "This browser has no WebCrypto here: it needs a secure context."],
  "client/no-locks": ["surface", "This browser has no Web Locks here: they need a secure context."],
  "client/no-worker": ["surface", "The worker could not be started: its script or its WebAssembly did not load."],
  "client/key-not-kept": ["surface", "This browser did not keep a key that it said it stored."],
  "client/key-store": ["surface", "The database of keys refused an operation."],
  "client/owner-lost": [
    "surface",
    "The tab that held the connection ended before it answered: what was asked for may have been done, or not.",
  ],
  "client/no-floor": ["fix-request", "This subscription is behind no signed floor: there is no gap to accept."],
  "client/no-recording": ["retry", "No recording is under way: another tab took the connection over, or it was ended already."],
  "client/outcome-forgotten": ["surface", "The append was settled, and what came of it is no longer kept."],
  "client/owner-unreachable": ["retry", "No tab took the request over: it was not sent."],
  "client/stopped": ["retry", "The network loop ended without being asked to."],
  "client/trap": ["retry", "The WebAssembly code trapped. The worker starts again from the database."],
  "client/unexpected": ["surface", "An error that this client does not know."],
} as const satisfies Record<string, readonly [Remedy, string]>;

/** The codes that begin with `client/`. */
export type ClientCode = keyof typeof CLIENT_CODES;

const REMEDIES: readonly string[] = ["halt", "retry", "re-enter-at-boundary", "split-scope", "fix-request", "surface"];

/** An error as a structured clone. */
export interface ErrorData {
  code: string;
  remedy: Remedy;
  meaning: string;
  rule?: string;
  detail?: string;
}

/** Every error that this package throws, abortion by the caller's own signal aside. */
export class RemudaError extends Error {
  override readonly name = "RemudaError";
  /** `plane/reason`, stable: what a program should look at. */
  readonly code: string;
  /** What the caller should do. */
  readonly remedy: Remedy;
  /** One sentence for a person. */
  readonly meaning: string;
  /** Where the rule is written, for instance `CIP-39 §12.2.1`. */
  readonly rule?: string;

  constructor(data: ErrorData, options?: ErrorOptions) {
    super(`${data.code}: ${data.meaning}${data.detail ? ` (${data.detail})` : ""}`, options);
    this.code = data.code;
    this.remedy = data.remedy;
    this.meaning = data.meaning;
    if (data.rule !== undefined) this.rule = data.rule;
  }

  /** An error of this package itself. */
  static client(code: ClientCode, detail?: string, cause?: unknown): RemudaError {
    const [remedy, meaning] = CLIENT_CODES[code];
    return new RemudaError({ code, remedy, meaning, ...(detail && { detail }) }, cause === undefined ? undefined : { cause });
  }

  /** A failure that was reported as data. */
  static fromFailure(failure: Failure): RemudaError {
    return new RemudaError({ ...failure, remedy: asRemedy(failure.remedy) });
  }

  /** Whatever was thrown, as an error with a code. Nothing is lost: what has no code becomes `client/unexpected`, or `client/trap`. */
  static from(thrown: unknown): RemudaError {
    if (thrown instanceof RemudaError) return thrown;
    if (isTrap(thrown)) return RemudaError.client("client/trap", describe(thrown), thrown);
    if (typeof thrown === "object" && thrown !== null && "code" in thrown && typeof thrown.code === "string") {
      const { code, remedy, meaning, rule } = thrown as Record<string, unknown>;
      return new RemudaError(
        {
          code: code as string,
          remedy: asRemedy(remedy),
          meaning: typeof meaning === "string" ? meaning : describe(thrown),
          ...(typeof rule === "string" && { rule }),
        },
        { cause: thrown },
      );
    }
    return RemudaError.client("client/unexpected", describe(thrown), thrown);
  }

  /** As a structured clone. */
  toData(): ErrorData {
    const prefix = `${this.code}: ${this.meaning}`;
    const detail = this.message.slice(prefix.length).replace(/^ \((.*)\)$/s, "$1");
    return {
      code: this.code,
      remedy: this.remedy,
      meaning: this.meaning,
      ...(this.rule !== undefined && { rule: this.rule }),
      ...(detail && { detail }),
    };
  }

  /** As a failure of now. */
  toFailure(): Failure {
    const { detail } = this.toData();
    return {
      code: this.code,
      remedy: this.remedy,
      rule: this.rule ?? "",
      meaning: detail ? `${this.meaning} (${detail})` : this.meaning,
      atMs: Date.now(),
    };
  }
}

/** Whether WebAssembly code trapped: its instance must not be used again. */
export function isTrap(thrown: unknown): boolean {
  return typeof WebAssembly !== "undefined" && thrown instanceof WebAssembly.RuntimeError;
}

function asRemedy(remedy: unknown): Remedy {
  return typeof remedy === "string" && REMEDIES.includes(remedy) ? (remedy as Remedy) : "surface";
}

function describe(thrown: unknown): string {
  return thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown);
}
