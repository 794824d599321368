// What a program finds besides the language: tools, `skillz`, `console`, timers. Gives the driver its handles.
(function (tools, nativeRequest, nativePrint) {
  "use strict";
  const { stringify, parse } = JSON;
  const pending = new Map();
  const timers = new Map();
  let nextId = 1, nextTimer = 1, state = [];

  class ToolError extends Error {
    constructor(message, data) {
      super(message);
      this.name = "ToolError";
      if (data !== undefined) this.data = data;
    }
  }

  // Node has `toWellFormed` from version 20 on.
  const wellFormed = (text) => text.toWellFormed?.() ?? text.replace(/\p{Surrogate}/gu, "\ufffd");
  // JSON has no lone surrogates, large integers, maps, sets or errors.
  function replace(key, value) {
    switch (typeof value) {
      case "string": return wellFormed(value);
      case "bigint": return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
      case "object":
        if (value instanceof Map) return Object.fromEntries(value);
        if (value instanceof Set) return Array.from(value);
        if (value instanceof Error) return { name: value.name, message: value.message };
        return value;
      default: return value;
    }
  }

  const request = (message) => new Promise((resolve, reject) => {
    const id = nextId++;
    const text = stringify(message, replace);
    pending.set(id, { resolve, reject, place: new Error() });
    nativeRequest(id, text);
  });
  const host = (method, params) => request({ Host: { method, params: params ?? {} } });

  const isPlain = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const callTool = (name, values) => {
    if (values.length === 0 || values[0] === undefined || values[0] === null) return request({ Call: { name } });
    if (values.length === 1 && isPlain(values[0])) return request({ Call: { name, named: values[0] } });
    return request({ Call: { name, positional: values } });
  };
  const call = (name, args) => {
    if (typeof name !== "string") throw new TypeError('call() takes a tool\'s name and its arguments: call("name", {argument: 1})');
    return callTool(name, args === undefined ? [] : [args]);
  };

  const sample = async (prompt, maxTokens = 1000) => {
    const messages = [{ role: "user", content: { type: "text", text: prompt } }];
    const { content } = await host("sampling/createMessage", { messages, maxTokens });
    return [content].flat().map((part) => part.text ?? "").join("");
  };
  const ask = async (message, schema) => {
    const answer = await host("elicitation/create", { message, requestedSchema: schema });
    if (answer.action !== "accept") throw new ToolError("The user did not answer: " + answer.action);
    return answer.content;
  };
  const skillz = {
    call,
    search: async (query) => (await host("tools/list", { query })).tools,
    describe: (name) => host("tools/describe", { name }),
    memory: {
      get: async (key) => (await host("memory/get", { key })).value,
      set: async (key, value, ttl) => { await host("memory/set", { key, value, ttl }); },
      list: async (prefix = "") => (await host("memory/list", { prefix })).keys,
      delete: async (key) => (await host("memory/delete", { key })).deleted,
    },
    resources: { list: () => host("resources/list"), read: (uri) => host("resources/read", { uri }) },
    log: (message, level = "info", data) => host("log", { level, message: String(message), data }),
    progress: (current, total, message) => host("progress", { current, total, message }),
    ask,
    sample,
  };

  const show = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
    if (value === undefined || typeof value === "function" || typeof value === "symbol") return String(value);
    try { return stringify(value, replace) ?? String(value); } catch { return String(value); }
  };
  // As Node does: `%s` and the like take the values that follow.
  const substitute = (values) => {
    if (typeof values[0] !== "string" || values.length < 2) return values;
    let next = 1;
    const text = values[0].replace(/%([sdifjoOc%])/g, (whole, kind) => {
      if (kind === "%") return "%";
      if (next >= values.length) return whole;
      const value = values[next++];
      switch (kind) {
        case "d": return typeof value === "object" ? "NaN" : show(typeof value === "bigint" ? value : Number(value));
        case "i": return show(typeof value === "bigint" ? value : parseInt(value));
        case "f": return show(parseFloat(value));
        case "c": return "";
        case "s": return show(value);
        default: return stringify(value, replace) ?? String(value);
      }
    });
    return [text, ...values.slice(next)];
  };
  let indent = "";
  const write = (text) => nativePrint(wellFormed(text.split("\n").map((line) => indent + line).join("\n") + "\n"));
  const print = (...values) => write(substitute(values).map(show).join(" "));

  // Rows are what an array or an object holds, columns what the rows hold.
  const table = (data, only) => {
    if (data === null || typeof data !== "object") return print(data);
    const rows = data instanceof Map ? [...data] : data instanceof Set ? [...data].map((value, index) => [index, value]) : Object.entries(data);
    const isRow = (value) => value !== null && typeof value === "object";
    const found = rows.flatMap(([, row]) => (isRow(row) ? Object.keys(row) : []));
    const columns = [...new Set(only ?? found)];
    const hasValues = rows.some(([, row]) => !isRow(row));
    const head = ["(index)", ...columns, ...(hasValues ? ["Values"] : [])];
    const cells = rows.map(([key, row]) => [
      show(key),
      ...columns.map((column) => (isRow(row) && column in row ? show(row[column]) : "")),
      ...(hasValues ? [isRow(row) ? "" : show(row)] : []),
    ]);
    write([head, ...cells].map((line) => line.join(" | ")).join("\n"));
  };
  const counts = new Map(), started = new Map();
  const elapsed = (label = "default") => `${label}: ${Date.now() - (started.get(label) ?? Date.now())}ms`;
  const console = {
    log: print, info: print, debug: print, warn: print, error: print, trace: print, table,
    dir: (value) => write(show(value)),
    dirxml: print,
    assert: (condition, ...values) => { if (!condition) print("Assertion failed" + (values.length ? ":" : ""), ...values); },
    count: (label = "default") => { counts.set(label, (counts.get(label) ?? 0) + 1); write(`${label}: ${counts.get(label)}`); },
    countReset: (label = "default") => { counts.delete(label); },
    group: (...values) => { if (values.length) print(...values); indent += "  "; },
    groupCollapsed: (...values) => console.group(...values),
    groupEnd: () => { indent = indent.slice(2); },
    time: (label = "default") => { started.set(label, Date.now()); },
    timeLog: (label, ...values) => print(elapsed(label), ...values),
    timeEnd: (label = "default") => { write(elapsed(label)); started.delete(label); },
  };

  const addTimer = (callback, delay, values, repeat) => {
    const id = nextTimer++;
    const every = Math.max(Number(delay) || 0, repeat ? 1 : 0);
    timers.set(id, { callback, values, at: Date.now() + every, every: repeat ? every : undefined });
    return id;
  };
  const clear = (id) => { timers.delete(id); };

  const globals = {
    call, skillz, ToolError,
    console,
    setTimeout: (callback, delay, ...values) => addTimer(callback, delay, values, false),
    setInterval: (callback, delay, ...values) => addTimer(callback, delay, values, true),
    clearTimeout: clear, clearInterval: clear,
    queueMicrotask: (callback) => { Promise.resolve().then(callback); },
  };
  for (const name of tools) globals[name] ??= (...values) => callTool(name, values);
  for (const [name, value] of Object.entries(globals)) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  }

  const describe = (error) => error instanceof Error
    ? [wellFormed(`${error.name}: ${error.message}`), wellFormed(String(error.stack ?? ""))]
    : [wellFormed(`Uncaught ${show(error)}`), ""];
  // Calls that nobody awaited are awaited in the result.
  const whole = async (value) => Array.isArray(value) ? Promise.all(value) : value;

  // A failure stands, whatever else still ends well.
  const fail = (error) => { if (state[0] !== "failed") state = ["failed", ...describe(error)]; };

  return {
    start(promise) {
      Promise.resolve(promise).then(whole).then((value) => {
        const text = stringify(value, replace) ?? "null";
        if (state.length === 0) state = ["done", text];
      }).catch(fail);
    },
    state: () => state,
    settle(id, ok, text, data) {
      const waiting = pending.get(id);
      pending.delete(id);
      if (!waiting) return;
      if (ok) return waiting.resolve(parse(text));
      const error = new ToolError(text, data == null ? undefined : parse(data));
      error.stack = waiting.place.stack;
      waiting.reject(error);
    },
    nextTimer() {
      let next = Infinity;
      for (const timer of timers.values()) next = Math.min(next, timer.at);
      return next === Infinity ? -1 : Math.max(0, next - Date.now());
    },
    tick() {
      const now = Date.now();
      const due = [...timers].filter(([, timer]) => timer.at <= now).sort(([, left], [, right]) => left.at - right.at);
      for (const [id, timer] of due) {
        if (!timers.has(id)) continue;
        if (timer.every === undefined) timers.delete(id); else timer.at = now + timer.every;
        Promise.resolve().then(() => timer.callback(...timer.values)).catch(fail);
      }
    },
  };
})
