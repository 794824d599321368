// The tour's steps, the same for every client in JavaScript. A client is four functions: list, call, close, and a
// way to start.

import assert from "node:assert/strict";

const RUST = `
#[skillz::tool]
fn run(text: String) -> Result<usize, String> {
    if text.is_empty() {
        return Err("the text is empty".into());
    }
    Ok(text.split_whitespace().count())
}
`;

const JAVASCRIPT = `
export async function run({ numbers }) {
  return { sum: numbers.reduce((sum, number) => sum + number, 0) };
}
`;

export const environment = Object.fromEntries(["PATH", "HOME", "SKILLZ_HOME"].map((name) => [name, process.env[name]]));

const text = (result) => result.content.filter((block) => block.type === "text").map((block) => block.text).join("\n");

/** Walks the tour with clients that `start` connects, each to a server process of its own. */
export async function tour(start) {
  let client = await start();
  const succeed = async (name, args) => {
    const result = await client.call(name, args);
    assert.ok(!result.isError, `${name} failed: ${text(result)}`);
    return result;
  };

  const builtIn = await client.list();
  assert.equal(builtIn.length, 13, builtIn.join());

  const built = await succeed("build_tool", {
    name: "count_words",
    description: "Counts words.",
    code: RUST,
    examples: [{ arguments: { text: "a b" }, result: 2 }],
  });
  assert.equal(built.structuredContent.examples.passed, 1);
  const registered = await succeed("register_script", {
    name: "add",
    description: "Adds numbers.",
    code: JAVASCRIPT,
    interpreter: "node",
    extension: "mjs",
    input_schema: { type: "object", properties: { numbers: { type: "array", items: { type: "number" } } }, required: ["numbers"] },
  });
  assert.equal(registered.structuredContent.version, "1.0.0");

  const all = await client.list();
  assert.ok(all.includes("count_words") && all.includes("add"), all.join());
  assert.equal(text(await succeed("count_words", { text: "one two three" })), "3");
  assert.deepEqual((await succeed("add", { numbers: [1, 2.5] })).structuredContent, { sum: 3.5 });

  const failed = await client.call("count_words", { text: "" });
  assert.ok(failed.isError && text(failed).includes("the text is empty"), text(failed));
  await assert.rejects(client.call("no_such_tool", {}), /no_such_tool/);

  await client.close();
  client = await start();
  assert.equal(text(await succeed("count_words", { text: "still here" })), "2");
  assert.deepEqual((await succeed("add", { numbers: [4] })).structuredContent, { sum: 4 });
  await client.close();
}
