// The program behind JavaScript function scripts: loads a tool's module once and calls its function again and again.
//
//   node worker.mjs '{"entry": "/path/main.mjs", "mode": "serve"}' 3<requests 4>replies
//
// Requests come on descriptor 3, replies go to descriptor 4, one JSON-RPC line each; stdin, stdout and stderr are the
// tool's own and land in the log. One call at a time. The module is kept between calls, so what a call leaves in
// global variables is there for the next one; files in the working folder are taken away, and a worker whose call
// started processes says so, and is replaced. In the mode `program` it runs one program of `execute_code`, and ends; then
// the channel lies at other descriptors, and stdout is the program's.
import childProcess from "node:child_process";
import fs from "node:fs";
import { createRequire, syncBuiltinESMExports } from "node:module";
import net from "node:net";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { isMainThread } from "node:worker_threads";
import { prepare, runProgram } from "./execute.mjs";
import skillz from "./skillz.cjs";

// Deno and bun know only descriptors that they opened themselves.
const isNode = globalThis.Deno === undefined && globalThis.Bun === undefined;
const descriptors = process.platform === "linux" ? "/proc/self/fd/" : "/dev/fd/";
const options = JSON.parse(process.argv[2]);
const isForPrograms = options.mode === "program";
const [REQUESTS, its] = isForPrograms ? process.env.SKILLZ_HOST_FD.split(",").map(Number) : [3, 4];
const REPLIES = isNode ? its : fs.openSync(`${descriptors}4`, "w");
const start = process.cwd();
const { folder } = options;
const { Channel, writeAll, toJson } = skillz[Symbol.for("skillz.parts")];
const attach = skillz[Symbol.for("skillz.attach")];
const send = (message) => writeAll(REPLIES, JSON.stringify(message) + "\n");
const notify = (method, params) => send({ jsonrpc: "2.0", method, params });

// The id of the call that is under way.
let running;
// Whether it has started processes.
let spawned = false;

// What a call starts must not outlive it. Processes that let go of their parent cannot be found from here, so that it
// is noted whether any was started at all.
function noteProcesses() {
  const note = (holder, name) => {
    const original = holder[name];
    holder[name] = function (...given) {
      spawned = true;
      return original.apply(this, given);
    };
  };
  note(childProcess.ChildProcess.prototype, "spawn");
  for (const name of ["spawnSync", "execSync", "execFileSync"]) note(childProcess, name);
  syncBuiltinESMExports();
}

function describe(error) {
  if (!(error instanceof Error)) return { message: typeof error === "string" ? error : `Thrown: ${JSON.stringify(error)}`, kind: typeof error };
  const own = (line) => !line.includes("/worker.mjs:") && !line.includes("/skillz.cjs:") && !line.includes("(node:");
  const stack = String(error.stack ?? error).split("\n").filter(own).join("\n");
  const shown = stack.replaceAll(pathToFileURL(path.dirname(options.entry) + path.sep).href, "").replaceAll(path.dirname(options.entry) + path.sep, "");
  const cause = error.cause instanceof Error ? `\nCaused by: ${describe(error.cause).traceback}` : "";
  return { message: `${error.name}: ${error.message}`, kind: error.name, traceback: shown + cause };
}

function encode(value) {
  const notes = [];
  const text = toJson(value, notes);
  if (notes.length > 0) console.error(`${notes.slice(0, 5).join(", ")} became null: JSON has no NaN and no infinity`);
  return text;
}

function emptyFolder() {
  process.chdir(start);
  for (const name of fs.readdirSync(folder)) fs.rmSync(path.join(folder, name), { recursive: true, force: true });
}

function finish(id, body) {
  if (running === undefined) return;
  running = undefined;
  const spent = spawned ? ',"spent":true' : "";
  writeAll(REPLIES, `{"jsonrpc":"2.0","id":${JSON.stringify(id)},${body}${spent}}\n`);
  attach(undefined, {});
  if (spawned) return;
  try {
    emptyFolder();
  } catch {
    notify("spent", {});
    return;
  }
  notify("ready", {});
}

function fail(id, error) {
  const { message, ...data } = describe(error);
  finish(id, `"error":${JSON.stringify({ code: -32000, message, data })}`);
}

async function call(run, channel, request) {
  const params = request.params ?? {};
  running = request.id;
  attach(channel, params.context ?? {});
  try {
    const value = await run(params.arguments ?? {});
    finish(request.id, `"result":${encode(value)}`);
  } catch (error) {
    fail(request.id, error);
  }
}

function functionOf(module) {
  const candidates = [module.run, module.default?.run, module.default, module.default?.default];
  const run = candidates.find((candidate) => typeof candidate === "function");
  if (run === undefined) throw new Error("The script exports neither a function `run` nor a default function");
  return module.default?.run === run ? run.bind(module.default) : run;
}

// An error that nobody caught: the call fails with it, and the worker, whose state nobody knows now, ends.
function onUncaught(error) {
  if (running !== undefined) fail(running, error);
  else console.error(error);
  process.exit(71);
}

function listen(channel) {
  if (!isNode) {
    readAll(channel).finally(() => process.exit(0));
    return;
  }
  const stream = new net.Socket({ fd: REQUESTS, readable: true, writable: false });
  stream.on("data", (bytes) => channel.take(bytes));
  stream.on("end", () => process.exit(0));
  stream.on("error", () => process.exit(0));
}

async function readAll(channel) {
  const file = await fs.promises.open(`${descriptors}${REQUESTS}`, "r");
  const buffer = Buffer.alloc(1 << 16);
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
    if (bytesRead === 0) return;
    channel.take(buffer.subarray(0, bytesRead));
  }
}

// Waits for a program, runs it, and ends. Its line to the server keeps node going only while it waits for an answer.
function serveProgram() {
  const channel = new Channel((text) => writeAll(REPLIES, text));
  const stream = new net.Socket({ fd: REQUESTS, readable: true, writable: false });
  channel.onWaiting = (count) => (count > 0 ? stream.ref() : stream.unref());
  channel.onRequest = (request) => {
    if (request.method !== "execute") return;
    stream.unref();
    attach(channel, request.params.context ?? {});
    const reply = (body) => writeAll(REPLIES, `{"jsonrpc":"2.0","id":1,${body}}\n`);
    const refuse = ({ message, ...data }) => reply(`"error":${JSON.stringify({ code: -32000, message, data })}`);
    runProgram(request.params.arguments, (value) => {
      let text;
      try {
        text = encode(value);
      } catch (error) {
        return refuse({ message: `The program's result cannot be given back: ${error.message}`, kind: "NoJson" });
      }
      reply(`"result":${text}`);
    }, refuse);
  };
  stream.on("data", (bytes) => channel.take(bytes));
  stream.on("end", () => process.exit(0));
  stream.on("error", () => process.exit(0));
  notify("ready", {});
}

async function main() {
  attach(undefined, {});
  globalThis.skillz = skillz;
  if (isForPrograms) {
    delete process.env.SKILLZ_HOST_FD;
    globalThis.require ??= createRequire(path.join(folder, "program.mjs"));
    process.argv.splice(1, 2, path.join(folder, "program.mjs"));
    prepare(options.packages);
    serveProgram();
    return;
  }
  // CommonJS habits in an ES module.
  globalThis.require ??= createRequire(options.entry);
  process.argv.splice(1, 2, options.entry);
  process.on("uncaughtException", onUncaught);
  process.on("unhandledRejection", onUncaught);
  noteProcesses();
  let run;
  try {
    run = functionOf(await import(pathToFileURL(options.entry).href));
  } catch (error) {
    notify("failed", describe(error));
    process.exit(1);
  }
  spawned = false;
  const channel = new Channel((text) => writeAll(REPLIES, text));
  channel.onRequest = (request) => {
    if (request.method === "execute") call(run, channel, request);
  };
  listen(channel);
  emptyFolder();
  notify("ready", {});
}

if (isMainThread) main();
