// The tour by the Inspector's command line, which starts a server for each request. Usage: inspector.mjs ERA, with
// `legacy` or `modern`.

import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { environment, tour } from "./tour.mjs";

const run = promisify(execFile);
const era = process.argv[2];
const folder = await mkdtemp(join(tmpdir(), "inspector-"));
const config = join(folder, "servers.json");
const server = { type: "stdio", command: process.env.SKILLZ, args: [], env: environment, protocolEra: era };
await writeFile(config, JSON.stringify({ mcpServers: { skillz: server } }));

const home = dirname(fileURLToPath(import.meta.resolve("@modelcontextprotocol/inspector/package.json")));
const bin = JSON.parse(await readFile(join(home, "package.json"), "utf8")).bin;
const program = join(home, typeof bin === "string" ? bin : bin["mcp-inspector"]);

/** Sends one request; a tool's failure comes with an exit code of its own, and its result all the same. */
async function request(...args) {
  const command = [program, "--cli", "--config", config, "--server", "skillz", "--format", "json", ...args];
  const env = { ...process.env, MCP_INSPECTOR_SECRET_STORE: "memory" };
  const { stdout } = await run(process.execPath, command, { env, maxBuffer: 1 << 26 }).catch((error) => {
    if (error.stdout?.trim()) return error;
    throw new Error(error.stderr || error.message);
  });
  return JSON.parse(stdout);
}

try {
  await tour(async () => ({
    list: async () => {
      const answer = await request("--method", "tools/list");
      return (answer.tools ?? answer.result.tools).map((tool) => tool.name);
    },
    call: async (name, args) => {
      const answer = await request("--method", "tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args));
      return answer.result ?? answer;
    },
    close: async () => {},
  }));
} finally {
  await rm(folder, { recursive: true });
}
