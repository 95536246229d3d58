import { defineConfig } from "@playwright/test";
import { CHROMIUM, CHROMIUM_ARGUMENTS } from "./support/browser.js";

export default defineConfig({
  testDir: "./tests",
  outputDir: "../../test-results/e2e",
  // Each test has a provider and a browser of its own, and some measure time.
  workers: 1,
  timeout: 60_000,
  // A gate runs on shared machines: what passes only the second time is reported as flaky, not hidden.
  retries: process.env.CI ? 1 : 0,
  expect: { timeout: 15_000 },
  forbidOnly: true,
  reporter: [["list"]],
  use: {
    launchOptions: { executablePath: CHROMIUM, args: CHROMIUM_ARGUMENTS },
    screenshot: "only-on-failure",
    trace: "off",
  },
});
