// The tour by version 1 of the official TypeScript SDK.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

import { environment, tour } from "./tour.mjs";

await tour(async () => {
  const client = new Client({ name: "tour", version: "1" });
  await client.connect(new StdioClientTransport({ command: process.env.SKILLZ, env: environment }));
  return {
    list: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: (name, args) => client.callTool({ name, arguments: args }, undefined, { timeout: 200_000 }),
    close: () => client.close(),
  };
});
