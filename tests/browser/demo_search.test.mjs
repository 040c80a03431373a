//! The search tab of the demo from a user's view, with a fake engine, whose vectors count words by their first letter.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { drop, faultsOf, fakeDemo, ready, says, visitor } from "./demo_page.mjs";
import { startHarness } from "./harness.mjs";

const TEXT = `The zebra zoo has zigzag zones.

Foxes find food for five fierce friends. ${"Foxes find food. ".repeat(40)}`;

describe("the search in the visitor's own text", () => {
  let harness;
  before(async () => {
    harness = await startHarness({ mounts: await fakeDemo() });
  });
  after(() => harness?.close());

  test("it finds passages of texts and files by their vectors, and sends nothing", async () => {
    const page = await harness.open(await visitor(harness, { tab: "search" }), "/demo/");
    const faults = faultsOf(page);
    await ready(page);
    await page.fill("#search-query", "zebra zoo");
    await page.press("#search-query", "Enter");
    await says(page, "#search-state", /^No embedding model/);
    await page.click("text=Your own embedding model");
    await page.fill("#search-model-url", `${harness.origin}/models/tales.gguf?embeddings`);
    await page.press("#search-model-url", "Enter");
    await says(page, "#search-model-state", /^tales\.gguf is ready\.$/);
    // The notice about the model is not true any more.
    assert.equal(await page.textContent("#search-state"), "");
    await page.press("#search-query", "Enter");
    await says(page, "#search-state", /^There is no text/);

    const requests = [];
    page.on("request", (request) => requests.push(request.url()));
    await page.fill("#search-text", TEXT);
    const file = { name: "zoo.txt", mimeType: "text/plain", buffer: Buffer.from("A zoo.") };
    await page.setInputFiles("#search-files", file);
    await drop(page, "more.txt", Buffer.from("Zebras zip.\n\nA bear bakes."), "text/plain");
    await says(page, "#search-file-list", /zoo\.txt.*more\.txt/);
    await page.press("#search-query", "Enter");
    await says(page, "#search-state", /^The 5 closest of \d+ passages/);
    const found = await page.$$eval("#search-results li", (all) =>
      all.map((it) => [it.querySelector("p").textContent, it.querySelector("small").textContent]),
    );
    assert.equal(found[0][0], "Zebras zip.");
    assert.match(found[0][1], /^more\.txt, similarity 1\.00/);
    assert.match(found[1][0], /^The zebra zoo/);
    assert.match(found[1][1], /^Your text/);
    assert.match(found[2][1], /^zoo\.txt/);
    const scores = found.map(([, note]) => Number(/similarity ([\d.]+)/.exec(note)[1]));
    assert.deepEqual(
      scores,
      scores.toSorted((a, b) => b - a),
    );
    assert.deepEqual(requests, []);
    const code = await page.textContent("#code");
    assert.match(
      code,
      /openai\.embeddings\.create\(\{\n {2}model: "default",\n {2}input: \["zebra zoo",/,
    );
    assert.ok(code.includes("?embeddings"), code);

    await page.click("#search-file-list li:last-child button");
    await page.press("#search-query", "Enter");
    await says(page, "#search-results", /^The zebra zoo/);

    // The model comes back, the texts do not.
    await page.reload();
    await says(page, "#search-model-state", /^tales\.gguf is ready\.$/);
    assert.equal(await page.inputValue("#search-text"), "");
    assert.equal(await page.textContent("#search-file-list"), "");
    assert.deepEqual(faults, []);
    await page.context().close();
  });

  test("a model that cannot be loaded is explained", async () => {
    const page = await harness.open(await visitor(harness, { tab: "search" }), "/demo/");
    await page.click("text=Your own embedding model");
    await page.fill("#search-model-url", `${harness.origin}/absent.gguf`);
    await page.press("#search-model-url", "Enter");
    await says(page, "#search-model-error", /absent\.gguf answered 404/);
    assert.equal(await page.textContent("#search-model-state"), "No embedding model is loaded.");
    await page.context().close();
  });

  test("texts are split into passages between sentences, and cut between words", async () => {
    const page = await harness.open(undefined, "/plain");
    const passages = await page.evaluate(async () => {
      const { passagesOf } = await import("/demo/search/passages.js");
      const long = `${"word ".repeat(200)}`;
      return [
        passagesOf("a", "One. Two!\nThree?\n\nFour"),
        passagesOf("b", long),
        passagesOf("c", "x".repeat(1000)),
        passagesOf("d", " \n\n "),
      ];
    });
    assert.deepEqual(passages[0], [
      { source: "a", text: "One. Two! Three?" },
      { source: "a", text: "Four" },
    ]);
    const words = passages[1].map(({ text }) => text);
    assert.equal(words.join(" "), "word ".repeat(200).trim());
    for (const { text } of passages.flat()) assert.ok(text.length <= 360, text);
    assert.equal(passages[2].map(({ text }) => text).join(""), "x".repeat(1000));
    assert.deepEqual(passages[3], []);
    await page.context().close();
  });
});
