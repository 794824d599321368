// The tour by the Inspector's command line, which connects anew for each request. Usage: inspector.mjs ERA WAY, with
// `legacy` or `modern`, and `stdio`, `http` or `sse`.

import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { environment, tour } from "./tour.mjs";

const run = promisify(execFile);
const TOOL_FAILED = 5;
const [era, way] = process.argv.slice(2);
const servers = {
  stdio: { type: "stdio", command: process.env.SKILLZ, args: [], env: environment },
  http: { type: "streamable-http", url: `${process.env.SKILLZ_URL}/mcp` },
  sse: { type: "sse", url: `${process.env.SKILLZ_URL}/sse` },
};
const folder = await mkdtemp(join(tmpdir(), "inspector-"));
const config = join(folder, "servers.json");
await writeFile(config, JSON.stringify({ mcpServers: { skillz: { ...servers[way], protocolEra: era } } }));

const home = dirname(fileURLToPath(import.meta.resolve("@modelcontextprotocol/inspector/package.json")));
const bin = JSON.parse(await readFile(join(home, "package.json"), "utf8")).bin;
const program = join(home, typeof bin === "string" ? bin : bin["mcp-inspector"]);

/** Sends one request; a tool's failure comes with an exit code of its own, and its result all the same. */
async function request(...args) {
  const command = [program, "--cli", "--config", config, "--server", "skillz", "--format", "json", "--method", ...args];
  const env = { ...process.env, MCP_INSPECTOR_SECRET_STORE: "memory" };
  const { stdout } = await run(process.execPath, command, { env, maxBuffer: 1 << 26 }).catch((error) => {
    if (error.code === TOOL_FAILED && error.stdout?.trim()) return error;
    throw new Error(error.stderr || error.message);
  });
  const answer = JSON.parse(stdout);
  return answer.result ?? answer;
}

const pairs = (args) => Object.entries(args).map(([name, value]) => `${name}=${value}`);

const client = {
  // Problems of schemas that any client may have are failures here.
  list: async () => (await request("tools/list", "--strict")).tools,
  call: (name, args) => request("tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args)),
  resources: async () => (await request("resources/list")).resources,
  read: async (uri) => (await request("resources/read", "--uri", uri)).contents,
  templates: async () => (await request("resources/templates/list")).resourceTemplates,
  prompts: async () => (await request("prompts/list")).prompts,
  prompt: async (name, args) => (await request("prompts/get", "--prompt-name", name, "--prompt-args", ...pairs(args))).messages,
  close: async () => {},
};

try {
  await tour(async () => client);
} finally {
  await rm(folder, { recursive: true });
}
