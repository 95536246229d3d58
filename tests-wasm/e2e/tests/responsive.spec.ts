/** What a worker verifies does not keep its page waiting: not even the largest frame that there can be. */
import { expect, test } from "@playwright/test";
import { readFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";

const ORIGIN = "http://worker.localhost";
const TYPES: Record<string, string> = { ".js": "text/javascript", ".wasm": "application/wasm" };

/** Judges the frame again and again, and says when it begins, and what each time came to. */
const WORKER = `
  import init, { FullFrame } from "/glue/vectors.js";
  await init();
  const frame = new FullFrame();
  postMessage({ bytes: 0 });
  for (let left = 5; left > 0; left--) postMessage({ bytes: frame.judge() });
`;

test("a frame of 512 lanes and 256 siblings each is judged in a worker while the page goes on", async ({ page }) => {
  const glue = process.env["REMUDA_VECTORS_GLUE"];
  if (glue === undefined) throw new Error("REMUDA_VECTORS_GLUE names no glue: run `cargo xtask e2e`");
  await page.route(`${ORIGIN}/**`, (route) => {
    const path = new URL(route.request().url()).pathname;
    if (path === "/") return route.fulfill({ contentType: "text/html", body: "<!doctype html><link rel=icon href='data:,'>" });
    if (path === "/worker.js") return route.fulfill({ contentType: TYPES[".js"]!, body: WORKER });
    const file = join(dirname(glue), path.replace("/glue/", ""));
    return route.fulfill({ contentType: TYPES[extname(file)]!, body: readFileSync(file) });
  });
  await page.goto(`${ORIGIN}/`);

  const seen = await page.evaluate(async () => {
    const worker = new Worker("/worker.js", { type: "module" });
    const judged: { bytes: number; at: number }[] = [];
    const over = new Promise<void>((done, failed) => {
      worker.onerror = (event) => failed(new Error(event.message));
      worker.onmessage = (event: MessageEvent<{ bytes: number }>) => {
        judged.push({ bytes: event.data.bytes, at: performance.now() });
        if (judged.length === 6) done();
      };
    });
    const ticks: number[] = [];
    const timer = setInterval(() => ticks.push(performance.now()), 10);
    await over;
    clearInterval(timer);
    worker.terminate();
    const [begun, ended] = [judged[0]!.at, judged[5]!.at];
    return { bytes: judged[5]!.bytes, ms: ended - begun, ticks: ticks.filter((at) => begun < at && at < ended).length };
  });

  expect(seen.bytes).toBeGreaterThan(4_000_000);
  // A page that waited for its worker would not have ticked once; one that shares a loaded processor ticks late.
  expect(seen.ticks).toBeGreaterThan(4);
  test.info().annotations.push({ type: "judged", description: `5 frames in ${seen.ms.toFixed(0)} ms, ${seen.ticks} ticks` });
});
