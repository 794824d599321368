// A program of `execute_code` in node: what it finds, how it runs, and when it is over.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";
import skillz from "./skillz.cjs";

const isPlain = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

function callTool(name, parameters, values) {
  if (values.length === 0 || values[0] == null) return skillz.call(name, {});
  if (values.length === 1 && isPlain(values[0])) return skillz.call(name, values[0]);
  if (values.length > parameters.length) {
    const known = parameters.join(", ") || "none";
    throw new TypeError(`\`${name}\` takes its arguments by name (${known}), and got ${values.length} without one`);
  }
  return skillz.call(name, Object.fromEntries(values.map((value, index) => [parameters[index], value])));
}

function call(name, args) {
  if (typeof name !== "string") throw new TypeError('call() takes a tool\'s name and its arguments: call("name", {argument: 1})');
  return skillz.call(name, args ?? {});
}

// A name that the language has stays what it is.
function define(name, value) {
  if (name in globalThis && name !== "call") return;
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}

// Frames of the program with its own lines; what a tool said stands in the message, and is not said again.
function describe(error, { file, lines, source }) {
  const isError = error instanceof Error;
  const text = isError ? `${error.name}: ${error.message}` : `Uncaught ${typeof error === "string" ? error : JSON.stringify(error)}`;
  const frames = [];
  for (const frame of isError ? String(error.stack ?? "").split("\n") : []) {
    const found = frame.match(/^\s*at (?:(?:async )?(.*?) \()?(.*):(\d+):\d+\)?$/);
    if (!found || !found[2].endsWith(file)) continue;
    const line = lines[found[3] - 1] ?? Number(found[3]);
    if (line > source.length) continue;
    frames.push({ line, text: `    at ${found[1] ?? "<anonymous>"} (code.js:${line})\n        ${(source[line - 1] ?? "").trim()}` });
  }
  const [first, ...rest] = text.split("\n");
  const place = frames.length > 0 ? ` (line ${frames[0].line})` : "";
  return { message: [first + place, ...rest].join("\n"), kind: isError ? error.name : typeof error, traceback: frames.slice(0, 12).map((frame) => frame.text).join("\n") };
}

// Makes ready what does not depend on the program. The folder that it sees is empty: its module and its packages lie above.
export function prepare(packages) {
  const above = process.cwd();
  const folder = path.join(above, "work");
  fs.mkdirSync(folder);
  if (packages) fs.symlinkSync(packages, path.join(above, "node_modules"));
  process.chdir(folder);
  process.env.HOME = process.env.TMPDIR = folder;
  skillz.SkillzError.prototype.name = "ToolError";
  define("ToolError", skillz.SkillzError);
  define("call", call);
  // The first use of each costs more than most programs do.
  compile("(async () => {})()", "/warm-up")();
}

const compile = (code, filename) =>
  vm.runInThisContext(`(function () { "use strict"; return () => ${code}\n})`, { filename }).call(undefined);

// A program that imports is a module in a file; any other is compiled where it stands.
async function load({ header, code, is_module: isModule }, file) {
  if (!isModule) return compile(code, file);
  fs.writeFileSync(file, `${header}export default () => ${code}`);
  return (await import(pathToFileURL(file).href)).default;
}

// Runs a program. `finish` or `fail` is called once, when nothing of it is left to do: node says so itself. Then the process
// waits for its end, which whoever got the answer brings about.
export function runProgram(given, finish, fail) {
  const file = path.join(path.dirname(process.cwd()), "program.mjs");
  for (const [identifier, [name, parameters]] of Object.entries(given.tools)) {
    define(identifier, (...values) => callTool(name, parameters, values));
  }
  const program = { file: "/program.mjs", lines: given.lines, source: given.source.split("\n") };
  let state;
  const failed = (error) => {
    if (state === undefined || state.value !== undefined) state = { failure: describe(error, program) };
    end();
  };
  const end = () => {
    process.removeAllListeners("exit");
    if (state.failure) fail(state.failure);
    else finish(state.value);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  };
  process.on("uncaughtException", failed);
  process.on("unhandledRejection", failed);
  process.on("beforeExit", () => {
    state ??= { failure: { message: "The program awaits something that will never come: nothing is under way any more", kind: "Unsettled" } };
    end();
  });
  process.on("exit", (status) => {
    if (status !== 0) state = { failure: { message: `The program ended with exit code ${status}`, kind: "Exit" } };
    state ??= { value: null };
    end();
  });
  const run = async () => {
    const main = await load(given, file);
    const value = await main();
    // Calls that were not awaited are awaited in the result.
    state ??= { value: (Array.isArray(value) ? await Promise.all(value) : value) ?? null };
  };
  run().catch(failed);
}
