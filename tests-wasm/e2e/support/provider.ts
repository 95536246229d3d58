/** The dev provider as a process. */
import type { ChildProcess } from "node:child_process";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ROOT } from "./root.js";

const NAME = "remuda-dev-provider";
const LISTENING = `${NAME} listening on `;

export interface ProviderOptions {
  /** Records a second that it writes by itself. Default 40. */
  writer?: number;
  lanes?: number;
  batchMs?: number;
  lie?: string;
  /** Honest checkpoints before the lie. */
  lieAfter?: number;
  /** The directory that it serves. The pages of the project by default. */
  pages?: string;
  /** Whether {@link Provider.control} works. */
  control?: boolean;
  /** Whatever else it is started with. */
  more?: string[];
}

export class Provider {
  #process: ChildProcess | null = null;
  #address = "127.0.0.1:0";
  readonly #data = mkdtempSync(join(tmpdir(), "remuda-e2e-"));
  #log: string[] = [];

  private constructor(private readonly options: ProviderOptions) {}

  static async start(options: ProviderOptions = {}): Promise<Provider> {
    const provider = new Provider(options);
    await provider.start();
    return provider;
  }

  /** Where its pages and its API are, without a slash at the end. */
  get url(): string {
    return `http://${this.#address}`;
  }

  /** What it wrote to its log, for when a test fails. */
  get log(): string {
    return this.#log.join("\n");
  }

  /** Starts it, again at the same address and over the same data; differently, where `over` says so. */
  async start(over: ProviderOptions = {}): Promise<void> {
    const { writer = 40, lanes = 8, batchMs = 100, lie, lieAfter, control, pages, more = [] } = Object.assign(this.options, over);
    const child = spawn(
      program(),
      [
        "serve",
        ...["--data", this.#data, "--listen", this.#address, "--pages", pages ?? process.env["REMUDA_PAGES"] ?? join(ROOT, "www/dist")],
        ...["--writer", String(writer), "--lanes", String(lanes), "--batch-ms", String(batchMs)],
        ...(lie === undefined ? [] : ["--lie", lie]),
        ...(control ? ["--control"] : []),
        ...(lieAfter === undefined ? [] : ["--lie-after", String(lieAfter)]),
        ...more,
      ],
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    this.#process = child;
    createInterface(child.stderr!).on("line", (line) => this.#log.push(line));
    this.#address = await new Promise<string>((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`the provider ended with ${code}:\n${this.log}`)));
      createInterface(child.stdout!).on("line", (line) => {
        if (line.startsWith(LISTENING)) resolve(new URL(line.slice(LISTENING.length)).host);
      });
    });
  }

  /** Has something happen in it: what, and how. */
  async control(what: string, how: object): Promise<void> {
    const response = await fetch(`${this.url}/demo/control/${what}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(how),
    });
    if (!response.ok) throw new Error(`control ${what}: ${response.status} ${await response.text()}`);
  }

  /** Ends it, and not before it has ended. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await exited;
  }

  /** Ends it for good, data and all. */
  async dispose(): Promise<void> {
    await this.end("SIGKILL");
    rmSync(this.#data, { recursive: true, force: true });
  }
}

let found: string | null = null;

function program(): string {
  found ??= process.env["REMUDA_DEV_PROVIDER"] ?? built();
  return found;
}

function built(): string {
  const metadata = execFileSync("cargo", ["metadata", "--no-deps", "--format-version", "1"], { cwd: ROOT, maxBuffer: 1 << 26 });
  const { target_directory: target } = JSON.parse(metadata.toString()) as { target_directory: string };
  const path = join(target, "debug", NAME);
  if (!existsSync(path)) throw new Error(`${path} is not there: run \`cargo xtask e2e\`, or set REMUDA_DEV_PROVIDER`);
  return path;
}
