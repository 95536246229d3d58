/** What the chain says: grants that it withdraws while a page is open, and nodes that do not say the same. */
import { createServer } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Lanes, expect, test } from "../support/test.js";

test("a withdrawn grant is replaced while the page is open", async ({ page, provide }) => {
  const provider = await provide({ control: true });
  const lanes = await Lanes.open(page, provider);
  await lanes.pass(10);
  for (const operation of ["bump-authorization", "rotate-admin"]) {
    await provider.control("chain", { operation });
    await expect(await lanes.append(`after ${operation}`)).toHaveAttribute("data-state", "durable");
    await lanes.pass(await lanes.item());
  }
  await expect(lanes.part("failure")).toBeHidden();
  await expect(lanes.part("connection")).toHaveAttribute("data-state", "open");
});

/** A node that passes on what another one says, bent. */
async function relay(node: string, bend: (state: Buffer) => void): Promise<{ url: string; server: Server }> {
  const server = createServer(async (request, response) => {
    const answer = await fetch(`${node}${request.url}`);
    const body = Buffer.from(await answer.arrayBuffer());
    if (answer.ok) bend(body);
    response.writeHead(answer.status, { "access-control-allow-origin": "*", "content-type": "application/octet-stream" }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

/** Says that the rent is paid up to another height: any byte would do. */
function lie(state: Buffer): void {
  const last = state.length - 1;
  state[last] = state[last]! ^ 1;
}

test("one of three chain nodes lies and is outvoted; one of two is a disagreement", async ({ page, provide }) => {
  const provider = await provide();
  const [honest, liar] = [await relay(provider.url, () => undefined), await relay(provider.url, lie)];
  try {
    const three = `?database=three&chain-node=${honest.url}&chain-node=${liar.url}`;
    await page.goto(`${provider.url}/${three}`);
    const lanes = new Lanes(page);
    await lanes.pass(10);
    await expect(lanes.part("failure")).toBeHidden();

    await page.goto(`${provider.url}/?database=two&chain-node=${liar.url}`);
    await expect(page.getByText("too few of the chain nodes gave the same answer").first()).toBeVisible();
    expect(await lanes.item()).toBe(0);
  } finally {
    honest.server.close();
    liar.server.close();
  }
});
