/** The package as an application has it: its files, and a page with nothing on it. */
import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { ROOT } from "./root.js";

const TYPES: Record<string, string> = { ".js": "text/javascript", ".wasm": "application/wasm" };

/** Serves `/pkg/dist` and `/pkg/generated`, and an empty page everywhere else. */
export async function servePackage(): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url ?? "/", "http://localhost").pathname);
    const file = join(ROOT, path);
    if (/^\/pkg\/(dist|generated)\//.test(path) && existsSync(file)) {
      response.setHeader("content-type", TYPES[extname(file)] ?? "application/octet-stream");
      createReadStream(file).pipe(response);
    } else {
      response.setHeader("content-type", "text/html");
      response.end("<!doctype html><title>a page</title>");
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
