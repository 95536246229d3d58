/** Judges and decodes beside the page, which stays free. It ends when it is cancelled: nothing here needs tidying. */
import { describe, items, outline, portableEvidence } from "remuda/inspect";
import type { Outline } from "remuda/inspect";
import { audit } from "remuda/verify";
import { judgeEvidence } from "./evidence.js";
import type { Answer, Calls, Judged, Name, Progress, Request, ShownItem } from "./protocol.js";

/** How much of a long item is shown. */
const SHOWN_BYTES = 1 << 14;
/** Between two words about how far it is. */
const PROGRESS_MS = 80;

let file = new Blob();
let seen: Outline | null = null;

const bytesOf = async (from: number, length: number) => new Uint8Array(await file.slice(from, from + length).arrayBuffer());

async function judge(given: Blob, onProgress: (progress: Progress) => void): Promise<Judged> {
  file = given;
  seen = null;
  const begun = performance.now();
  const evidence = await judgeEvidence(file);
  if (evidence) return { ...evidence, elapsedMs: performance.now() - begun };
  const report = await audit(file, {
    onProgress: ({ bytes, items: done, declaredItems }) => onProgress({ bytes: Number(bytes), totalBytes: file.size, items: done, declaredItems }),
  });
  return { family: "audit", report, about: [], elapsedMs: performance.now() - begun };
}

async function rowOf(item: number) {
  if (!seen) throw new Error("there is no outline yet");
  return (await items(file, seen, item, 1))[0];
}

async function shown(item: number): Promise<ShownItem | null> {
  const row = await rowOf(item);
  if (!row) return null;
  const bytes = await bytesOf(row.offset, row.length);
  return { row, bytes: bytes.slice(0, SHOWN_BYTES), described: await describe(bytes) };
}

async function evidence([a, b]: [number, number]): Promise<Uint8Array | null> {
  const [left, right] = [await rowOf(a), await rowOf(b)];
  if (!left || !right || !seen?.head) return null;
  const [head, first, second] = await Promise.all([
    bytesOf(0, seen.head.bytes),
    bytesOf(left.offset, left.length),
    bytesOf(right.offset, right.length),
  ]);
  return portableEvidence({ head, a: first, b: second });
}

async function answer(request: Request, onProgress: (progress: Progress) => void): Promise<Calls[Name]["out"]> {
  switch (request.name) {
    case "judge":
      return judge(request.given.file, onProgress);
    case "outline":
      seen = await outline(file, {
        onProgress: ({ bytes, items: done }) => onProgress({ bytes: Number(bytes), totalBytes: file.size, items: done, declaredItems: null }),
      });
      return seen;
    case "items":
      return seen ? items(file, seen, request.given.first, request.given.count) : [];
    case "item":
      return shown(request.given.item);
    case "evidence":
      return evidence(request.given.items);
  }
}

const say = (message: Answer) => postMessage(message);

addEventListener("message", ({ data: request }: MessageEvent<Request>) => {
  const { id } = request;
  let next = 0;
  const onProgress = (progress: Progress) => {
    const now = performance.now();
    if (now < next) return;
    next = now + PROGRESS_MS;
    say({ id, kind: "progress", progress });
  };
  answer(request, onProgress).then(
    (value) => say({ id, kind: "answer", answer: value }),
    (thrown: unknown) => {
      const { code = "client/unexpected", message = String(thrown) } = thrown as { code?: string; message?: string };
      say({ id, kind: "failure", code, message });
    },
  );
});
