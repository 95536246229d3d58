/** What the page is about: its address, the demo's facts, and a grant for this browser's key. Kept, so that it opens offline. */
import type { HolderKey, SubscriptionSpec } from "remuda";

/** `GET {node}/demo/info`. */
export interface Info {
  context: string;
  streamId: string;
  providerKey: string;
  /** Where the provider is dialled without TLS: for long-poll, and for a WebSocket. */
  endpoint: string;
  webSocket: string;
  lanes: Lane[];
}

export interface Lane {
  id: string;
  name: string;
}

export interface Setup {
  info: Info;
  grant: string;
}

export interface Parameters {
  node: string;
  /** More nodes that chain reads must agree with. */
  chainNodes: string[];
  database: string;
  /** Names or ids, `all`, or null for every lane that the demo names. */
  lanes: string[] | "all" | null;
  /** The only transport to use, or null for whichever works. */
  transport: "web-socket" | "long-poll" | null;
}

const FETCH_MS = 4_000;

export function parameters(address: URL): Parameters {
  const lanes = address.searchParams.get("lanes");
  const transport = address.searchParams.get("transport");
  return {
    node: (address.searchParams.get("node") ?? address.origin).replace(/\/+$/, ""),
    chainNodes: address.searchParams.getAll("chain-node"),
    database: address.searchParams.get("database") ?? "remuda-lanes",
    lanes: lanes === null ? null : lanes === "all" ? "all" : lanes.split(",").filter((lane) => lane !== ""),
    transport: transport === "web-socket" || transport === "long-poll" ? transport : null,
  };
}

/** The lanes that are asked for, by id or by name. */
export function chosenLanes(parameters: Parameters, info: Info): Lane[] {
  const { lanes } = parameters;
  if (lanes === null || lanes === "all") return info.lanes;
  return lanes.map((lane) => info.lanes.find(({ id, name }) => id === lane || name === lane) ?? { id: lane, name: lane.slice(0, 8) });
}

export function subscription(parameters: Parameters, info: Info): SubscriptionSpec {
  return parameters.lanes === "all"
    ? { lanes: "all", verification: "full-stream" }
    : { lanes: chosenLanes(parameters, info).map(({ id }) => id), verification: "scoped-proofs" };
}

export function remembered(parameters: Parameters): Setup | null {
  try {
    return JSON.parse(localStorage.getItem(slot(parameters)) ?? "null") as Setup | null;
  } catch {
    // Whatever is there is not ours to read: it is fetched anew.
    return null;
  }
}

/** Asks the demo node, and keeps what it says. */
export async function fetched(parameters: Parameters, holder: HolderKey): Promise<Setup> {
  const info = (await json(`${parameters.node}/demo/info`)) as Info;
  const { grant } = (await json(`${parameters.node}/demo/grant`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ holderKey: hex(holder.publicKey) }),
  })) as { grant: string };
  const setup = { info, grant };
  localStorage.setItem(slot(parameters), JSON.stringify(setup));
  return setup;
}

function slot({ node, database }: Parameters): string {
  return `remuda-lanes ${database} ${node}`;
}

async function json(address: string, options: RequestInit = {}): Promise<unknown> {
  const response = await fetch(address, { ...options, signal: AbortSignal.timeout(FETCH_MS) });
  if (!response.ok) throw new Error(`${address}: HTTP ${response.status}`);
  return response.json();
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function unhex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** The provider's endpoints for the transport that was asked for. */
export function endpoints(info: Info, transport: Parameters["transport"]): string[] {
  if (transport === "web-socket") return [info.webSocket];
  if (transport === "long-poll") return [info.endpoint];
  return [info.webSocket, info.endpoint];
}
