// Runs `program.mjs` in node with the same kit as the embedded interpreter, over the workers' protocol.
import { createRequire } from "node:module";
import fs from "node:fs";

const makeKit = createRequire(import.meta.url)("./kit.cjs");
const own = ["console", "setTimeout", "setInterval", "clearTimeout", "clearInterval", "queueMicrotask"];
const kept = own.map((name) => [name, globalThis[name]]);
const exit = process.exit.bind(process);
let run = 0, lines = [], original = [];

function write(message) {
  const body = Buffer.from(JSON.stringify(message));
  const prefix = Buffer.alloc(4);
  prefix.writeUInt32LE(body.length);
  let rest = Buffer.concat([prefix, body]);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(fs.writeSync(1, rest));
    } catch (error) {
      if (error.code !== "EAGAIN") exit(1);
    }
  }
}

const print = (text) => write({ Printed: { run, text } });

// Frames of the program, with its own lines.
function trace(message, stack) {
  const frames = [];
  for (const line of stack.split("\n")) {
    const found = line.match(/^\s*at (?:(?:async )?(.*?) \()?.*program\.mjs:(\d+):(\d+)\)?$/);
    if (!found) continue;
    const number = lines[found[2] - 1] ?? Number(found[2]);
    frames.push({ number, text: `    at ${found[1] ?? "<anonymous>"} (code.js:${number})\n        ${(original[number - 1] ?? "").trim()}` });
  }
  // What a tool said stands in the message, which may have many lines, and is not said again.
  const place = frames.length ? ` (line ${frames[0].number})` : "";
  const [first, ...rest] = message.split("\n");
  const last = message.startsWith("ToolError:") ? "ToolError" : message;
  return { message: [first + place, ...rest].join("\n"), traceback: [last, ...frames.slice(0, 12).map((frame) => frame.text)].join("\n") };
}

function end(state) {
  if (state[0] === "done") write({ Done: { run, result: JSON.parse(state[1]) } });
  else write({ Failed: { run, failure: { kind: "Exception", ...trace(state[1], state[2]) } } });
  exit(0);
}

// What programs without a process of their own cannot do either. The sandbox is the wall; this says so in words.
function refuse() {
  const message = 'programs have no files, no network and no processes here; call a tool, or use runtime "process"';
  const refused = (name) => function () { throw new Error(`${name}: ${message}`); };
  const require = createRequire(import.meta.url);
  const closed = {
    child_process: ["exec", "execSync", "execFile", "execFileSync", "fork", "spawn", "spawnSync"],
    net: ["connect", "createConnection", "createServer"],
    tls: ["connect", "createServer"],
    dgram: ["createSocket"],
    dns: ["lookup", "resolve", "resolve4", "resolve6"],
    http: ["get", "request", "createServer"],
    https: ["get", "request", "createServer"],
    http2: ["connect", "createServer", "createSecureServer"],
    cluster: ["fork"],
    "fs/promises": Object.keys(require("fs/promises")),
    fs: Object.keys(fs).filter((name) => /^[a-z]/.test(name) && name !== "writeSync"),
  };
  // All are loaded before any is changed: they are built upon each other.
  const modules = Object.keys(closed).map((name) => [name, require(name)]);
  for (const [module, inner] of modules) {
    for (const name of closed[module]) {
      try {
        if (typeof inner[name] === "function") inner[name] = refused(`${module}.${name}`);
      } catch {
        // It has only a getter, and reaches nothing by itself.
      }
    }
  }
  require("net").Socket.prototype.connect = refused("net.Socket.connect");
  require("module").syncBuiltinESMExports();
  globalThis.fetch = refused("fetch");
  globalThis.WebSocket = undefined;
  for (const name of ["kill", "binding", "dlopen", "_linkedBinding", "getBuiltinModule"]) process[name] = refused(`process.${name}`);
}

async function start(program) {
  ({ run } = program);
  globalThis.require = createRequire(import.meta.url);
  lines = program.lines ?? [];
  original = (program.original ?? program.code).split("\n");
  process.stdout.write = (chunk) => { print(String(chunk)); return true; };
  const api = makeKit(program.tools, (id, text) => write({ Request: { run, id, request: JSON.parse(text) } }), print);
  for (const [name, value] of kept) if (name !== "console") globalThis[name] = value;
  settle = (reply) => {
    const { Ok: value, Err: error } = reply.result;
    if (error) api.settle(reply.id, false, error.message, error.data == null ? undefined : JSON.stringify(error.data));
    else api.settle(reply.id, true, JSON.stringify(value ?? null));
  };
  let promise;
  try {
    const module = await import("./program.mjs");
    if (process.argv[2] === "strict") refuse();
    await null;
    promise = module.default();
  } catch (error) {
    promise = Promise.reject(error);
  }
  api.start(promise);
  // Timers that are set still run, but no longer than the program may.
  const last = Date.now() + program.budget_ms - 150;
  const hasTimers = () => (process.getActiveResourcesInfo?.() ?? []).some((name) => name === "Timeout" || name === "Immediate");
  const look = () => {
    const state = api.state();
    if (state.length > 0 && (state[0] === "failed" || Date.now() > last || !hasTimers())) end(state);
  };
  // The state changes in a microtask; looking after each turn of the loop sees it at once.
  setInterval(look, 1).unref();
  Promise.allSettled([promise]).then(() => setTimeout(look, 0).unref());
}

let settle = () => {};
let buffer = Buffer.alloc(0);
process.stdin.on("data", (chunk) => {
  buffer = Buffer.concat([buffer, chunk]);
  while (buffer.length >= 4) {
    const length = buffer.readUInt32LE(0);
    if (buffer.length < length + 4) break;
    const message = JSON.parse(buffer.subarray(4, length + 4));
    buffer = buffer.subarray(length + 4);
    if (message.Run) start(message.Run);
    else if (message.Reply) settle(message.Reply);
  }
});
process.stdin.on("end", () => exit(0));
process.on("uncaughtException", (error) => end(["failed", `${error?.name ?? "Error"}: ${error?.message ?? error}`, String(error?.stack ?? "")]));
process.on("unhandledRejection", () => {});
