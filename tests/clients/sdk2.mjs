// The tour by version 2 of the official TypeScript SDK. Usage: sdk2.mjs MODE, with `legacy` or `auto`.

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { environment, tour } from "./tour.mjs";

await tour(async () => {
  const client = new Client({ name: "tour", version: "1" }, { versionNegotiation: { mode: process.argv[2] } });
  await client.connect(new StdioClientTransport({ command: process.env.SKILLZ, env: environment }));
  return {
    list: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: (name, args) => client.callTool({ name, arguments: args }, { timeout: 200_000 }),
    close: () => client.close(),
  };
});
