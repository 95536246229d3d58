// Measures in a page of headless Chromium: node page.mjs GLUE, the wasm-bindgen output with `--target web`.
//
// The browser is the one that the variable CHROMIUM names. Its page asks for files of an origin that is answered from disk.
import { readFileSync } from "node:fs";
import { basename, dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const ORIGIN = "http://bench.localhost";
const TYPES = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };

const glue = resolve(process.argv[2]);
const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "../..");
const folders = { bench: here, glue: dirname(glue), node_modules: join(root, "node_modules") };
const args = JSON.parse(readFileSync(join(root, "webdriver.json"), "utf8"))["goog:chromeOptions"].args;

const libraries = Object.fromEntries(["@noble/curves/", "@noble/hashes/"].map((name) => [name, `/node_modules/${name}`]));
const page = (imports) => `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<script type="importmap">${JSON.stringify({ imports })}</script>
<script type="module">
  import init, * as glue from "/glue/${basename(glue)}";
  import { measure } from "/bench/measure.mjs";
  try {
    await init();
    measure(glue, (line) => console.log(line));
    console.log("over");
  } catch (error) {
    console.log("failed: " + (error?.stack ?? error));
  }
</script>`;

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args });
try {
  const tab = await browser.newPage();
  await tab.route(`${ORIGIN}/**`, (route) => {
    const [folder, ...path] = new URL(route.request().url()).pathname.slice(1).split("/");
    if (folder === "") return route.fulfill({ contentType: "text/html", body: page(libraries) });
    const file = join(folders[folder] ?? here, ...path);
    return route.fulfill({ contentType: TYPES[extname(file)], body: readFileSync(file) });
  });
  const over = new Promise((done, failed) => {
    tab.on("console", (message) => {
      const line = message.text();
      if (line === "over") done();
      else if (line.startsWith("failed: ")) failed(new Error(line));
      else console.log(line);
    });
    tab.on("crash", () => failed(new Error("the page crashed")));
  });
  await tab.goto(`${ORIGIN}/`);
  await over;
} finally {
  await browser.close();
}
