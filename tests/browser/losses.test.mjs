//! Lost engines: requests continue with the next one, and failed loads are retried. A fake engine runs behind the real
//! worker host; `real_losses.test.mjs` uses the real one.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness } from "./harness.mjs";

let harness;
before(async () => {
  harness = await startHarness();
});
after(() => harness?.close());

/** Runs `work` in a new page with its own storage. */
async function inPage(work, argument) {
  const page = await harness.open();
  try {
    await page.evaluate(() => {
      window.create = (engine, prompt, stream) =>
        caught(async () => {
          const answer = await engine.completions.create({ model: "fake", prompt, stream });
          let text = answer.choices?.[0].text ?? "";
          if (stream) for await (const chunk of answer) text += chunk.choices[0].text;
          return text;
        });
      window.post = (engine, prompt) =>
        engine.fetch("/v1/completions", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ model: "fake", prompt }),
        });
    });
    return await page.evaluate(work, argument);
  } finally {
    await page.context().close();
  }
}

const words = (count) => Array.from({ length: count }, (_, index) => `é${index} `).join("");

describe("a lost engine", () => {
  for (const bodyTransport of ["transfer", "chunks"]) {
    for (const stream of [true, false]) {
      test(`leaves no gap and repeats nothing (${bodyTransport}, ${stream ? "streamed" : "whole"})`, async () => {
        const result = await inPage(
          async ([bodyTransport, stream]) => {
            const engine = await startFake({ bodyTransport });
            return Promise.all([
              create(engine, "lose:9:5:1", stream),
              create(engine, "count:40:5", stream),
            ]);
          },
          [bodyTransport, stream],
        );
        assert.deepEqual(result, [{ value: words(9) }, { value: words(40) }]);
      });
    }
  }

  test("may be lost twice", async () => {
    const result = await inPage(async () => create(await startFake(), "lose:9:5:2", true));
    assert.deepEqual(result, { value: words(9) });
  });

  test("is given up after three losses within a minute, and the next request works", async () => {
    const result = await inPage(async () => {
      const engine = await startFake();
      const streamed = await create(engine, "lose:9:5:3", true);
      const whole = await create(engine, "lose:8:5:3", false);
      return { streamed, whole, next: await create(engine, "count:2") };
    });
    for (const failure of [result.streamed, result.whole]) {
      assert.equal(failure.code, "device_lost");
      assert.match(failure.message, /lost: fake\. This happened 3 times within a minute/);
    }
    assert.equal(result.whole.status, 500);
    assert.equal(result.next.value, words(2));
  });

  test("ends the stream of a requester that cannot resume with an error", async () => {
    const result = await inPage(async () => {
      window.inpage = await import("/dist/exports.js");
      const { internalsOf } = await import("/dist/engine/internals.js");
      const engine = await startFake({ endpoint: { basePaths: ["/v1"] } });
      const { port1, port2 } = new MessageChannel();
      internalsOf(engine).connect(port2);
      const body = new TextEncoder().encode(
        JSON.stringify({ model: "fake", prompt: "lose:9:5:1", stream: true }),
      );
      // A request as older service workers send it, without `resume`.
      const request = {
        method: "POST",
        url: "http://localhost/v1/completions",
        headers: [["content-type", "application/json"]],
        body,
      };
      const head = new Promise((resolve) => {
        port1.onmessage = ({ data }) => resolve(data);
      });
      port1.postMessage({ type: "request", request, transport: "transfer", heartbeat: false });
      return new Response((await head).stream).text();
    });
    assert.match(result, /é1 .*"code":"device_lost".*data: \[DONE\]\n\n$/s);
  });

  test("is replaced by reload(), and its requests continue", async () => {
    const result = await inPage(async () => {
      const engine = await startFake();
      const running = [create(engine, "count:40:10", true), create(engine, "count:30:10", false)];
      await until(async () => (await engine.info()).produced > 10, "they run");
      await engine.reload();
      return Promise.all(running);
    });
    assert.deepEqual(result, [{ value: words(40) }, { value: words(30) }]);
  });

  test("that is disposed ends its streams", async () => {
    const result = await inPage(async () => {
      const engine = await startFake();
      const running = create(engine, "count:5000:5", true);
      await until(async () => (await engine.info()).produced > 2, "it runs");
      await engine.dispose();
      return { running: await running, later: await create(engine, "count:1") };
    });
    assert.equal(result.running.code, "engine_unavailable");
    assert.equal(result.later.code, "engine_unavailable");
  });

  test("is replaced behind the service worker, and its requests continue", async () => {
    const result = await inPage(async () => {
      await inpage.serveFromPage(await startFake()).ready;
      const post = async (prompt, stream) => {
        const response = await fetch("/v1/completions", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ model: "fake", prompt, stream }),
        });
        return response.text();
      };
      return [await post("lose:9:5:1", true), await post("lose:8:5:1", false)];
    });
    const texts = result[0].match(/é\d+ /g);
    assert.equal(texts.join(""), words(9));
    assert.match(result[0], /data: \[DONE\]\n\n$/);
    assert.equal(JSON.parse(result[1]).choices[0].text, words(8));
  });

  test("in a tab that is closed is replaced by the engine of another tab", async () => {
    const owner = await harness.open();
    const context = owner.context();
    try {
      const serve = async () => {
        window.engine = await startFake();
        await inpage.serveFromPage(engine).ready;
      };
      await owner.evaluate(serve);
      const reader = await harness.open(context, "/plain");
      // This tab has no engine, so the owner's engine answers.
      const text = reader.evaluate(async () => {
        const response = await fetch("/v1/completions", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ model: "fake", prompt: "count:100:20", stream: true }),
        });
        let text = "";
        for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
          window.began = true;
          text += piece;
        }
        return text;
      });
      await reader.waitForFunction(() => window.began);
      const other = await harness.open(context);
      await other.evaluate(serve);
      await owner.close();
      assert.equal((await text).match(/é\d+ /g).join(""), words(100));
    } finally {
      await context.close();
    }
  });

  test("does not delay an abort", async () => {
    const result = await inPage(async () => {
      const engine = await startFake({ fakeLoadMs: 300 });
      return caught(() =>
        engine.completions.create(
          { model: "fake", prompt: "lose:9:5:1" },
          { signal: AbortSignal.timeout(150) },
        ),
      );
    });
    assert.equal(result.name, "AbortError");
  });
});

describe("a load that failed", () => {
  test("is retried by a later request, after a delay that the response names", async () => {
    const result = await inPage(async () => {
      const engine = await startFake({ background: true, fakeFailingLoads: [0] });
      const failed = await caught(() => engine.ready);
      const early = await post(engine, "count:2");
      const { message, code } = (await early.json()).error;
      const retry = early.headers.get("retry-after");
      const should = early.headers.get("x-should-retry");
      // The SDK waits as long as Retry-After says.
      const openai = client({ fetch: engine.fetch });
      const completion = await openai.completions.create({ model: "fake", prompt: "count:2" });
      await engine.ready;
      return { failed, message, code, retry, should, text: completion.choices[0].text };
    });
    assert.equal(result.failed.code, "model_not_loaded");
    assert.equal(result.code, "model_not_loaded");
    assert.match(result.message, /the next attempt is in 1 s/);
    assert.equal(result.retry, "1");
    assert.equal(result.should, null);
    assert.equal(result.text, words(2));
  });

  test("is retried with increasing delays, and once at a time", async () => {
    const result = await inPage(async () => {
      const engine = await startFake({
        background: true,
        fakeFailingLoads: [0, 1],
        fakeLoadMs: 100,
      });
      await caught(() => engine.ready);
      const pauses = [(await post(engine, "count:1")).headers.get("retry-after")];
      await new Promise((resolve) => setTimeout(resolve, 1100));
      // The delay is over for all of these. The first one starts the attempt.
      await Promise.all([1, 2, 3].map(() => post(engine, "count:1")));
      await caught(() => engine.ready);
      pauses.push((await post(engine, "count:1")).headers.get("retry-after"));
      const reloaded = await caught(() => engine.reload());
      return { pauses, reloaded, text: await create(engine, "count:1") };
    });
    assert.deepEqual(result.pauses, ["1", "2"]);
    assert.equal(result.reloaded.message, undefined);
    assert.deepEqual(result.text, { value: words(1) });
  });

  test("of a lost engine is retried for its in-flight requests", async () => {
    const result = await inPage(async () => {
      const engine = await startFake({ fakeFailingLoads: [1] });
      return Promise.all([
        create(engine, "lose:9:5:1", true),
        create(engine, "count:50:5", true),
        create(engine, "count:40:5", false),
      ]);
    });
    assert.deepEqual(
      result.map(({ value }) => value),
      [words(9), words(50), words(40)],
    );
  });

  test("for a permanent reason is not retried, and the response says so", async () => {
    const result = await inPage(async () => {
      const engine = await startFake({
        background: true,
        model: { url: "/models/absent.gguf", id: "fake" },
      });
      await caught(() => engine.ready);
      const answer = await post(engine, "count:1");
      const { message } = (await answer.json()).error;
      return { message, status: answer.status, should: answer.headers.get("x-should-retry") };
    });
    assert.equal(result.status, 503);
    assert.equal(result.should, "false");
    assert.match(result.message, /absent\.gguf answered 404.*call engine\.reload\(\)/);
  });

  test("because its worker cannot start is retried by a later request", async () => {
    const result = await inPage(async () => {
      const engine = await startFake({ background: true, workerUrl: "/absent.mjs" });
      await caught(() => engine.ready);
      const answer = await post(engine, "count:1");
      const { message, code } = (await answer.json()).error;
      return { message, code, status: answer.status, retry: answer.headers.get("retry-after") };
    });
    assert.equal(result.status, 503);
    assert.equal(result.code, "model_not_loaded");
    assert.equal(result.retry, "1");
    assert.match(result.message, /next attempt is in 1 s/);
  });
});
