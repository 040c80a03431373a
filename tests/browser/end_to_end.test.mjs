//! The real engine in Chromium, through all three doors, with the real `openai` SDK: on the CPU device, which is quick, and in short on
//! WebGPU.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

const MODELS = process.env.INPAGE_MODELS ?? resolve(root, "../shared/models");
const STORIES = join(MODELS, "stories260K/stories260K-F32.gguf");
const PROMPT = "Once upon a time";
const STORY = ", there was a little girl named Lily. She loved to play outside in the park.";

const skip = !wasmIsBuilt
  ? "skipped: the wasm module is not built"
  : !existsSync(STORIES) && `skipped: ${STORIES} does not exist`;

let harness;
before(async () => {
  harness = await startHarness({ mounts: { "/stories.gguf": STORIES }, wholeBrowser: true });
});
after(() => harness?.close());
beforeEach((context) => {
  if (process.env.INPAGE_VERBOSE) console.error(`  test: ${context.name}`);
});

const greedy = { model: "stories", prompt: PROMPT, temperature: 0, max_tokens: 30 };
/** Takes a second on the CPU, too. */
const long = { ...greedy, n: 8, max_tokens: 400, ignore_eos: true };

/** A page with an engine on this device. */
async function openOn(device) {
  const page = await harness.open();
  const failure = await page.evaluate(
    (device) =>
      caught(async () => {
        window.progress = [];
        window.engine = await inpage.createEngine({
          model: { url: "/stories.gguf", id: "stories" },
          device,
          load: { kvPoolTokens: 1000 },
          onProgress: (event) => progress.push(event),
        });
        const active = async () => (await engine.info()).activeGenerations;
        window.runs = () => until(async () => (await active()) > 0, "it runs", 10_000);
        window.idle = () => until(async () => (await active()) === 0, "it stopped", 10_000);
        window.streamed = async (body) => {
          let text = "";
          const reasons = [];
          let usage;
          const all = { ...body, stream: true, stream_options: { include_usage: true } };
          for await (const chunk of await engine.completions.create(all)) {
            usage = chunk.usage ?? usage;
            for (const choice of chunk.choices) {
              text += choice.text;
              if (choice.finish_reason) reasons.push(choice.finish_reason);
            }
          }
          return { text, reasons, usage };
        };
      }),
    device,
  );
  assert.equal(failure.message, undefined);
  return page;
}

async function reports(page) {
  const { info, progress } = await page.evaluate(async () => ({
    info: await engine.info(),
    progress,
  }));
  assert.equal(typeof info.adapter, "string");
  assert.equal(typeof info.softwareAdapter, "boolean");
  assert.equal(typeof info.variant, "string");
  assert.equal(info.vocabSize, 512);
  // Rounded up to whole pages of 64.
  assert.equal(info.kvPoolTokens, 1024);
  const bytesPerNumber = { f16: 2, f32: 4 }[info.kvFormat];
  assert.equal(info.kvBytes, 5 * 16 * 64 * 2 * 32 * bytesPerNumber);
  assert.deepEqual([...new Set(progress.map(({ phase }) => phase))], ["download", "load", "ready"]);
}

async function continuesTheStory(page) {
  const completion = await page.evaluate((body) => engine.completions.create(body), greedy);
  assert.ok(completion.choices[0].text.startsWith(STORY), completion.choices[0].text);
  assert.equal(completion.choices[0].finish_reason, "length");
  assert.equal(completion.model, "stories");
  assert.equal(completion.usage.completion_tokens, 30);
}

async function streamsTheStory(page) {
  const { text, reasons, usage } = await page.evaluate((body) => streamed(body), greedy);
  assert.ok(text.startsWith(STORY), text);
  assert.deepEqual(reasons, ["length"]);
  assert.equal(usage.completion_tokens, 30);
}

async function stopsAndGoesOn(page) {
  const given = [greedy, long];
  const { names, text } = await page.evaluate(async ([body, long]) => {
    const names = [];
    for (const stream of [true, false]) {
      const controller = new AbortController();
      const running = caught(async () => {
        const request = { ...long, stream };
        const answer = await engine.completions.create(request, { signal: controller.signal });
        if (stream) for await (const _ of answer) controller.abort();
      });
      if (!stream) {
        await runs();
        controller.abort();
      }
      names.push((await running).name);
      await idle();
    }
    for await (const _ of await engine.completions.create({ ...long, stream: true })) break;
    await idle();
    return { names, text: (await engine.completions.create(body)).choices[0].text };
  }, given);
  assert.deepEqual(names, ["AbortError", "AbortError"]);
  assert.ok(text.startsWith(STORY), text);
}

describe("the real engine on the CPU", { skip }, () => {
  let page;
  before(async () => {
    page = await openOn("cpu");
  });

  test("reports its device, and its progress while loading", () => reports(page));

  test("refuses a wrong load option by name", async () => {
    const failure = await page.evaluate(() =>
      caught(() => inpage.createEngine({ model: "/stories.gguf", load: { kvFormat: "q4_0" } })),
    );
    assert.match(failure.message, /load options.*q4_0.*q8_0/);
  });

  describe("completions.create", () => {
    test("continues the story", () => continuesTheStory(page));
    test("streams the same text", () => streamsTheStory(page));

    test("samples the same text with the same seed, given as a bigint", async () => {
      const [a, b, c] = await page.evaluate(async (prompt) => {
        const create = async (seed) => {
          const body = { model: "default", prompt, max_tokens: 24, temperature: 1, seed };
          return (await engine.completions.create(body)).choices[0].text;
        };
        return [
          await create(9007199254740993n),
          await create(9007199254740993n),
          await create(9007199254740992n),
        ];
      }, PROMPT);
      assert.equal(a, b);
      assert.notEqual(a, c, "the seed lost its last bit");
    });

    test("stops at a stop string", async () => {
      const { text, finish_reason } = await page.evaluate(
        async (body) => (await engine.completions.create({ ...body, stop: "Lily" })).choices[0],
        greedy,
      );
      assert.equal(text, ", there was a little girl named ");
      assert.equal(finish_reason, "stop");
    });

    test("refuses values without a JSON form or out of range, by name", async () => {
      const results = await page.evaluate(
        (body) =>
          Promise.all(
            [
              { temperature: Number.NaN },
              { max_tokens: Number.POSITIVE_INFINITY },
              { prompt: Number.NaN },
              { stop: Number.NaN },
              { stream: Number.NaN },
              { user: Number.NaN },
              { stream: true, stream_options: Number.NaN },
              { temperature: 3 },
              { model: "absent" },
              { logit_bias: { 5: Number.NaN } },
              { images: ["data:image/png;base64,AAAA"] },
            ].map((fields) => caught(() => engine.completions.create({ ...body, ...fields }))),
          ),
        greedy,
      );
      assert.deepEqual(
        results.map(({ status, code, param }) => [status, code, param]),
        [
          [400, "invalid_type", "temperature"],
          [400, "invalid_type", "max_tokens"],
          [400, "invalid_type", "prompt"],
          [400, "invalid_type", "stop"],
          [400, "invalid_type", "stream"],
          [400, "invalid_type", "user"],
          [400, "invalid_type", "stream_options"],
          [400, "out_of_range", "temperature"],
          [404, "model_not_found", "model"],
          [400, "invalid_type", "logit_bias"],
          [400, "unsupported_parameter", "images"],
        ],
      );
    });

    test("abort and break stop the generation, and the next request works", () =>
      stopsAndGoesOn(page));
  });

  for (const door of ["engine.fetch", "the service worker"]) {
    describe(`the openai SDK through ${door}`, () => {
      before(() =>
        page.evaluate(async (door) => {
          if (door === "engine.fetch") {
            window.openai = client({ fetch: engine.fetch });
          } else {
            window.serving = inpage.serveFromPage(engine);
            await serving.ready;
            window.openai = client({ fetch: inpage.servedFetch });
          }
        }, door),
      );

      test("completes, plain and streamed", async () => {
        const [plain, streamed] = await page.evaluate(async (body) => {
          const plain = (await openai.completions.create(body)).choices[0].text;
          let streamed = "";
          for await (const chunk of await openai.completions.create({ ...body, stream: true })) {
            streamed += chunk.choices[0].text;
          }
          return [plain, streamed];
        }, greedy);
        assert.ok(plain.startsWith(STORY), plain);
        assert.equal(streamed, plain);
      });

      test("lists the model", async () => {
        const [ids, one] = await page.evaluate(async () => {
          const ids = [];
          for await (const model of openai.models.list()) ids.push(model.id);
          return [ids, (await openai.models.retrieve("stories")).id];
        });
        assert.deepEqual(ids, ["stories"]);
        assert.equal(one, "stories");
      });

      test("maps errors, also those of streams", async () => {
        const results = await page.evaluate(
          (body) =>
            Promise.all(
              [
                { temperature: -1 },
                { temperature: -1, stream: true },
                { prompt: 7 },
                { model: "absent" },
              ].map((fields) => caught(() => openai.completions.create({ ...body, ...fields }))),
            ),
          greedy,
        );
        assert.deepEqual(
          results.map(({ className, code, param }) => [className, code, param]),
          [
            ["BadRequestError", "out_of_range", "temperature"],
            ["BadRequestError", "out_of_range", "temperature"],
            ["BadRequestError", "invalid_type", "prompt"],
            ["NotFoundError", "model_not_found", "model"],
          ],
        );
      });

      test("abort and break stop the generation", async () => {
        const className = await page.evaluate(async (long) => {
          for await (const _ of await openai.completions.create({ ...long, stream: true })) break;
          await idle();
          const controller = new AbortController();
          const running = caught(() =>
            openai.completions.create(long, { signal: controller.signal }),
          );
          await runs();
          controller.abort();
          const { className } = await running;
          await idle();
          return className;
        }, long);
        assert.equal(className, "APIUserAbortError");
      });
    });
  }

  test("a file that is not a model is refused", async () => {
    const results = await page.evaluate(async () => [
      await caught(() => inpage.createEngine({ model: new Blob(["not a model at all"]) })),
      await caught(() => inpage.createEngine({ model: new Blob([]) })),
    ]);
    for (const { className, code } of results) {
      assert.deepEqual([className, code], ["InpageError", "invalid_model_file"]);
    }
  });

  test("a switch that does not exist is refused by name", async () => {
    const { message } = await page.evaluate(() =>
      caught(() => inpage.createEngine({ model: new Blob([]), noSuchSwitch: 1 })),
    );
    assert.match(message, /noSuchSwitch/);
  });
});

describe("the real engine on WebGPU", { skip }, () => {
  let page;
  before(async () => {
    page = await openOn("webgpu");
  });

  test("reports its device, and its progress while loading", () => reports(page));
  test("continues the story", () => continuesTheStory(page));
  test("streams the same text", () => streamsTheStory(page));
  test("abort and break stop the generation, and the next request works", () =>
    stopsAndGoesOn(page));

  test("a crash of the GPU process does not change a stream's text, and the next request works", async () => {
    const session = await harness.browser.newBrowserCDPSession();
    const whole = { ...greedy, max_tokens: 200, ignore_eos: true };
    const undisturbed = await page.evaluate(
      async (body) => (await engine.completions.create(body)).choices[0].text,
      whole,
    );
    const running = page.evaluate(
      (body) =>
        caught(async () => {
          let text = "";
          for await (const chunk of await engine.completions.create({ ...body, stream: true })) {
            text += chunk.choices[0].text;
            window.streaming = true;
          }
          return text;
        }),
      whole,
    );
    await page.waitForFunction(() => window.streaming);
    await session.send("Browser.crashGpuProcess").catch(() => {});
    const { value, message: failure } = await running;
    assert.equal(value, undisturbed, failure);
    const { text, message } = await page.evaluate(
      async (body) =>
        caught(async () => (await engine.completions.create(body)).choices[0].text).then(
          ({ value, message }) => ({ text: value, message }),
        ),
      greedy,
    );
    assert.ok(text?.startsWith(STORY), text ?? message);
  });

  test("without WebGPU, the error has its own code", async () => {
    const other = await harness.open();
    const result = await other.evaluate(() =>
      caught(() =>
        inpage.createEngine({
          device: "webgpu",
          model: "/stories.gguf",
          workerUrl: "/fixtures/no_gpu_worker.mjs",
        }),
      ),
    );
    await other.context().close();
    assert.deepEqual([result.className, result.code], ["InpageError", "no_webgpu_device"]);
  });
});
