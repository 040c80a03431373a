//! `engine.completions.create` and `engine.fetch`, with a fake engine behind the real worker host. The tests of a
//! group share a page and an engine, and each leaves the engine idle.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness } from "./harness.mjs";

let harness;
let page;
before(async () => {
  harness = await startHarness();
});
after(() => harness?.close());

for (const bodyTransport of ["transfer", "chunks"]) {
  describe(`bodies by ${bodyTransport}`, () => {
    before(async () => {
      page = await harness.open();
      await page.evaluate(async (transport) => {
        window.engine = await startFake({ bodyTransport: transport });
      }, bodyTransport);
    });
    after(() => page?.context().close());

    test("create returns the parsed object", async () => {
      const completion = await page.evaluate(() =>
        engine.completions.create({ model: "fake", prompt: "count:3" }),
      );
      assert.equal(completion.object, "text_completion");
      assert.equal(completion.choices[0].text, "é0 é1 é2 ");
    });

    test("create with stream yields chunks, and ends", async () => {
      const texts = await page.evaluate(async () => {
        const texts = [];
        const body = { model: "fake", prompt: "count:40:0", stream: true };
        for await (const chunk of await engine.completions.create(body)) {
          texts.push(chunk.choices[0].text);
        }
        return texts;
      });
      assert.equal(texts.length, 40);
      assert.equal(texts[39], "é39 ");
    });

    test("break stops the generation, and the next request works", async () => {
      const { active, text } = await page.evaluate(async () => {
        const body = { model: "fake", prompt: "count:5000:2", stream: true };
        for await (const _ of await engine.completions.create(body)) break;
        await until(async () => (await engine.info()).active === 0, "the generation stopped");
        const next = await engine.completions.create({ model: "fake", prompt: "count:1" });
        return { active: (await engine.info()).active, text: next.choices[0].text };
      });
      assert.equal(active, 0);
      assert.equal(text, "é0 ");
    });

    test("cancel() of a stream ends its loop without an error", async () => {
      const count = await page.evaluate(async () => {
        const body = { model: "fake", prompt: "count:5000:2", stream: true };
        const stream = await engine.completions.create(body);
        let count = 0;
        for await (const _ of stream) if (++count === 3) stream.cancel();
        await until(async () => (await engine.info()).active === 0, "the generation stopped");
        return count;
      });
      assert.ok(count >= 3 && count < 100, `${count} chunks`);
    });

    test("an aborted stream rejects with AbortError and stops the generation", async () => {
      const result = await page.evaluate(async () => {
        const controller = new AbortController();
        const result = await caught(async () => {
          const body = { model: "fake", prompt: "count:5000:2", stream: true };
          const stream = await engine.completions.create(body, { signal: controller.signal });
          let count = 0;
          for await (const _ of stream) if (++count === 3) controller.abort();
        });
        await until(async () => (await engine.info()).active === 0, "the generation stopped");
        return result;
      });
      assert.equal(result.name, "AbortError");
    });

    test("an aborted plain request rejects with AbortError and stops the generation", async () => {
      const result = await page.evaluate(async () => {
        const signal = AbortSignal.timeout(100);
        const result = await caught(() =>
          engine.completions.create({ model: "fake", prompt: "count:5000:2" }, { signal }),
        );
        await until(async () => (await engine.info()).active === 0, "the generation stopped");
        return result;
      });
      assert.equal(result.name, "AbortError");
    });

    test("an answer that is aborted in its body rejects with AbortError", async () => {
      const result = await page.evaluate(async () => {
        const { lateBodies = 0 } = await engine.info();
        const controller = new AbortController();
        const { signal } = controller;
        const body = { model: "fake", prompt: "late:0:60000" };
        const running = caught(() => engine.completions.create(body, { signal }));
        await until(async () => (await engine.info()).lateBodies > lateBodies, "it has begun");
        controller.abort();
        return running;
      });
      assert.equal(result.name, "AbortError", result.message);
    });

    test("a signal that is already aborted sends no request", async () => {
      const result = await page.evaluate(async () => {
        const before = (await engine.info()).produced;
        const result = await caught(() =>
          engine.completions.create(
            { model: "fake", prompt: "count:1" },
            { signal: AbortSignal.abort() },
          ),
        );
        return { ...result, produced: (await engine.info()).produced - before };
      });
      assert.equal(result.name, "AbortError");
      assert.equal(result.produced, 0);
    });

    test("an unread stream pauses the engine", async () => {
      const produced = await page.evaluate(async () => {
        const before = (await engine.info()).produced;
        const body = { model: "fake", prompt: "count:5000:0", stream: true };
        const stream = await engine.completions.create(body);
        await new Promise((resolve) => setTimeout(resolve, 500));
        const { produced } = await engine.info();
        await stream.cancel();
        await until(async () => (await engine.info()).active === 0, "the generation stopped");
        return produced - before;
      });
      assert.ok(produced < 64, `${produced} chunks ahead of the reader`);
    });

    test("an error event inside a stream is thrown", async () => {
      const result = await page.evaluate(() =>
        caught(async () => {
          const body = { model: "fake", prompt: "error-after:9", stream: true };
          for await (const _ of await engine.completions.create(body));
        }),
      );
      assert.equal(result.className, "InpageError");
      assert.equal(result.code, "invalid_logits");
    });

    test("concurrent requests do not mix", async () => {
      const texts = await page.evaluate(() =>
        Promise.all(
          Array.from({ length: 20 }, async (_, index) => {
            const body = { model: "fake", prompt: `count:${index + 1}:1`, stream: true };
            let text = "";
            for await (const chunk of await engine.completions.create(body)) {
              text += chunk.choices[0].text;
            }
            return text;
          }),
        ),
      );
      texts.forEach((text, index) => {
        assert.equal(text.split(" ").length - 1, index + 1);
      });
      const open = await page.evaluate(() =>
        until(async () => (await engine.info()).active === 0, "no answer is open").then(() => 0),
      );
      assert.equal(open, 0);
    });

    test("the openai SDK works with engine.fetch", async () => {
      const result = await page.evaluate(async () => {
        const openai = client({ fetch: engine.fetch });
        const plain = await openai.completions.create({ model: "fake", prompt: "count:4" });
        let streamed = "";
        const stream = await openai.completions.create({
          model: "fake",
          prompt: "count:4",
          stream: true,
        });
        for await (const chunk of stream) streamed += chunk.choices[0].text;
        const models = [];
        for await (const model of openai.models.list()) models.push(model.id);
        return { plain: plain.choices[0].text, id: plain._request_id, streamed, models };
      });
      assert.deepEqual(result, {
        plain: "é0 é1 é2 é3 ",
        id: "req_fake",
        streamed: "é0 é1 é2 é3 ",
        models: ["fake"],
      });
    });

    test("the openai SDK maps errors to its classes", async () => {
      const [bad, unknown, inside] = await page.evaluate(async () => {
        const openai = client({ fetch: engine.fetch });
        const create = (body) =>
          caught(() => openai.completions.create({ model: "fake", ...body }));
        return [
          await create({ prompt: "count:1", temperature: 3 }),
          await create({ prompt: "count:1", model: "absent" }),
          await caught(async () => {
            const body = { model: "fake", prompt: "error-after:9", stream: true };
            for await (const _ of await openai.completions.create(body));
          }),
        ];
      });
      assert.equal(bad.className, "BadRequestError");
      assert.deepEqual([bad.status, bad.code, bad.param], [400, "out_of_range", "temperature"]);
      assert.equal(unknown.className, "NotFoundError");
      assert.deepEqual([unknown.code, unknown.param], ["model_not_found", "model"]);
      assert.equal(inside.className, "APIError");
      assert.equal(inside.code, "invalid_logits");
    });

    test("break and abort of the openai SDK stop the generation", async () => {
      const abort = await page.evaluate(async () => {
        const openai = client({ fetch: engine.fetch });
        const body = { model: "fake", prompt: "count:5000:2", stream: true };
        const idle = () => until(async () => (await engine.info()).active === 0, "it stopped");
        for await (const _ of await openai.completions.create(body)) break;
        await idle();
        const controller = new AbortController();
        const abort = caught(() =>
          openai.completions.create({ ...body, stream: false }, { signal: controller.signal }),
        );
        setTimeout(() => controller.abort(), 100);
        await idle();
        return abort;
      });
      assert.equal(abort.className, "APIUserAbortError");
    });
  });
}

describe("details", () => {
  before(async () => {
    page = await harness.open();
    await page.evaluate(async () => {
      window.engine = await startFake();
    });
  });
  after(() => page?.context().close());

  test("an error response becomes an InpageError with all its fields", async () => {
    const result = await page.evaluate(() =>
      caught(() => engine.completions.create({ model: "fake", prompt: "x", temperature: 3 })),
    );
    assert.equal(result.className, "InpageError");
    assert.deepEqual(
      [result.status, result.code, result.param, result.type],
      [400, "out_of_range", "temperature", "invalid_request_error"],
    );
    assert.match(result.message, /at most 2/);
  });

  test("values are encoded without loss", async () => {
    const text = await page.evaluate(async () => {
      const body = {
        model: "fake",
        prompt: "raw",
        seed: 9007199254740993n,
        min_p: null,
        user: undefined,
        stop: ["\u2028", '"'],
        max_tokens: new Number(5),
        ids: [new Uint32Array([1, 4294967295]), new BigInt64Array([-1n])],
        made: { toJSON: () => ({ toJSON: "a member", at: new Date(0) }) },
      };
      return (await engine.completions.create(body)).choices[0].text;
    });
    assert.equal(
      text,
      '{"model":"fake","prompt":"raw","seed":9007199254740993,"min_p":null,"stop":["\u2028","\\""],' +
        '"max_tokens":5,"ids":[[1,4294967295],[-1]],' +
        '"made":{"toJSON":"a member","at":"1970-01-01T00:00:00.000Z"}}',
    );
  });

  test("values without a JSON form are refused, with field and path", async () => {
    const results = await page.evaluate(async () => {
      const cases = [
        { temperature: Number.NaN },
        { top_p: Number.POSITIVE_INFINITY },
        { prompt: [1, Number.NaN] },
        { prompt: [[5], new Float32Array([1, Number.NEGATIVE_INFINITY])] },
        { logit_bias: { 5: Number.NaN } },
        { logit_bias: new Map([[5, 1]]) },
        { response_format: { type: "json_schema", schema: { "x-y": [() => {}] } } },
        { stop: ["a", undefined] },
        { user: Symbol("a") },
        { prompt: Promise.resolve("a") },
        { tools: [{ toJSON: () => Number.NaN }] },
      ];
      return Promise.all(
        cases.map((fields) =>
          caught(() => engine.completions.create({ model: "fake", prompt: "raw", ...fields })),
        ),
      );
    });
    for (const { className, status, code, type } of results) {
      assert.deepEqual(
        [className, status, code, type],
        ["InpageError", 400, "invalid_type", "invalid_request_error"],
      );
    }
    assert.deepEqual(
      results.map(({ param, message }) => [param, message]),
      [
        ["temperature", "temperature must be a JSON value, not NaN"],
        ["top_p", "top_p must be a JSON value, not Infinity"],
        ["prompt", "prompt[1] must be a JSON value, not NaN"],
        ["prompt", "prompt[1][1] must be a JSON value, not -Infinity"],
        ["logit_bias", 'logit_bias["5"] must be a JSON value, not NaN'],
        ["logit_bias", "logit_bias must be a JSON value, not a value of type Map"],
        [
          "response_format",
          'response_format.schema["x-y"][0] must be a JSON value, not a function',
        ],
        ["stop", "stop[1] must be a JSON value, not undefined"],
        ["user", "user must be a JSON value, not a symbol"],
        ["prompt", "prompt must be a JSON value, not a value of type Promise"],
        ["tools", "tools[0] must be a JSON value, not NaN"],
      ],
    );
  });

  test("a body without a JSON form is refused before anything is sent", async () => {
    const results = await page.evaluate(async () => {
      const cyclic = { model: "fake", prompt: "raw" };
      cyclic.self = cyclic;
      return [
        await caught(() => engine.completions.create(cyclic)),
        await caught(() => engine.completions.create(undefined)),
      ];
    });
    assert.deepEqual(
      results.map(({ name, code }) => [name, code]),
      Array(2).fill(["InpageError", "invalid_type"]),
    );
  });

  test("a stream can be iterated without awaiting it first", async () => {
    const result = await page.evaluate(async () => {
      const request = (prompt) => ({ model: "fake", prompt, stream: true });
      let text = "";
      for await (const { choices } of engine.completions.create(request("count:3"))) {
        text += choices[0].text;
      }
      const refused = await caught(async () => {
        for await (const _ of engine.completions.create({ ...request("x"), temperature: 9 })) break;
      });
      for await (const _ of engine.completions.create(request("count:5000:2"))) break;
      await until(async () => (await engine.info()).active === 0, "leaving the loop stops it");
      const stream = engine.completions.create(request("count:2"));
      for await (const _ of stream);
      const again = await caught(async () => {
        for await (const _ of stream) break;
      });
      const whole = engine.completions.create({ model: "fake", prompt: "count:2" });
      return [
        text,
        refused.code,
        again.message,
        Symbol.asyncIterator in whole,
        (await whole).object,
      ];
    });
    assert.equal(result[0], "é0 é1 é2 ");
    assert.equal(result[1], "out_of_range");
    assert.match(result[2], /only once/);
    assert.deepEqual(result.slice(3), [false, "text_completion"]);
  });

  test("engine.fetch answers the endpoint of the page's origin and passes the rest to the network", async () => {
    const result = await page.evaluate(async () => {
      const network = await engine.fetch("/plain");
      const request = new Request("/openai/v1/models", { headers: { "x-a": "b" } });
      const models = await (await engine.fetch(request)).json();
      const url = await engine.fetch(new URL("/v1/models", location.href));
      const theirs = [];
      for (const path of ["/v1/charges", "/v1", "/v1x", "/v1/chat/unknown", "/v1/files"]) {
        theirs.push(await (await engine.fetch(path)).text());
      }
      const ours = [];
      for (const path of ["/v1/audio/speech", "/v1/images/generations/", "/v1/responses/resp_1"]) {
        const answer = await engine.fetch(path, { method: "POST", body: "{}" });
        ours.push([answer.status, (await answer.json()).error.code]);
      }
      const below = await engine.fetch("https://inpage.invalid/v1/nonsense");
      const text = await engine.fetch("/v1/completions", { method: "POST", body: "{}" });
      return {
        network: [network.status, (await network.text()).slice(0, 15)],
        models: models.data[0].id,
        url: url.status,
        theirs,
        ours,
        below: [below.status, (await below.json()).error.code],
        text: text.status,
      };
    });
    assert.deepEqual(result, {
      network: [200, "<!doctype html>"],
      models: "fake",
      url: 200,
      theirs: Array(5).fill("Not found\n"),
      ours: Array(3).fill([404, "unknown_url"]),
      below: [404, "unknown_url"],
      text: 415,
    });
  });

  test("engine.fetch can take the place of the global one", async () => {
    const result = await page.evaluate(async () => {
      const native = window.fetch;
      const seen = [];
      window.fetch = (input, init) => {
        seen.push(`${input instanceof Request ? input.url : input}`);
        return native(input, init);
      };
      const other = await startFake({ fetchOrigins: ["https://api.example.invalid"] });
      window.fetch = other.fetch;
      try {
        const own = (await (await fetch("/v1/models")).json()).data[0].id;
        const listed = (await fetch("https://api.example.invalid/v1/models")).status;
        const charges = [];
        for (const url of [
          "/v1/charges",
          "https://shop.example.invalid/v1/completions",
          "https://api.example.invalid/v1/charges",
          "/plain",
        ]) {
          charges.push(
            await fetch(url).then(
              ({ status }) => status,
              ({ name }) => name,
            ),
          );
        }
        const aborted = await caught(() => fetch("/v1/models", { signal: AbortSignal.abort() }));
        const body = new Blob(['{"model":"fake","prompt":"count:2"}']).stream();
        const headers = { "content-type": "application/json" };
        const init = { method: "POST", headers, body, duplex: "half" };
        const streamed = await (await fetch("/v1/completions", init)).json();
        return {
          own,
          listed,
          charges,
          aborted: aborted.name,
          text: streamed.choices[0].text,
          seen,
        };
      } finally {
        window.fetch = native;
        await other.dispose();
      }
    });
    assert.deepEqual(result, {
      own: "fake",
      listed: 200,
      charges: [404, "TypeError", "TypeError", 200],
      aborted: "AbortError",
      text: "é0 é1 ",
      seen: [
        "/v1/charges",
        "https://shop.example.invalid/v1/completions",
        "https://api.example.invalid/v1/charges",
        "/plain",
      ],
    });
  });

  test("servedFetch can take the place of the global fetch", async () => {
    const status = await page.evaluate(async () => {
      const native = window.fetch;
      window.fetch = inpage.servedFetch;
      try {
        return (await fetch("/plain")).status;
      } finally {
        window.fetch = native;
      }
    });
    assert.equal(status, 200);
  });

  test("fetchOrigins must be origins", async () => {
    const result = await page.evaluate(() =>
      caught(() => startFake({ fetchOrigins: ["https://api.example.com/v1"] })),
    );
    assert.match(result.message, /fetchOrigins\[0\].*without a path/);
  });

  test("after dispose, every door answers engine_unavailable", async () => {
    const result = await page.evaluate(async () => {
      const running = caught(() =>
        engine.completions.create({ model: "fake", prompt: "count:5000:2" }),
      );
      await until(async () => (await engine.info()).active === 1, "it runs");
      await engine.dispose();
      const response = await engine.fetch("/v1/models");
      const messages = await engine.fetch("/v1/messages", { method: "POST", body: "{}" });
      return {
        messages: {
          ids: ["x-request-id", "request-id"].map((name) => messages.headers.get(name)),
          status: messages.status,
          body: await messages.json(),
        },
        running: await running,
        status: response.status,
        retryAfter: response.headers.get("retry-after"),
        type: response.headers.get("content-type"),
        id: response.headers.get("x-request-id"),
        body: await response.json(),
      };
    });
    assert.equal(result.running.code, "engine_unavailable");
    assert.equal(result.status, 503);
    assert.equal(result.retryAfter, "1");
    assert.equal(result.type, "application/json; charset=utf-8");
    assert.match(result.id, /^req_[a-z0-9]{24}$/);
    const { error } = result.body;
    assert.deepEqual(Object.keys(error), ["message", "type", "param", "code"]);
    assert.deepEqual(
      [error.type, error.param, error.code],
      ["server_error", null, "engine_unavailable"],
    );
    assert.ok(error.message.length > 0);
    const { ids, status, body } = result.messages;
    assert.equal(status, 503);
    assert.deepEqual(ids, [body.request_id, body.request_id]);
    assert.equal(body.type, "error");
    assert.deepEqual(body.error, { ...error, type: "overloaded_error" });
  });
});
