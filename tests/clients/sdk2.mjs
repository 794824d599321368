// The tour by version 2 of the official TypeScript SDK. Usage: sdk2.mjs MODE WAY, with `legacy` or `auto`, and `stdio`,
// `http` or `sse`.

import assert from "node:assert/strict";

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { answers, environment, queue, tour } from "./tour.mjs";

const [mode, way] = process.argv.slice(2);
const transports = {
  stdio: () => new StdioClientTransport({ command: process.env.SKILLZ, env: environment }),
  http: () => new StreamableHTTPClientTransport(new URL(`${process.env.SKILLZ_URL}/mcp`)),
  sse: () => new SSEClientTransport(new URL(`${process.env.SKILLZ_URL}/sse`)),
};

const start = async () => {
  const client = new Client(
    { name: "tour", version: "1" },
    { capabilities: { elicitation: {}, sampling: {} }, versionNegotiation: { mode } },
  );
  const told = queue();
  client.setRequestHandler("elicitation/create", answers.form);
  client.setRequestHandler("sampling/createMessage", answers.sample);
  client.setNotificationHandler("notifications/tools/list_changed", () => told.put("tools"));
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => told.put(params.uri));
  await client.connect(transports[way]());
  assert.equal(client.getProtocolEra(), mode === "auto" ? "modern" : "legacy");
  return {
    reports: true,
    asks: true,
    list: async () => (await client.listTools(undefined, { cacheMode: "refresh" })).tools,
    call: (name, args, options) => client.callTool({ name, arguments: args }, { timeout: 200_000, ...options }),
    resources: async () => (await client.listResources()).resources,
    read: async (uri) => (await client.readResource({ uri })).contents,
    templates: async () => (await client.listResourceTemplates()).resourceTemplates,
    prompts: async () => (await client.listPrompts()).prompts,
    prompt: async (name, args) => (await client.getPrompt({ name, arguments: args })).messages,
    complete: async (name, argument, value) =>
      (await client.complete({ ref: { type: "ref/prompt", name }, argument: { name: argument, value } })).completion.values,
    changes: async (uri) => {
      if (mode === "legacy") {
        await client.subscribeResource({ uri });
        return { next: told.next, close: () => client.unsubscribeResource({ uri }) };
      }
      const stream = await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
      return { next: told.next, close: () => stream.close() };
    },
    close: () => client.close(),
  };
};

await tour(start);
