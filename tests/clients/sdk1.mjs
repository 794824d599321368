// The tour by version 1 of the official TypeScript SDK. Usage: sdk1.mjs WAY, with `stdio`, `http` or `sse`.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

import { answers, environment, queue, tour } from "./tour.mjs";

const way = process.argv[2];
const transports = {
  stdio: () => new StdioClientTransport({ command: process.env.SKILLZ, env: environment }),
  http: () => new StreamableHTTPClientTransport(new URL(`${process.env.SKILLZ_URL}/mcp`)),
  sse: () => new SSEClientTransport(new URL(`${process.env.SKILLZ_URL}/sse`)),
};

const start = async () => {
  const client = new Client({ name: "tour", version: "1" }, { capabilities: { elicitation: {}, sampling: {} } });
  const told = queue();
  client.setRequestHandler(ElicitRequestSchema, answers.form);
  client.setRequestHandler(CreateMessageRequestSchema, answers.sample);
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => told.put("tools"));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => told.put(params.uri));
  await client.connect(transports[way]());
  return {
    reports: true,
    asks: true,
    scripts: true,
    list: async () => (await client.listTools()).tools,
    call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, { timeout: 200_000, ...options }),
    resources: async () => (await client.listResources()).resources,
    read: async (uri) => (await client.readResource({ uri })).contents,
    templates: async () => (await client.listResourceTemplates()).resourceTemplates,
    prompts: async () => (await client.listPrompts()).prompts,
    prompt: async (name, args) => (await client.getPrompt({ name, arguments: args })).messages,
    complete: async (name, argument, value) =>
      (await client.complete({ ref: { type: "ref/prompt", name }, argument: { name: argument, value } })).completion.values,
    changes: async (uri) => {
      await client.subscribeResource({ uri });
      return { next: told.next, close: () => client.unsubscribeResource({ uri }) };
    },
    close: () => client.close(),
  };
};

await tour(start);
