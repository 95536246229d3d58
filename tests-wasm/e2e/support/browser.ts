/** The browser of the system, and one that can be killed. */
import { chromium } from "@playwright/test";
import type { Browser, BrowserContext } from "@playwright/test";
import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ROOT } from "./root.js";

interface Webdriver {
  "goog:chromeOptions": { binary: string; args: string[] };
}

const options = (JSON.parse(readFileSync(join(ROOT, "webdriver.json"), "utf8")) as Webdriver)["goog:chromeOptions"];

export const CHROMIUM = process.env["CHROMIUM"] ?? options.binary;
export const CHROMIUM_ARGUMENTS = options.args;

/** A browser process of our own over a profile that stays, to be killed at any moment. */
export class MortalBrowser {
  private constructor(
    private readonly process: ChildProcess,
    private readonly browser: Browser,
    readonly context: BrowserContext,
  ) {}

  static async start(profile: string): Promise<MortalBrowser> {
    // What a killed browser leaves behind to say that it is running, and where.
    for (const name of ["SingletonLock", "SingletonCookie", "SingletonSocket", "DevToolsActivePort"]) rmSync(join(profile, name), { force: true });
    const child = spawn(
      CHROMIUM,
      [...CHROMIUM_ARGUMENTS, "--remote-debugging-port=0", `--user-data-dir=${profile}`, "--hide-crash-restore-bubble", "about:blank"],
      // A group of its own, so that its renderers die with it.
      { detached: true, stdio: "ignore" },
    );
    const portFile = join(profile, "DevToolsActivePort");
    for (let tries = 0; tries < 200; tries++) {
      const port = Number(tryRead(portFile)?.split("\n")[0]);
      if (port > 0) {
        const browser = await chromium.connectOverCDP(`http://127.0.0.1:${port}`);
        return new MortalBrowser(child, browser, browser.contexts()[0]!);
      }
      await sleep(50);
    }
    kill(child);
    throw new Error(`${CHROMIUM} did not start`);
  }

  /** `kill -9`, and not before it is dead. */
  async kill(): Promise<void> {
    const exited = new Promise((resolve) => this.process.once("exit", resolve));
    kill(this.process);
    await exited;
    await this.browser.close().catch(() => undefined);
  }
}

function kill(child: ChildProcess): void {
  if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, "SIGKILL");
}

function tryRead(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
