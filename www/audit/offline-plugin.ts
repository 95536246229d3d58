/** Writes the service worker of the auditor's page: with the list of the files that it keeps. */
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { Plugin } from "vite";

const TEMPLATE = new URL("./service-worker.js", import.meta.url);
const NAME = "offline.js";

/** Of other pages, and of recording from a provider, which needs a network anyway. */
const LEFT_OUT = /^(?!audit\.html$).*\.html$|remuda_client|^offline\.js$/;

function files(folder: string, from = folder): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? files(path, from) : [relative(from, path)];
  });
}

export function offline(): Plugin {
  let out = "";
  return {
    name: "remuda-offline",
    apply: "build",
    configResolved({ root, build }) {
      out = join(root, build.outDir);
    },
    closeBundle() {
      const kept = files(out).filter((file) => !LEFT_OUT.test(file)).sort();
      const hash = createHash("sha256");
      for (const file of kept) hash.update(file).update(readFileSync(join(out, file)));
      const script = readFileSync(TEMPLATE, "utf8");
      const list = JSON.stringify(kept.map((file) => `./${file}`));
      writeFileSync(join(out, NAME), script.replace("__VERSION__", hash.digest("hex").slice(0, 16)).replace("__FILES__", list));
    },
  };
}
