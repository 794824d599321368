// The tour's steps, the same for every client in JavaScript. `start` connects one; a client is an object of functions, and
// those that it lacks (the Inspector's command line asks nobody and waits for nothing) are left out of its tour.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

const TOOLS = JSON.parse(await readFile(new URL("tools.json", import.meta.url), "utf8"));

const JAVASCRIPT = `
export async function run({ numbers }) {
  return { sum: numbers.reduce((sum, number) => sum + number, 0) };
}
`;

export const environment = Object.fromEntries(["PATH", "HOME", "SKILLZ_HOME"].map((name) => [name, process.env[name] ?? ""]));

/** What the user and the model answer, in both protocols. */
export const answers = {
  form: ({ params }) => {
    assert.equal(params.message, "What is your name?");
    return { action: "accept", content: { name: "Ada" } };
  },
  sample: ({ params }) => {
    assert.match(JSON.stringify(params.messages), /capital of France/);
    return { role: "assistant", model: "none", content: { type: "text", text: "Paris" } };
  },
};

/** A queue of what the server tells: `put` at one end, `await next()` at the other. */
export function queue() {
  const waiting = [];
  const there = [];
  return {
    put: (item) => (waiting.length ? waiting.shift()(item) : there.push(item)),
    next: () => (there.length ? Promise.resolve(there.shift()) : new Promise((resolve) => waiting.push(resolve))),
  };
}

const text = (result) => result.content.filter((block) => block.type === "text").map((block) => block.text).join("\n");

/** Walks the tour. */
export async function tour(start) {
  const client = await start();
  const succeed = async (name, args, options) => {
    const result = await client.call(name, args, options);
    assert.ok(!result.isError, `${name} failed: ${text(result)}`);
    return result;
  };
  await make(client, succeed);
  await call(client, succeed);
  if (client.reports) await reportAndCancel(client, succeed);
  if (client.asks) {
    assert.equal(text(await succeed("ask_name", {})), "Hello, Ada");
    assert.equal(text(await succeed("ask_model", {})), "The model says: Paris");
  }
  await lookAround(client);
  if (client.changes) await seeChanges(client, succeed);
  await client.close();

  const again = await start();
  assert.deepEqual((await again.call("add", { numbers: [4] })).structuredContent, { sum: 4 });
  await again.close();
}

async function make(client, succeed) {
  const builtIn = await client.list();
  assert.equal(builtIn.length, 13, builtIn.map((tool) => tool.name).join());
  const needed = ["add", "picture", ...(client.reports ? ["count_up", "wait"] : []), ...(client.asks ? ["ask_name", "ask_model"] : [])];
  for (const name of needed) {
    const made = await succeed("register_script", { name, description: `Tours: ${name}`, code: TOOLS[name], interpreter: "python3" });
    assert.equal(made.structuredContent.version, "1.0.0");
  }
  if (client.scripts) {
    await succeed("register_script", {
      name: "add_js",
      description: "Adds numbers.",
      code: JAVASCRIPT,
      interpreter: "node",
      extension: "mjs",
      input_schema: { type: "object", properties: { numbers: { type: "array", items: { type: "number" } } }, required: ["numbers"] },
    });
    assert.deepEqual((await succeed("add_js", { numbers: [1, 2.5] })).structuredContent, { sum: 3.5 });
  }
  const all = (await client.list()).map((tool) => tool.name);
  assert.ok(needed.every((name) => all.includes(name)), all.join());
}

async function call(client, succeed) {
  assert.deepEqual((await succeed("add", { numbers: [1, 2.5] })).structuredContent, { sum: 3.5 });
  const [picture] = (await succeed("picture", {})).content;
  assert.equal(picture.type, "image");
  assert.equal(picture.mimeType, "image/png");
  const failed = await client.call("add", { numbers: [] });
  assert.ok(failed.isError && text(failed).includes("there is nothing to add"), text(failed));
  await assert.rejects(client.call("no_such_tool", {}), /no_such_tool/);
}

async function reportAndCancel(client, succeed) {
  const seen = [];
  const counted = await succeed("count_up", {}, { onprogress: ({ progress, total, message }) => seen.push([progress, total, message]) });
  assert.equal(text(counted), "counted");
  assert.deepEqual(seen, [1, 2, 3].map((step) => [step, 3, `step ${step}`]));

  const stop = new AbortController();
  const waiting = client.call("wait", {}, { onprogress: () => stop.abort(), signal: stop.signal });
  await assert.rejects(waiting);
  assert.deepEqual((await succeed("add", { numbers: [1] })).structuredContent, { sum: 1 });
}

async function lookAround(client) {
  const uris = (await client.resources()).map((resource) => resource.uri);
  assert.ok(uris.includes("skillz://guide") && uris.includes("skillz://tools/add"), uris.join());
  const [contents] = await client.read("skillz://tools/add");
  assert.equal(JSON.parse(contents.text).name, "add");
  const templates = (await client.templates()).map((template) => template.uriTemplate);
  assert.ok(templates.includes("skillz://tools/{name}"), templates.join());
  const prompts = (await client.prompts()).map((prompt) => prompt.name);
  assert.ok(prompts.includes("improve_tool"), prompts.join());
  const [message] = await client.prompt("improve_tool", { tool_name: "add" });
  assert.match(message.content.text, /add/);
  if (client.complete) assert.deepEqual(await client.complete("improve_tool", "tool_name", "pic"), ["picture"]);
}

async function seeChanges(client, succeed) {
  const uri = "skillz://tools/add";
  const changes = await client.changes(uri);
  await succeed("register_script", {
    name: "add",
    description: "Adds any numbers",
    code: TOOLS.add,
    interpreter: "python3",
    overwrite: true,
  });
  const wanted = new Set(["tools", uri]);
  while (wanted.size) wanted.delete(await changes.next());
  await changes.close();
  const add = (await client.list()).find((tool) => tool.name === "add");
  assert.equal(add.description, "Adds any numbers");
}
