// What a running Skillz tool may ask of its server: the global `skillz` of JavaScript tools.
//
//   await skillz.memory.get(key, fallback)       await skillz.memory.set(key, value, { ttl })
//   await skillz.memory.list(prefix)             await skillz.memory.delete(key)
//   await skillz.call(name, args)                another tool's result
//   await skillz.search(query)                   tools by what they do; skillz.tools.list() gives all
//   await skillz.describe(name)                  one tool in full
//   skillz.log(message, level)                   skillz.progress(current, total, message)
//   await skillz.ask(message, schema)            what the user filled in; throws Declined
//   await skillz.sample(prompt)                  the text that the client's model answers
//   await skillz.resources.list()                await skillz.resources.read(uri)
//   await skillz.roots()                         skillz.context
//
// A program may also use `await skillz.arguments()` and `skillz.reply(value)` instead of reading its arguments and
// printing its result itself.
"use strict";

const fs = require("node:fs");

const LEVELS = new Set(["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]);

class SkillzError extends Error {
  constructor(message, code = -32000, data = undefined) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

class Declined extends SkillzError {
  constructor(action) {
    super(`The user answered the question with \`${action}\``);
    this.action = action;
  }
}

SkillzError.prototype.name = "SkillzError";
Declined.prototype.name = "Declined";

// Requests and replies over one pair of pipes.
class Channel {
  constructor(write) {
    this.write = write;
    this.waiting = new Map();
    this.count = 0;
    this.rest = [];
    this.onRequest = () => {};
    this.onWaiting = () => {};
  }

  send(message) {
    this.write(toJson(message) + "\n");
  }

  notify(method, params) {
    this.send({ jsonrpc: "2.0", method, params });
  }

  ask(method, params) {
    const id = `${process.pid}-${++this.count}`;
    // Where it was asked tells more than where the answer was read.
    const place = new Error();
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, place });
      this.onWaiting(this.waiting.size);
      try {
        this.send({ jsonrpc: "2.0", id, method, params });
      } catch (error) {
        this.waiting.delete(id);
        reject(error);
      }
    });
  }

  // Takes a part of the stream of lines.
  take(bytes) {
    let start = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
      this.rest.push(bytes.subarray(start, end));
      const line = this.rest.length === 1 ? this.rest[0] : Buffer.concat(this.rest);
      this.rest = [];
      start = end + 1;
      this.takeLine(line.toString("utf8"));
    }
    if (start < bytes.length) this.rest.push(Buffer.from(bytes.subarray(start)));
  }

  takeLine(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return;
    }
    if (message === null || typeof message !== "object") return;
    if (message.method !== undefined) {
      this.onRequest(message);
      return;
    }
    const waiting = this.waiting.get(message.id);
    if (waiting === undefined) return;
    this.waiting.delete(message.id);
    this.onWaiting(this.waiting.size);
    if (message.error) {
      const error = new SkillzError(message.error.message, message.error.code, message.error.data);
      error.stack = `${error.name}: ${error.message}${String(waiting.place.stack).slice("Error".length)}`;
      waiting.reject(error);
    } else waiting.resolve(message.result);
  }

  closed() {
    for (const { reject } of this.waiting.values()) {
      reject(new SkillzError("The server takes no more requests: its line to it is closed"));
    }
    this.waiting.clear();
  }
}

// A value as JSON text, digits of a BigInt and all. `notes` takes the places of numbers that JSON does not have.
function toJson(value, notes = [], place = "result", depth = 0) {
  if (value === undefined || value === null) return "null";
  switch (typeof value) {
    case "string": return JSON.stringify(value.toWellFormed?.() ?? value.replace(LONE, "\ufffd"));
    case "boolean": return String(value);
    case "bigint": return String(value);
    case "number":
      if (Number.isFinite(value)) return numberText(value);
      notes.push(place);
      return "null";
    case "function":
    case "symbol": throw new TypeError(`${place} is a ${typeof value}, which has no form as JSON`);
  }
  if (depth >= DEEPEST) throw new TypeError(`${place.slice(0, 200)} is nested more than ${DEEPEST} deep, or holds itself`);
  if (typeof value.toJSON === "function" && !Buffer.isBuffer(value)) {
    if (value instanceof Date && Number.isNaN(value.getTime())) return "null";
    return toJson(value.toJSON(), notes, place, depth + 1);
  }
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return toJson(value.valueOf(), notes, place, depth);
  if (value instanceof RegExp || value instanceof URLSearchParams) return JSON.stringify(String(value));
  if (value instanceof Error) return JSON.stringify(`${value.name}: ${value.message}`);
  if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet) {
    throw new TypeError(`${place} is a ${value.constructor.name}, which has no form as JSON${value instanceof Promise ? "; await it" : ""}`);
  }
  if (Buffer.isBuffer(value)) return JSON.stringify(value.toString("base64"));
  if (value instanceof ArrayBuffer || value instanceof DataView || value instanceof Uint8Array) {
    const bytes = value instanceof ArrayBuffer ? Buffer.from(value) : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    return JSON.stringify(bytes.toString("base64"));
  }
  const isMap = value instanceof Map;
  if (!isMap && typeof value[Symbol.iterator] === "function") {
    const write = (item, index) => (isSkipped(item) ? "null" : toJson(item, notes, `${place}[${index}]`, depth + 1));
    return `[${Array.from(value, write).join(",")}]`;
  }
  const seen = new Set();
  const fields = [];
  for (const [key, item] of isMap ? value : Object.entries(value)) {
    if (isSkipped(item)) continue;
    const name = typeof key === "string" ? key : keyOf(key, place);
    if (seen.has(name)) throw new TypeError(`${place} has two entries that are both \`${name}\` as text`);
    seen.add(name);
    fields.push(`${toJson(name)}:${toJson(item, notes, `${place}[${JSON.stringify(name.slice(0, 40))}]`, depth + 1)}`);
  }
  return `{${fields.join(",")}}`;
}

// Beyond 2^53 the shortest text is often that of another whole number.
const numberText = (value) => (Number.isInteger(value) && !Number.isSafeInteger(value) ? String(BigInt(value)) : JSON.stringify(value));

const DEEPEST = 128;
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
// What JSON.stringify leaves out of objects, too.
const isSkipped = (item) => item === undefined || typeof item === "function" || typeof item === "symbol";

// A text is the key, anything else its JSON.
function keyOf(key, place) {
  const text = toJson(key, [], `a key of ${place}`);
  return text.startsWith('"') ? JSON.parse(text) : text;
}

function writeAll(descriptor, text) {
  let bytes = Buffer.from(text, "utf8");
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(fs.writeSync(descriptor, bytes));
    } catch (error) {
      // The pipe is full and does not block: the server is on its way to empty it.
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

// The line to the host, first used when the first request is made; without one of its own, stdin and stdout.
function openLine() {
  const numbers = process.env.SKILLZ_HOST_FD?.split(",").map(Number);
  if (numbers === undefined) return [process.stdin, 1];
  const [read, write] = numbers;
  if (globalThis.Deno === undefined && globalThis.Bun === undefined) {
    return [new (require("node:net").Socket)({ fd: read, readable: true, writable: false }), write];
  }
  // Deno and bun know only descriptors that they opened themselves.
  const descriptors = process.platform === "linux" ? "/proc/self/fd/" : "/dev/fd/";
  return [fs.createReadStream(`${descriptors}${read}`), fs.openSync(`${descriptors}${write}`, "w")];
}

// The channel of a program.
function processChannel() {
  const [input, output] = openLine();
  const channel = new Channel((text) => writeAll(output, text));
  channel.request = new Promise((resolve) => (channel.onRequest = resolve));
  const take = (bytes) => channel.take(typeof bytes === "string" ? Buffer.from(bytes) : bytes);
  let listening = false;
  // The line keeps the program alive only while something is waited for.
  channel.onWaiting = (count) => {
    if (count > 0 && !listening) {
      listening = true;
      input.on("data", take);
      input.once("end", () => channel.closed());
    }
    if (count > 0) input.ref?.();
    else input.unref?.();
  };
  return channel;
}

let channel;
let context;
let inWorker = false;

function connected() {
  if (channel !== undefined) return channel;
  if (inWorker) throw new SkillzError("Host requests can be made only during a call, not while the module is loaded");
  channel = processChannel();
  return channel;
}

async function firstRequest() {
  const current = connected();
  current.onWaiting(1);
  const request = await current.request;
  current.onWaiting(current.waiting.size);
  return request;
}

const skillz = {
  SkillzError,
  Declined,
  memory: {
    async get(key, fallback = null) {
      const result = await connected().ask("memory/get", { key });
      return result.found ? result.value : fallback;
    },
    async set(key, value, options = {}) {
      const ttl = typeof options === "number" ? options : options.ttl;
      return (await connected().ask("memory/set", ttl === undefined ? { key, value } : { key, value, ttl })).success;
    },
    list: async (prefix = "") => (await connected().ask("memory/list", { prefix })).keys,
    delete: async (key) => (await connected().ask("memory/delete", { key })).deleted,
  },
  call: async (name, args = {}) => (await connected().ask("tools/call", { name, arguments: args })).output,
  search: async (query) => (await connected().ask("tools/list", { query })).tools,
  describe: async (name) => connected().ask("tools/describe", { name }),
  tools: {
    list: async (query) => (await connected().ask("tools/list", query === undefined ? {} : { query })).tools,
  },
  resources: {
    list: async () => connected().ask("resources/list", {}),
    read: async (uri) => connected().ask("resources/read", { uri }),
  },
  roots: async () => (await connected().ask("roots/list", {})).roots,
  async ask(message, schema) {
    const answer = await connected().ask("elicitation/create", { message, requestedSchema: schema });
    if (answer.action !== "accept") throw new Declined(answer.action);
    return answer.content;
  },
  async sample(prompt, { maxTokens = 1024, system, ...options } = {}) {
    const messages = typeof prompt === "string" ? [{ role: "user", content: { type: "text", text: prompt } }] : prompt;
    const params = { messages, maxTokens, ...(system === undefined ? {} : { systemPrompt: system }), ...options };
    const result = await connected().ask("sampling/createMessage", params);
    const texts = [result.content].flat().filter((block) => block?.type === "text").map((block) => block.text);
    if (texts.length === 0) throw new SkillzError("The client's model answered without text", -32000, result);
    return texts.join("\n");
  },
  // Both `log(message, level)` and `log(level, message)` are understood.
  log(message, level = "info", data = undefined) {
    if (LEVELS.has(message) && !LEVELS.has(level) && typeof level === "string") [message, level] = [level, message];
    if (!LEVELS.has(level)) [level, data] = ["info", data ?? level];
    connected().notify("log", { level, message: String(message), data });
  },
  progress(current, total = undefined, message = undefined) {
    connected().notify("progress", { current, total, message });
  },
  stream(data, isFinal = false) {
    const current = connected();
    current.chunks = (current.chunks ?? -1) + 1;
    current.notify("stream/chunk", { data, index: current.chunks, is_final: isFinal });
  },
  get context() {
    if (context === undefined && !inWorker && process.env.SKILLZ_CONTEXT) context = JSON.parse(process.env.SKILLZ_CONTEXT);
    return context ?? {};
  },
  async arguments() {
    if (process.env.SKILLZ_ARGUMENTS) return JSON.parse(process.env.SKILLZ_ARGUMENTS);
    return (await firstRequest()).params.arguments;
  },
  reply(value) {
    connected().send({ jsonrpc: "2.0", id: 1, result: value === undefined ? null : value });
  },
};

// For the worker: gives the call in progress its channel and context.
Object.defineProperty(skillz, Symbol.for("skillz.attach"), {
  value: (itsChannel, itsContext) => {
    channel = itsChannel;
    context = itsContext;
    inWorker = true;
  },
});
Object.defineProperty(skillz, Symbol.for("skillz.parts"), { value: { Channel, writeAll, toJson } });

module.exports = skillz;
