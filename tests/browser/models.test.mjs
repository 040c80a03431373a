//! Several models behind one engine, with fake engines behind the real worker host: which one answers, when models are loaded
//! and unloaded, and what lists and errors say. A test that holds the lock `fake-load:NAME` decides when a load ends.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { startHarness } from "./harness.mjs";

let harness;
let page;

before(async () => {
  harness = await startHarness();
});
after(() => harness?.close());
/** A page with empty storage for each test of a group, or one for all. */
function pages(begin = beforeEach, end = afterEach) {
  begin(async () => {
    page = await openPage();
  });
  end(() => page.context().close());
}

async function openPage(context) {
  const opened = await harness.open(context);
  await opened.evaluate(() => {
    const file = (content) => ({ file: new Blob([content]) });
    Object.assign(window, {
      file,
      progress: [],
      eventually: (condition, what) => until(condition, what, 60_000),
      /** Models a, b and c of 40 bytes each; `a` has an alias. The fake ones refuse names that are not theirs. */
      startModels: async (options = {}) => {
        window.engine = await startFake({
          model: undefined,
          models: { a: { model: file("a"), aliases: ["nick"] }, b: file("b"), c: file("c") },
          fakeCapabilities: {},
          fakeMemoryBytes: { a: 40, b: 40, c: 40 },
          onProgress: (event) => progress.push(event),
          ...options,
        });
        return engine;
      },
      /** Requests a completion; gives the model that answered, or the error. */
      ask: (model, prompt = "count:1") =>
        caught(async () => (await engine.completions.create({ model, prompt })).model),
      send: async (path, body, init = {}) => {
        const answer = await engine.fetch(path, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body,
          ...init,
        });
        return { status: answer.status, body: JSON.parse(await answer.text()) };
      },
      get: async (path, headers = {}) => {
        const answer = await engine.fetch(path, { headers });
        return { status: answer.status, body: JSON.parse(await answer.text()) };
      },
      statuses: async () => {
        const { body } = await get("/v1/models");
        return Object.fromEntries(body.data.map(({ id, status }) => [id, status]));
      },
      /** Loads of the model do not end until the returned function is called. */
      holdLoad: (name) =>
        new Promise((held) => {
          void navigator.locks.request(`fake-load:${name}`, () => new Promise(held));
        }),
      /** Resolves when the model's load waits for room, or has gone on. */
      isWaiting: (name) =>
        eventually(
          async () => (await engine.info()).models[name]?.isMeasured,
          "its files are open",
        ),
      /** A stream that goes on until it is read to its end. */
      openStream: async (model) => {
        const body = { model, prompt: "count:50:0", stream: true };
        const chunks = (await engine.completions.create(body))[Symbol.asyncIterator]();
        await chunks.next();
        return async () => {
          let count = 1;
          while (!(await chunks.next()).done) count += 1;
          return count;
        };
      },
    });
  });
  return opened;
}

const UNLOADED = { a: "unloaded", b: "unloaded", c: "unloaded" };

describe("which model answers", () => {
  pages();

  test("the one that a request names is loaded for it, by its name or an alias", async () => {
    const result = await page.evaluate(async () => {
      await startModels();
      const before = await statuses();
      const answers = [await ask("b"), await ask("nick")];
      return { before, answers, after: await statuses() };
    });
    assert.deepEqual(result.before, UNLOADED);
    assert.deepEqual(result.answers, [{ value: "b" }, { value: "a" }]);
    assert.deepEqual(result.after, { a: "ready", b: "ready", c: "unloaded" });
  });

  test("`default` is the first one that the route fits", async () => {
    const result = await page.evaluate(async () => {
      const models = {
        e: { model: file("e"), capabilities: ["embeddings"] },
        t: file("t"),
        u: file("u"),
      };
      await startModels({ models, fakeCapabilities: { e: ["embeddings"] } });
      const embedded = await engine.embeddings.create({ model: "default", input: "x" });
      return [embedded.model, await ask("default"), await statuses()];
    });
    const loaded = { e: "ready", t: "ready", u: "unloaded" };
    assert.deepEqual(result, ["e", { value: "t" }, loaded]);
  });

  test("what a model can do is known after its first load, and decides about `default`", async () => {
    const result = await page.evaluate(async () => {
      await startModels({ fakeCapabilities: { a: ["embeddings"] } });
      const guessed = await ask("default");
      return [guessed, await ask("default"), (await get("/v1/models/a")).body.capabilities];
    });
    assert.deepEqual(result, [{ value: "a" }, { value: "b" }, ["embeddings"]]);
  });

  test("the switch `defaultModel` chooses `default`, which may be left out with `allowMissingModel`", async () => {
    const result = await page.evaluate(async () => {
      await startModels({ endpoint: { defaultModel: "b", profile: "llamacpp" } });
      const { status, body } = await send("/v1/completions", '{"prompt":"raw"}');
      return { status, model: body.model, statuses: await statuses() };
    });
    const loaded = { a: "unloaded", b: "ready", c: "unloaded" };
    assert.deepEqual(result, { status: 200, model: "b", statuses: loaded });
  });

  test("an unknown name is refused with the known ones, and nothing is loaded", async () => {
    const result = await page.evaluate(async () => {
      await startModels();
      return [await ask("z"), await get("/v1/models/z"), await statuses()];
    });
    const [asked, listed, statuses] = result;
    assert.deepEqual([asked.status, asked.code, asked.param], [404, "model_not_found", "model"]);
    const known = '; these do: "a", "nick", "b", "c"';
    assert.equal(asked.message, `the model "z" does not exist${known}`);
    assert.equal(listed.status, 404);
    assert.equal(listed.body.error.message, `the model does not exist${known}`);
    assert.deepEqual(statuses, UNLOADED);
  });

  test("requests that are wrong whatever the model is are refused without a load", async () => {
    const result = await page.evaluate(async () => {
      await startModels();
      const codes = [];
      for (const [path, body] of [
        ["/v1/completions", "{"],
        ["/v1/completions", '{"prompt":"raw"}'],
        ["/v1/completions", '{"prompt":"raw","model":""}'],
        ["https://inpage.invalid/v1/nothing", '{"model":"a"}'],
      ]) {
        const answer = await send(path, body);
        codes.push([answer.status, answer.body.error.code]);
      }
      return [codes, await statuses()];
    });
    const [codes, statuses] = result;
    assert.deepEqual(codes, [
      [400, "invalid_json"],
      [400, "missing_required_parameter"],
      [400, "missing_required_parameter"],
      [404, "unknown_url"],
    ]);
    assert.deepEqual(statuses, UNLOADED);
  });

  test("a wrong API key loads nothing", async () => {
    const result = await page.evaluate(async () => {
      await startModels({ endpoint: { apiKey: "secret" } });
      const headers = { "content-type": "application/json", authorization: "Bearer guess" };
      const { status } = await send("/v1/completions", '{"model":"a","prompt":"raw"}', { headers });
      const authorization = "Bearer secret";
      const unseen = await get("/v1/models");
      const { body } = await get("/v1/models", { authorization });
      return [status, unseen.status, body.data.map((it) => it.status), await ask("a")];
    });
    assert.deepEqual(result, [401, 401, Object.values(UNLOADED), { value: "a" }]);
  });

  test("nothing but the name changes in a body with an alias", async () => {
    const texts = await page.evaluate(async () => {
      await startModels();
      const bodies = [
        '{"seed": 12345678901234567890, "x": [{"model": "nick"}, "model"], "model" : "nick", "prompt":"raw"}',
        '{"mod\\u0065l":"nick","user":"\\"model\\":\\"nick\\"","prompt":"raw","n":1.0}',
        '{"model":"b","model":"nick","prompt":"raw"}',
      ];
      const texts = [];
      for (const body of bodies) {
        texts.push((await send("/v1/completions", body)).body.choices[0].text);
      }
      return texts;
    });
    assert.deepEqual(texts, [
      '{"seed": 12345678901234567890, "x": [{"model": "nick"}, "model"], "model" : "a", "prompt":"raw"}',
      '{"mod\\u0065l":"a","user":"\\"model\\":\\"nick\\"","prompt":"raw","n":1.0}',
      '{"model":"a","model":"a","prompt":"raw"}',
    ]);
  });

  test("options of one model are added to those of all", async () => {
    const result = await page.evaluate(async () => {
      const adapter = { file: new File(["l"], "poet.gguf") };
      const models = { a: { model: file("a"), lora: [adapter] }, b: file("b") };
      await startModels({ models });
      await ask("a");
      await ask("b");
      const { models: infos } = await engine.info();
      return [infos.a.lora, infos.b.lora, infos.a.memoryBytes];
    });
    assert.deepEqual(result, [["poet"], [], 40]);
  });
});

describe("lists", () => {
  pages();

  test("say what state each model is in, and what is known about it", async () => {
    const result = await page.evaluate(async () => {
      const models = {
        a: { model: file("a"), aliases: ["nick", "org/nick"] },
        b: { model: file("b"), capabilities: ["embeddings"] },
        c: file("c"),
      };
      await startModels({ models, fakeFailingModels: ["c"] });
      const letGo = await holdLoad("a");
      const asked = ask("a");
      await eventually(async () => (await statuses()).a === "loading", "the load has begun");
      const early = (await get("/v1/models")).body;
      letGo();
      await asked;
      await ask("c");
      const late = (await get("/v1/models")).body;
      const cards = {};
      for (const name of ["a", "nick", "org/nick", "org%2Fnick", "default", "c"]) {
        cards[name] = (await get(`/v1/models/${name}`)).body.id;
      }
      return { early, late, cards };
    });
    const { created } = result.early.data[0];
    assert.ok(Number.isInteger(created) && created > 1e9);
    const same = { object: "model", created, owned_by: "inpage" };
    const a = { id: "a", ...same, status: "loading", aliases: ["nick", "org/nick"] };
    const b = { id: "b", ...same, status: "unloaded", capabilities: ["embeddings"] };
    const c = { id: "c", ...same, status: "unloaded" };
    assert.deepEqual(result.early, { object: "list", data: [a, b, c] });
    const context = { context_length: 64, max_model_len: 64 };
    const ready = { ...a, status: "ready", ...context, capabilities: ["completions"] };
    assert.deepEqual(result.late.data, [ready, b, { ...c, status: "failed" }]);
    const ids = { a: "a", nick: "a", "org/nick": "a", "org%2Fnick": "a", default: "a", c: "c" };
    assert.deepEqual(result.cards, ids);
  });

  test("what is known of a model stays known when it is unloaded", async () => {
    const result = await page.evaluate(async () => {
      await startModels();
      await ask("a");
      await get("/v1/models");
      await engine.unloadModel("nick");
      return (await get("/v1/models/a")).body;
    });
    assert.deepEqual([result.status, result.capabilities], ["unloaded", ["completions"]]);
    assert.ok(!("context_length" in result));
  });
});

describe("loads", () => {
  pages();

  test('a request waits for its load; with `whenModelNotReady: "error"` it does not', async () => {
    const result = await page.evaluate(async () => {
      const answers = [];
      for (const options of [{}, { endpoint: { whenModelNotReady: "error" } }]) {
        await startModels(options);
        const letGo = await holdLoad("a");
        const asked = ask("a").then((answer) => answers.push(answer));
        await eventually(async () => (await statuses()).a === "loading", "the load has begun");
        if (options.whenModelNotReady) await asked;
        letGo();
        await asked;
        await engine.loadModel("a");
        answers.push(await ask("a"));
      }
      return answers;
    });
    assert.deepEqual(result.slice(0, 2), [{ value: "a" }, { value: "a" }]);
    assert.deepEqual([result[2].status, result[2].code], [503, "model_loading"]);
    assert.deepEqual(result[3], { value: "a" });
  });

  test("come one after the other, in the order of the requests, and name their model", async () => {
    const events = await page.evaluate(async () => {
      await startModels();
      const letGo = await holdLoad("b");
      const asked = [ask("b")];
      await eventually(async () => progress.length > 0, "the first load has begun");
      asked.push(ask("c"), ask("a"));
      await eventually(
        async () => Object.values(await statuses()).every((it) => it === "loading"),
        "all were asked for",
      );
      letGo();
      await Promise.all(asked);
      const ended = () => progress.filter(({ phase }) => phase === "ready").length === 3;
      await eventually(async () => ended(), "the end of all loads was reported");
      return progress.map(({ model, phase }) => `${model} ${phase}`);
    });
    const models = events.map((event) => event[0]);
    assert.equal(models.join("").replace(/(.)\1*/g, "$1"), "bca", events.join());
    for (const model of "abc") assert.ok(events.includes(`${model} ready`), events.join());
  });

  test("the least recently used model makes room", async () => {
    const result = await page.evaluate(async () => {
      await startModels({ memoryBudgetBytes: 100 });
      for (const name of ["a", "b", "a", "c"]) await ask(name);
      const first = await statuses();
      await ask("b");
      return [first, await statuses()];
    });
    assert.deepEqual(result, [
      { a: "ready", b: "unloaded", c: "ready" },
      { a: "unloaded", b: "ready", c: "ready" },
    ]);
  });

  test("without a budget, all stay loaded", async () => {
    const result = await page.evaluate(async () => {
      await startModels();
      for (const name of ["a", "b", "c"]) await ask(name);
      return statuses();
    });
    assert.deepEqual(result, { a: "ready", b: "ready", c: "ready" });
  });

  test("a model is not unloaded while a request is in flight", async () => {
    const result = await page.evaluate(async () => {
      await startModels({ memoryBudgetBytes: 50 });
      const readOn = await openStream("a");
      const log = [];
      const asked = ask("b").then((answer) => log.push(answer.value));
      await eventually(async () => (await statuses()).b === "loading", "it was asked for");
      await isWaiting("b");
      const during = await statuses();
      const count = await readOn();
      log.push("a");
      await asked;
      return { during, count, log, after: await statuses() };
    });
    assert.deepEqual(result, {
      during: { a: "ready", b: "loading", c: "unloaded" },
      count: 50,
      log: ["a", "b"],
      after: { a: "unloaded", b: "ready", c: "unloaded" },
    });
  });

  test("one that does not fit now holds no later one up that fits", async () => {
    const result = await page.evaluate(async () => {
      await startModels({ memoryBudgetBytes: 100, fakeMemoryBytes: { a: 40, b: 70, c: 40 } });
      const readOn = await openStream("a");
      const log = [];
      const asked = ask("b").then(({ value }) => log.push(value));
      await isWaiting("b");
      log.push((await ask("c")).value, (await ask("c")).value);
      const during = await statuses();
      await readOn();
      await asked;
      return { log, during, after: await statuses() };
    });
    assert.deepEqual(result, {
      log: ["c", "c", "b"],
      during: { a: "ready", b: "loading", c: "ready" },
      after: { a: "unloaded", b: "ready", c: "unloaded" },
    });
  });

  test("one that waits gets the room of those that went ahead, however often they are asked", async () => {
    const result = await page.evaluate(async () => {
      await startModels({ memoryBudgetBytes: 100, fakeMemoryBytes: { a: 40, b: 70, c: 40 } });
      const readA = await openStream("a");
      const log = [];
      const asked = ask("b").then(({ value }) => log.push(value));
      await isWaiting("b");
      const readC = await openStream("c");
      await readA();
      // The stream of c is not read, and b waits for it. Further requests for c wait for b.
      await eventually(async () => (await statuses()).c === "unloaded", "it takes no requests");
      const later = ask("c").then(({ value }) => log.push(value));
      await eventually(async () => (await statuses()).c === "loading", "c is to be loaded again");
      const count = await readC();
      await Promise.all([asked, later]);
      return { log, count };
    });
    assert.deepEqual(result, { log: ["b", "c"], count: 50 });
  });

  test("one that waits for room for too long is refused with 503, and tried again", async () => {
    const result = await page.evaluate(async () => {
      window.inpage = await import("/dist/exports.js");
      const { LOADS } = await import("/dist/models/loads.js");
      LOADS.maxWaitMs = 1000;
      await startModels({ memoryBudgetBytes: 50 });
      const readOn = await openStream("a");
      const post = () =>
        engine.fetch("/v1/completions", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ model: "b", prompt: "count:1" }),
        });
      const refused = await post();
      const { error } = await refused.json();
      const retryAfter = refused.headers.get("retry-after");
      const count = await readOn();
      const answered = await eventually(async () => (await post()).ok, "it is loaded");
      return { status: refused.status, error, retryAfter, count, answered };
    });
    const { status, error, retryAfter } = result;
    assert.deepEqual([status, error.code, retryAfter], [503, "model_not_loaded", "1"]);
    assert.match(error.message, /no room for the model for 1 s: it needs 40 of the 50 bytes/);
    assert.deepEqual([result.count, result.answered], [50, true]);
  });

  test("a stream that is left, or aborted, makes room", async () => {
    const result = await page.evaluate(async () => {
      await startModels({ memoryBudgetBytes: 50 });
      const stream = await engine.completions.create({
        ...{ model: "a", prompt: "count:5000:2", stream: true },
      });
      for await (const _ of stream) break;
      const second = await ask("b");
      const controller = new AbortController();
      const body = { model: "b", prompt: "count:5000:2" };
      const aborted = caught(() => engine.completions.create(body, { signal: controller.signal }));
      await eventually(async () => (await engine.info()).models.b.active === 1, "it runs");
      controller.abort();
      return [second, (await aborted).name, await ask("c"), await statuses()];
    });
    const after = { a: "unloaded", b: "unloaded", c: "ready" };
    assert.deepEqual(result, [{ value: "b" }, "AbortError", { value: "c" }, after]);
  });

  test("a model that is larger than the budget makes no other leave", async () => {
    const result = await page.evaluate(async () => {
      await startModels({ memoryBudgetBytes: 100, fakeMemoryBytes: { a: 40, b: 101, c: 40 } });
      for (const name of ["a", "c"]) await ask(name);
      // The fake one loads nevertheless; the real one is refused by its own load.
      await ask("b");
      return statuses();
    });
    assert.deepEqual(result, { a: "ready", b: "ready", c: "ready" });
  });

  test("a failed load is reported to its requests, and the next attempt can succeed", async () => {
    const result = await page.evaluate(async () => {
      await startModels({ fakeFailingModels: ["a", "b"] });
      const failed = await ask("a");
      const others = [await caught(() => engine.loadModel("b")), await ask("c")];
      const listed = await statuses();
      await engine.loadModel("b");
      const later = [await ask("b")];
      // After a pause a request tries again.
      later.push(await eventually(async () => (await ask("a")).value, "it is loaded"));
      return { failed, others, listed, later, after: await statuses() };
    });
    assert.deepEqual([result.failed.status, result.failed.code], [503, "model_not_loaded"]);
    assert.match(result.failed.message, /the fake model cannot be loaded/);
    assert.match(result.others[0].message, /the fake model cannot be loaded/);
    assert.deepEqual(result.others[1], { value: "c" });
    // On a busy machine the pause of a is over by then, and its next attempt has begun.
    assert.match(result.listed.a, /^(failed|loading)$/);
    assert.deepEqual([result.listed.b, result.listed.c], ["failed", "ready"]);
    assert.deepEqual(result.later, [{ value: "b" }, "a"]);
    assert.deepEqual(result.after, { a: "ready", b: "ready", c: "ready" });
  });

  test("load and unload are for names and aliases; unload waits for what is in flight", async () => {
    const result = await page.evaluate(async () => {
      await startModels();
      await engine.loadModel("nick");
      const loaded = await statuses();
      const readOn = await openStream("a");
      let isUnloaded = false;
      const unloaded = engine.unloadModel("a").then(() => {
        isUnloaded = true;
      });
      const leaving = await statuses();
      const early = isUnloaded;
      const count = await readOn();
      await unloaded;
      await engine.unloadModel("b");
      const unknown = [
        await caught(() => engine.loadModel("z")),
        await caught(() => engine.unloadModel("z")),
      ];
      return { loaded, leaving, early, count, unknown, again: await ask("a") };
    });
    assert.deepEqual(result.loaded, { ...UNLOADED, a: "ready" });
    assert.deepEqual(result.leaving, UNLOADED);
    assert.deepEqual([result.early, result.count], [false, 50]);
    for (const { name, code, message } of result.unknown) {
      assert.deepEqual([name, code], ["InpageError", "model_not_found"]);
      assert.equal(message, 'there is no model "z"; these are: "a", "b", "c"');
    }
    assert.deepEqual(result.again, { value: "a" });
  });

  test("a lost engine starts again without waiting for another load, and others go on", async () => {
    const result = await page.evaluate(async () => {
      await startModels({ memoryBudgetBytes: 50 });
      const body = { model: "a", prompt: "lose:6:5:1", stream: true };
      const chunks = (await engine.completions.create(body))[Symbol.asyncIterator]();
      let text = (await chunks.next()).value.choices[0].text;
      // Waits until the stream has ended, which needs the engine that takes over.
      const other = ask("b");
      await isWaiting("b");
      for (;;) {
        const { done, value } = await chunks.next();
        if (done) break;
        text += value.choices[0].text;
      }
      return [text, await other];
    });
    assert.deepEqual(result, ["é0 é1 é2 é3 é4 é5 ", { value: "b" }]);
  });

  test("adapters of one model are replaced, and kept by its next load", async () => {
    const result = await page.evaluate(async () => {
      await startModels();
      const adapter = { file: new File(["l"], "poet.gguf") };
      await engine.setLora([adapter], "nick");
      const names = [(await engine.info()).models.a.lora];
      await engine.unloadModel("a");
      await ask("a");
      names.push((await engine.info()).models.a.lora);
      return [names, await caught(() => engine.setLora([adapter]))];
    });
    assert.deepEqual(result[0], [["poet"], ["poet"]]);
    assert.equal(result[1].message, "setLora: say which of the models");
  });

  test("reload starts the models again that are loaded", async () => {
    const result = await page.evaluate(async () => {
      await startModels();
      await ask("a", "count:3");
      const { produced } = (await engine.info()).models.a;
      await engine.reload();
      const { models } = await engine.info();
      return [produced, models.a.produced, models.a.loads, Object.keys(models)];
    });
    assert.deepEqual(result, [3, 0, 1, ["a"]]);
  });
});

describe("the end", () => {
  pages();

  test("dispose ends what is in flight and what waits, and all workers", async () => {
    const result = await page.evaluate(async () => {
      await startModels({ memoryBudgetBytes: 50 });
      const running = ask("a", "count:5000:5");
      await eventually(async () => (await engine.info()).models?.a?.active === 1, "one runs");
      const waiting = ask("b");
      await isWaiting("b");
      await engine.dispose();
      const late = await ask("c");
      const load = await caught(() => engine.loadModel("c"));
      const adapters = await caught(() => engine.setLora([], "c"));
      return {
        alive: engine.alive,
        codes: [await running, await waiting, late, load, adapters],
        info: await engine.info(),
      };
    });
    assert.equal(result.alive, false);
    for (const { code } of result.codes) assert.equal(code, "engine_unavailable");
    assert.deepEqual(result.info, { models: {} });
    await waitForWorkers(page, 0);
  });

  test("an unloaded model leaves no worker, and the first loaded one replaces the lobby's", async () => {
    await page.evaluate(async () => {
      await startModels();
      await statuses();
    });
    assert.equal(page.workers().length, 1);
    await page.evaluate(() => ask("a"));
    await waitForWorkers(page, 1);
    await page.evaluate(() => ask("b"));
    await waitForWorkers(page, 2);
    await page.evaluate(() => engine.unloadModel("a"));
    await waitForWorkers(page, 1);
  });
});

async function waitForWorkers(tab, count) {
  const end = performance.now() + 60_000;
  while (tab.workers().length !== count) {
    assert.ok(performance.now() < end, `${tab.workers().length} workers, not ${count}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe("options", () => {
  pages(before, after);

  const refused = (options) =>
    page.evaluate(
      async (source) => caught(() => startModels(new Function(`return ${source}`)())),
      options,
    );

  for (const [what, options, message] of [
    ["no models", "{ models: {} }", /^models names no model$/],
    ["an array", '{ models: ["x.gguf"] }', /^models must be an object/],
    ["one model and several", '{ model: "x.gguf" }', /^model and models exclude each other$/],
    ["an empty name", '{ models: { "": "x.gguf" } }', /^models: a name is empty$/],
    ["an empty alias", '{ models: { x: { model: "x.gguf", aliases: [""] } } }', /a name is empty$/],
    ["the name default", '{ models: { default: "x.gguf" } }', /"default" means whichever/],
    [
      "an alias of two",
      '{ models: { x: { model: "x.gguf", aliases: ["y"] }, y: "y.gguf" } }',
      /^models: "y" names two models/,
    ],
    [
      "aliases that are no array",
      '{ models: { x: { model: "x.gguf", aliases: "y" } } }',
      /^models\["x"\]\.aliases must be an array of strings$/,
    ],
    [
      "capabilities that are no strings",
      '{ models: { x: { model: "x.gguf", capabilities: [1] } } }',
      /^models\["x"\]\.capabilities must be an array of strings$/,
    ],
    ["no place", "{ models: { x: { model: 5 } } }", /^models\["x"\] needs a model/],
    ["null", "{ models: { x: null } }", /^models\["x"\] needs a model/],
    [
      "a wrong place",
      '{ models: { x: "http://[" } }',
      /^models\["x"\]: "http:\/\/\[" is not a URL$/,
    ],
    [
      "another id",
      '{ models: { x: { url: "x.gguf", id: "y" } } }',
      /^models\["x"\] has the id "y": the name of a model is its id$/,
    ],
    [
      "an option that is not for one",
      '{ models: { x: { model: "x.gguf", endpoint: { apiKey: "k" } } } }',
      /^models\["x"\]\.endpoint\.apiKey: it is an option of all models/,
    ],
    ["a budget of 0", "{ memoryBudgetBytes: 0 }", /^memoryBudgetBytes must be a positive number/],
    ["a budget that is no number", '{ memoryBudgetBytes: "2000" }', /^memoryBudgetBytes must be/],
    [
      "a default that is none",
      '{ endpoint: { defaultModel: "z" } }',
      /^endpoint\.defaultModel: there is no model "z"/,
    ],
  ]) {
    test(`${what} is refused`, async () => {
      const failure = await refused(options);
      assert.equal(failure.code, "invalid_option", JSON.stringify(failure));
      assert.match(failure.message, message);
    });
  }

  test("load and unload are refused by an engine with one model", async () => {
    const failures = await page.evaluate(async () => {
      const engine = await startFake();
      return [
        await caught(() => engine.loadModel("fake")),
        await caught(() => engine.unloadModel("fake")),
      ];
    });
    for (const { name, code, message } of failures) {
      assert.deepEqual([name, code], ["InpageError", "invalid_option"]);
      assert.match(message, /is for engines with several models/);
    }
  });
});

describe("other doors", () => {
  pages();

  const complete = (tab, model, prompt) =>
    tab.evaluate(
      async ([model, prompt]) => {
        const answer = await fetch("/v1/completions", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ model, prompt, stream: true }),
        });
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        let text = "";
        window.leave = () => reader.cancel();
        for (;;) {
          const { done, value } = await reader.read();
          if (done) break;
          text += value;
          window.received = text.length;
        }
        const events = text.split("\n\n").filter((event) => event.includes('"choices"'));
        const chunks = events.map((event) => JSON.parse(event.slice(6)));
        return { model: chunks[0]?.model, text: chunks.map((it) => it.choices[0].text).join("") };
      },
      [model, prompt],
    );

  test("plain fetch of another tab reaches the models, and keeps its model loaded", async () => {
    await page.evaluate(async () => {
      await startModels({ memoryBudgetBytes: 50 });
      await inpage.serveFromPage(engine).ready;
    });
    const other = await openPage(page.context());
    await other.waitForFunction(() => navigator.serviceWorker.controller !== null);
    // Far more than the test waits for.
    const streaming = complete(other, "nick", "count:100000:1");
    await other.waitForFunction(() => window.received > 0);
    const during = await page.evaluate(async () => {
      window.asked = ask("b");
      await isWaiting("b");
      return statuses();
    });
    await other.evaluate(() => leave());
    const { model } = await streaming;
    const second = await page.evaluate(async () => [await asked, await statuses()]);
    assert.equal(model, "a");
    assert.deepEqual(during, { a: "ready", b: "loading", c: "unloaded" });
    assert.deepEqual(second, [{ value: "b" }, { ...UNLOADED, b: "ready" }]);
    const ids = await other.evaluate(async () =>
      (await (await fetch("/v1/models")).json()).data.map(({ id }) => id),
    );
    assert.deepEqual(ids, ["a", "b", "c"]);
  });

  test("when the tab is closed, another tab with the models continues the stream of a third", async () => {
    const tabs = [page, await openPage(page.context())];
    for (const tab of tabs) {
      await tab.evaluate(async () => {
        await startModels();
        await inpage.serveFromPage(engine).ready;
      });
    }
    const asking = await openPage(page.context());
    await asking.waitForFunction(() => navigator.serviceWorker.controller !== null);
    const streaming = complete(asking, "a", "count:300:5");
    await asking.waitForFunction(() => window.received > 0);
    for (const tab of tabs) {
      const { models } = await tab.evaluate(() => engine.info());
      if (models.a === undefined) continue;
      await tab.evaluate(() => void engine.dispose());
      break;
    }
    const { text } = await streaming;
    assert.equal(text, Array.from({ length: 300 }, (_, i) => `é${i} `).join(""));
  });

  test("a model that another tab has in use through this one is not unloaded", async () => {
    const url = (name) => `/models/tales.gguf?${name}`;
    const models = { a: url("a"), b: url("b") };
    const options = { models, shared: undefined, memoryBudgetBytes: 50 };
    const second = await openPage(page.context());
    await page.evaluate((options) => startModels(options).then(() => {}), options);
    assert.deepEqual(await page.evaluate(() => ask("a")), { value: "a" });
    await second.evaluate((options) => startModels(options).then(() => {}), options);
    await second.evaluate(async () => {
      window.readOn = await openStream("a");
    });
    const during = await page.evaluate(async () => {
      window.asked = ask("b");
      await isWaiting("b");
      return statuses();
    });
    assert.deepEqual(during, { a: "ready", b: "loading" });
    assert.equal(await second.evaluate(() => readOn()), 50);
    const after = await page.evaluate(async () => [await asked, await statuses()]);
    assert.deepEqual(after, [{ value: "b" }, { a: "unloaded", b: "ready" }]);
  });

  test("tabs share each model that is named by a URL", async () => {
    const url = (name) => `/models/tales.gguf?${name}`;
    const options = { models: { a: url("a"), b: url("b") }, shared: undefined };
    const second = await openPage(page.context());
    for (const tab of [page, second]) {
      await tab.evaluate((options) => startModels(options).then(() => {}), options);
      assert.deepEqual(await tab.evaluate(() => ask("a")), { value: "a" });
    }
    const infos = [];
    for (const tab of [page, second]) {
      const { models } = await tab.evaluate(() => engine.info());
      infos.push([models.a.shared, models.a.loads, models.a.produced, "b" in models]);
    }
    assert.deepEqual(infos[0], [true, 1, 2, false]);
    assert.deepEqual(infos[1], infos[0]);
    await waitForWorkers(second, 0);
    // The tab that runs it leaves; the other one takes over.
    await page.evaluate(() => engine.unloadModel("a"));
    assert.deepEqual(await second.evaluate(() => ask("a")), { value: "a" });
    assert.deepEqual(await page.evaluate(() => statuses()), { a: "unloaded", b: "unloaded" });
  });
});
