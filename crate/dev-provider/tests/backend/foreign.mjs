// Speaks to a backend through a gRPC-Web client and a protobuf codec that we did not write, with nothing of ours but the
// compiled .proto file. Prints what it saw as one JSON object.
//
//   node foreign.mjs URL DESCRIPTORS honest|faulty
import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";

const [url, descriptors, scenario] = process.argv.slice(2);
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(descriptors)));
const transport = createGrpcWebTransport({ baseUrl: url });
const client = (name) => createClient(registry.getService(`xmtp.backend.v1.${name}`), transport);
const [subscriptions, queries, publications] = ["SubscriptionService", "QueryService", "PublishService"].map(client);

const group = new Uint8Array(16).fill(9);
const topic = { topic: new Uint8Array([0, ...group]) };
const message = (text) => ({
  payload: { case: "groupMessage", value: { data: new Uint8Array([...group, ...new TextEncoder().encode(text)]) } },
});
const text = (row) => new TextDecoder().decode(row.envelope.payload.value.data.slice(16));
const publish = async (...texts) => {
  const { envelopeMetas } = await publications.publish({ envelopes: texts.map(message) });
  return envelopeMetas.map((meta) => Number(meta.cursor.sequenceId));
};

async function honest() {
  const places = await publish("one", "two", "three");
  const refused = await publications.publish({ envelopes: [message("good"), {}] }).catch(ConnectError.from);
  const [detail] = refused.findDetails(registry.getMessage("xmtp.backend.v1.PublishError"));
  const page = await queries.query({ queries: [{ topic, cursor: { sequenceId: BigInt(places[0]) } }], limit: 1 });
  const newest = await queries.queryNewest({ topics: [topic], includeFullEnvelope: true });
  const abort = new AbortController();
  const seen = [];
  try {
    for await (const { response } of subscriptions.subscribeStatic({ topics: [{ topic }] }, { signal: abort.signal })) {
      if (response.case === "started") {
        seen.push(["started", response.value.targets.map((target) => Number(target.throughSequenceId))]);
      } else if (response.case === "messages") {
        seen.push(...response.value.envelopes.map((row) => ["row", text(row)]));
        // A publication while we listen, once.
        if (seen.length === 4) places.push(...(await publish("four")));
      } else {
        seen.push([response.case]);
        abort.abort();
      }
    }
  } catch (error) {
    if (ConnectError.from(error).code !== Code.Canceled) throw error;
  }
  return {
    places,
    refused: { code: Code[refused.code], index: detail.index, reason: detail.reason },
    page: { rows: page.envelopes.map(text), hasMore: page.continuation.hasMore },
    newest: newest.results.map((result) => [Number(result.meta.cursor.sequenceId), text(result)]),
    hash: page.envelopes[0].meta.messageHash.hash.value.length,
    seen,
  };
}

// One stream after the other, each to its end.
async function faulty() {
  const ends = [];
  for (let stream = 0; stream < 2; stream += 1) {
    const seen = [];
    try {
      for await (const { response } of subscriptions.subscribeStatic({ topics: [{ topic }] })) seen.push(response.case);
      ends.push([seen, "clean"]);
    } catch (error) {
      ends.push([seen, Code[ConnectError.from(error).code]]);
    }
  }
  return ends;
}

console.log(JSON.stringify(await { honest, faulty }[scenario]()));
