//! J. Context, readiness, aborts (specification 11 to 13).

import { equal, ok } from "../check.mjs";
import { P, R } from "../context.mjs";
import { ALL } from "../doors.mjs";

/** Calls `start(signal, abort)`. Returns the name of the error that it throws. */
async function aborted(start) {
  const controller = new AbortController();
  try {
    await start(controller.signal, () => controller.abort());
  } catch (error) {
    if (error.name === "CheckError") throw error;
    return error.name;
  }
  return "nothing";
}

export default [
  {
    id: "113",
    title: "the completion does not fit the context",
    doors: ALL,
    async run(ctx) {
      const L = ctx.info.contextTokens - 4;
      const prompt = await ctx.longPrompt(L);
      const body = (members) =>
        R({ prompt, max_tokens: 50, ignore_eos: true, temperature: 0, ...members });
      const error = body({ context_length_exceeded_behavior: "error" });
      await ctx.refused(error, 400, "context_length_exceeded", "max_tokens");
      const truncate = { context_length_exceeded_behavior: "truncate" };
      let expected;
      for (const members of [{}, truncate, { ...truncate, truncate_sequence: true }]) {
        const { choices, usage } = await ctx.completion(body(members));
        const what = JSON.stringify(members);
        equal(usage.prompt_tokens, L, `${what}: prompt_tokens`);
        equal(usage.completion_tokens, 4, `${what}: completion_tokens`);
        equal(choices[0].finish_reason, "length", `${what}: finish_reason`);
        expected ??= choices[0].text;
        equal(choices[0].text, expected, `${what}: text`);
      }
    },
  },
  {
    id: "114",
    title: "the prompt does not fit the context",
    doors: ALL,
    async run(ctx) {
      const C = ctx.info.contextTokens;
      const long = await ctx.longPrompt(C + 10);
      for (const members of [
        { prompt: long },
        { prompt: long, context_length_exceeded_behavior: "truncate" },
        { prompt: long, context_length_exceeded_behavior: "error" },
        { prompt: long.slice(0, C), max_tokens: 1 },
      ]) {
        await ctx.refused(R(members), 400, "context_length_exceeded", "prompt");
      }
      const full = R({ prompt: long.slice(0, C), max_tokens: 0, echo: true });
      const { usage } = await ctx.completion(full);
      equal([usage.prompt_tokens, usage.completion_tokens], [C, 0], "usage of a full context");
    },
  },
  {
    id: "116",
    title: "a model that is not ready",
    doors: ALL,
    async run(ctx) {
      const modelsAnswer = async () =>
        equal((await ctx.request("/v1/models")).status, 200, "status of /v1/models");
      await ctx.hooks({ modelState: "loading" });
      const { headers } = await ctx.refused(R(), 503, "model_loading");
      const wait_s = Number(headers.get("retry-after") ?? Number.NaN);
      ok(wait_s >= 1 && wait_s <= 60, "Retry-After from 1 to 60", wait_s);
      await modelsAnswer();
      await ctx.hooks({ modelState: "unloaded" });
      await ctx.refused(R(), 503, "model_not_loaded");
      await modelsAnswer();
      await ctx.hooks({ modelState: "ready" });
      await ctx.completion(R());
      await modelsAnswer();

      await ctx.switches({ whenModelNotReady: "wait" });
      await ctx.hooks({ modelState: "loading" });
      let answered = false;
      const waiting = ctx.completion(R()).finally(() => {
        answered = true;
      });
      await new Promise((resolve) => setTimeout(resolve, 300));
      ok(!answered, "the request waits while the model loads");
      await modelsAnswer();
      await ctx.hooks({ modelState: "ready" });
      await waiting;
    },
  },
  {
    id: "117",
    title: "aborting stops the generation",
    doors: ALL,
    async run(ctx) {
      const text = await ctx.text({ temperature: 0 });
      // Slow enough to be observed while it runs.
      await ctx.hooks({ delayStepMs: 50 });
      const body = R({ max_tokens: 2000, ignore_eos: true, temperature: 1 });
      const running = async () => {
        const active = await ctx.hooks({ activeGenerations: true });
        ok(active > 0, "it is running when it is aborted", active);
      };

      const plain = await aborted(async (signal, abort) => {
        const answer =
          ctx.door === "page" ? ctx.complete(body, { signal }) : ctx.post(body, { signal });
        // Handled below; it may reject earlier.
        answer.catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, 400));
        await running();
        abort();
        await answer;
      });
      equal(plain, "AbortError", "a plain request rejects with");
      await ctx.idle();

      let chunks = 0;
      let late = 0;
      const onChunk = async (abort) => {
        chunks += 1;
        if (chunks === 3) {
          await running();
          abort();
        } else if (chunks > 3) late += 1;
      };
      const streamed = await aborted(async (signal, abort) => {
        if (ctx.door === "page") {
          const stream = await ctx.complete({ ...body, stream: true }, { signal });
          for await (const _ of stream) await onChunk(abort);
          return;
        }
        let failure;
        const seen = () => {
          onChunk(abort).catch((error) => {
            failure = error;
            abort();
          });
        };
        await ctx.stream(body, { signal, onChunk: seen }).catch((error) => {
          throw failure ?? error;
        });
      });
      equal(streamed, "AbortError", "a stream rejects with");
      if (ctx.door === "page") equal(late, 0, "chunks after the abort");
      await ctx.idle();
      await ctx.hooks({ delayStepMs: 0 });
      equal(await ctx.text({ temperature: 0 }), text, "text of the next request");
    },
  },
  {
    id: "119",
    title: "a full queue",
    doors: ALL,
    async run(ctx) {
      const body = R({ prompt: P, temperature: 0 });
      const expected = (await ctx.completion(body)).choices[0].text;
      await ctx.switches({ maxQueue: 1 });
      // The first request keeps the engine busy until the others have arrived.
      await ctx.hooks({ delayPrefillMs: 300 });
      // At least eight run at once.
      const replies = await Promise.all(Array.from({ length: 24 }, () => ctx.post(body)));
      const accepted = replies.filter(({ status }) => status === 200);
      const refused = replies.filter(({ status }) => status !== 200);
      ok(
        refused.length >= 1,
        "at least one is refused",
        replies.map(({ status }) => status),
      );
      for (const { status, headers, body } of refused) {
        equal([status, body.error.code], [429, "queue_full"], "status and code");
        ok(Number(headers.get("retry-after")) > 0, "Retry-After", headers.get("retry-after"));
      }
      ok(accepted.length >= 9, "those that run at once and one that waits are accepted");
      for (const { body } of accepted) equal(body.choices[0].text, expected, "text");
    },
  },
];
