/** The page's side of the worker: one worker for each file, ended with it. */
import type { Answer, Calls, Name, Progress } from "./protocol.js";

export class JobFailure extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

interface Waiting {
  done(answer: unknown): void;
  failed(failure: Error): void;
  onProgress: ((progress: Progress) => void) | undefined;
}

export class Job {
  readonly #worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;
  #hasEnded = false;

  constructor() {
    this.#worker.addEventListener("message", ({ data }: MessageEvent<Answer>) => {
      const waiting = this.#waiting.get(data.id);
      if (!waiting) return;
      if (data.kind === "progress") return waiting.onProgress?.(data.progress);
      this.#waiting.delete(data.id);
      if (data.kind === "answer") waiting.done(data.answer);
      else waiting.failed(new JobFailure(data.code, data.message));
    });
    this.#worker.addEventListener("error", (event) => {
      event.preventDefault();
      this.#end(new JobFailure("client/no-worker", event.message || "the worker could not be started"));
    });
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  ask<N extends Name>(name: N, given: Calls[N]["in"], onProgress?: (progress: Progress) => void): Promise<Calls[N]["out"]> {
    const id = ++this.#last;
    return new Promise<Calls[N]["out"]>((done, failed) => {
      this.#waiting.set(id, { done: done as (answer: unknown) => void, failed, onProgress });
      this.#worker.postMessage({ id, name, given });
    });
  }

  /** Ends it at once, whatever it is doing. */
  cancel(): void {
    this.#end(new DOMException("cancelled", "AbortError"));
  }

  #end(failure: Error): void {
    this.#hasEnded = true;
    this.#worker.terminate();
    for (const { failed } of this.#waiting.values()) failed(failure);
    this.#waiting.clear();
  }
}
