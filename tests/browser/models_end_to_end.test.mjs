//! Several models with the real engine on the CPU device in Chromium: the embedded model under two names, and one that embeds.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { CHAT_TEMPLATE } from "../clients/chat_template.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

const MODELS = {
  stories: { model: "embedded", aliases: ["gpt-3.5-turbo-instruct"] },
  chat: { model: "embedded", endpoint: { chatTemplate: CHAT_TEMPLATE } },
  texts: "/embeddings/bert.gguf",
};

const skip = !wasmIsBuilt && "skipped: the wasm module is not built";

describe("several models with the real engine", { skip }, () => {
  let harness;
  let page;
  /** The memory that each model needs, as the engine reports it. */
  let needs;

  before(async () => {
    harness = await startHarness({
      mounts: {
        "/embeddings/": join(root, "tests/parity/embeddings/"),
        "/rerankers/": join(root, "tests/parity/rerankers/"),
      },
    });
    page = await harness.open();
    await page.evaluate(() => {
      Object.assign(window, {
        start: async (models, options) => {
          await window.engine?.dispose();
          window.engine = await inpage.createEngine({
            ...{ device: "cpu", threads: 1, models, load: { contextTokens: 128 } },
            ...options,
          });
        },
        story: (model) =>
          caught(async () => {
            const body = { model, prompt: "Once upon a time", max_tokens: 8, temperature: 0 };
            const { model: answered, choices } = await engine.completions.create(body);
            return { model: answered, text: choices[0].text };
          }),
        talk: (model) =>
          caught(async () => {
            const messages = [{ role: "user", content: "Tell me of a fox." }];
            const body = { model, messages, max_tokens: 8, temperature: 0 };
            return (await engine.chat.completions.create(body)).model;
          }),
        embed: (model) =>
          caught(async () => {
            const body = { model, input: "A sentence." };
            const { model: answered, data } = await engine.embeddings.create(body);
            return [answered, data[0].embedding.length > 8];
          }),
        list: async () => (await (await engine.fetch("/v1/models")).json()).data,
      });
    });
  });
  after(() => harness?.close());

  test("a reranker scores documents as its reference, as a file and as a folder", async () => {
    for (const [name, place] of [
      ["bert", "/rerankers/bert.gguf"],
      ["xlm-roberta-rank-hf", { folder: "/rerankers/xlm-roberta-rank-hf/" }],
    ]) {
      const file = join(root, `tests/parity/rerankers/${name}.json`);
      const [first, second] = JSON.parse(readFileSync(file, "utf8")).pairs;
      await page.evaluate((models) => start(models), {
        story: "embedded",
        ranks: { model: place },
      });
      const documents = [first.document, { text: second.document }];
      const request = { model: "ranks", query: first.query, documents, use_activation: false };
      const { results, model } = await page.evaluate((request) => engine.rerank(request), request);
      const wanted = [first.outputs[0], second.outputs[0]];
      const order = wanted[0] >= wanted[1] ? [0, 1] : [1, 0];
      assert.equal(model, "ranks");
      assert.deepEqual(
        results.map(({ index }) => index),
        order,
      );
      for (const { index, relevance_score, document } of results) {
        assert.ok(Math.abs(relevance_score - wanted[index]) < 0.01, `${name}: ${relevance_score}`);
        assert.equal(document.text, [first, second][index].document);
      }
      // The name may be left out once it is known which model ranks.
      const byDefault = await page.evaluate(
        ([query, documents]) => engine.rerank({ query, documents }),
        [first.query, documents],
      );
      assert.equal(byDefault.model, "ranks");
    }
  });

  const statuses = (list) => list.map(({ status }) => status);

  test("each answers under its names, with its own options, on the route that it fits", async () => {
    await page.evaluate((models) => start(models), MODELS);
    const result = await page.evaluate(async () => {
      const before = await list();
      const answers = {
        story: await story("gpt-3.5-turbo-instruct"),
        withoutTemplate: await talk("stories"),
        talk: await talk("chat"),
        embedded: await embed("default"),
        again: await embed("default"),
        default: await story("default"),
        stories: await embed("stories"),
        unknown: await story("gpt-4"),
      };
      return { before, answers, after: await list(), info: await engine.info() };
    });
    assert.deepEqual(statuses(result.before), ["unloaded", "unloaded", "unloaded"]);
    const { answers } = result;
    assert.equal(answers.story.value.model, "stories");
    assert.match(answers.story.value.text, /[a-z]{3}/);
    assert.deepEqual(answers.default, answers.story);
    assert.equal(answers.withoutTemplate.status, 400, answers.withoutTemplate.message);
    assert.match(answers.withoutTemplate.message, /template/);
    assert.equal(answers.talk.value, "chat");
    assert.deepEqual(answers.embedded, { value: ["texts", true] });
    assert.deepEqual(answers.again, answers.embedded);
    assert.deepEqual(
      [answers.stories.status, answers.stories.code],
      [400, "unsupported_parameter"],
    );
    assert.deepEqual([answers.unknown.status, answers.unknown.code], [404, "model_not_found"]);
    assert.match(
      answers.unknown.message,
      /does not exist; these do: "stories", "gpt-3.5-turbo-instruct", "chat", "texts"$/,
    );
    assert.deepEqual(statuses(result.after), ["ready", "ready", "ready"]);
    assert.deepEqual(
      result.after.map(({ capabilities }) => capabilities),
      [["completions"], ["completions", "chat"], ["embeddings"]],
    );
    assert.equal(result.after[0].context_length, 128);
    needs = Object.fromEntries(
      Object.entries(result.info.models).map(([name, { memoryBytes }]) => [name, memoryBytes]),
    );
    assert.equal(needs.stories, needs.chat);
    for (const bytes of Object.values(needs)) assert.ok(bytes > 100_000, `${bytes} bytes`);
  });

  test("within a budget for two, the one that was not used for the longest time is unloaded", async () => {
    const memoryBudgetBytes = needs.stories + Math.max(needs.chat, needs.texts);
    await page.evaluate((given) => start(...given), [MODELS, { memoryBudgetBytes }]);
    const result = await page.evaluate(async () => {
      const answers = [await story("stories"), await talk("chat"), await story("stories")];
      answers.push(await embed("texts"));
      return { answers, first: await list(), last: [await talk("chat"), await list()] };
    });
    for (const { value } of result.answers) assert.notEqual(value, undefined);
    assert.deepEqual(statuses(result.first), ["ready", "unloaded", "ready"]);
    assert.deepEqual(result.last[0], { value: "chat" });
    assert.deepEqual(statuses(result.last[1]), ["unloaded", "ready", "ready"]);
  });

  test("a model that is larger than the budget is refused with its sizes, and no other leaves", async () => {
    const [least, most] = [needs.texts, needs.stories].sort((a, b) => a - b);
    const [small, large] =
      needs.texts < needs.stories ? ["texts", "stories"] : ["stories", "texts"];
    assert.ok(least < most);
    await page.evaluate((given) => start(...given), [MODELS, { memoryBudgetBytes: most - 1 }]);
    const ask = { texts: "embed", stories: "story" };
    const result = await page.evaluate(
      async ([small, askSmall, large, askLarge]) => {
        const fits = await window[askSmall](small);
        const refused = await window[askLarge](large);
        const states = Object.fromEntries((await list()).map(({ id, status }) => [id, status]));
        return { fits, refused, states: [states[small], states[large]] };
      },
      [small, ask[small], large, ask[large]],
    );
    assert.notEqual(result.fits.value, undefined);
    assert.deepEqual([result.refused.status, result.refused.code], [503, "model_not_loaded"]);
    assert.match(result.refused.message, /memoryBudgetBytes|budget/);
    assert.deepEqual(result.states, ["ready", "failed"]);
  });
});
