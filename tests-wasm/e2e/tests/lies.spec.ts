import { setTimeout as sleep } from "node:timers/promises";
import { Lanes, SCREENS, expect, test } from "../support/test.js";

/** Every lie of the provider, and the code that catches it (VERDICTS). */
const LIES: Record<string, string> = {
  "withhold-record": "verify/lane-count",
  "inject-record": "verify/lane-count",
  "relabel-lane": "verify/lane-count",
  "extra-lane": "protocol/coverage-extraneous",
  "unlinked-receipt": "verify/checkpoint-predecessor",
  "wrong-key": "verify/signature",
  "void-without-transition": "protocol/epoch-without-transition",
};

for (const [lie, code] of Object.entries(LIES)) {
  test(`${lie} is caught as ${code}, and the position stays`, async ({ page, provide }) => {
    const provider = await provide({ lie, lieAfter: 3 });
    const lanes = await Lanes.open(page, provider);
    const failure = lanes.part("failure");
    await expect(failure).toBeVisible();
    await expect(failure).toHaveAttribute("data-code", code);
    await expect(failure).toContainText(code);
    await expect(failure).toHaveAttribute("data-rule", /§/);
    await expect(failure.getByRole("heading")).toHaveCSS("color", "rgb(163, 35, 28)");

    // It was honest before: there is a position to hold.
    const { heldItem, heldRevision } = await lanes.data("failure");
    expect(Number(heldItem)).toBeGreaterThan(0);
    await sleep(1_500);
    const position = await lanes.position();
    expect(position).toMatchObject({ item: heldItem, revision: heldRevision });
    await expect(failure).toHaveAttribute("data-moved", "false");

    // Trying again, it is lied to again: still nothing moves.
    await page.reload();
    await expect(failure).toHaveAttribute("data-code", code);
    expect(await lanes.position()).toEqual(position);
    const { items } = await lanes.export();
    expect(String(items.length)).toBe(heldItem);
  });
}

test("a picture of a lie", async ({ page, provide }) => {
  const provider = await provide({ lie: "withhold-record", lieAfter: 30 });
  for (const viewport of [{ width: 1280, height: 800 }, { width: 390, height: 844 }]) {
    await page.setViewportSize(viewport);
    const lanes = await Lanes.open(page, provider);
    await expect(lanes.part("failure")).toBeVisible();
    await sleep(300);
    await page.screenshot({ path: `${SCREENS}/lie-${viewport.width}x${viewport.height}.png` });
  }
});
