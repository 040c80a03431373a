//! C. Objects and models (specification 10.1, 13).

import { equal, matches, ok } from "../check.mjs";
import { P, R } from "../context.mjs";
import { ALL } from "../doors.mjs";

const OPTIONAL = ["stop_reason", "tool_calls", "token_ids"];

export default [
  {
    id: "028",
    title: "the completion object",
    doors: ALL,
    async run(ctx) {
      const answers = [await ctx.completion(R()), await ctx.completion(R())];
      const now_s = Date.now() / 1000;
      const listed = (await ctx.request("/v1/models")).body.data.map(({ id }) => id);
      const prompt_tokens = (await ctx.IDS(P)).length;
      for (const answer of answers) {
        equal(
          Object.keys(answer).sort(),
          ["choices", "created", "id", "model", "object", "system_fingerprint", "usage"],
          "keys",
        );
        matches(answer.id, /^cmpl-[A-Za-z0-9]{24,}$/, "id");
        equal(answer.object, "text_completion", "object");
        ok(Number.isInteger(answer.created), "created is an integer", answer.created);
        ok(Math.abs(answer.created - now_s) <= 10, "created is now", answer.created - now_s);
        matches(answer.system_fingerprint, /^fp_[0-9a-f]{10}$/, "system_fingerprint");
        ok(listed.includes(answer.model) && answer.model !== "default", "model", answer.model);
        equal(answer.choices.length, 1, "choices");
        const [choice] = answer.choices;
        equal(
          Object.keys(choice)
            .filter((key) => !OPTIONAL.includes(key))
            .sort(),
          ["finish_reason", "index", "logprobs", "text"],
          "keys of the choice",
        );
        equal([choice.index, choice.logprobs], [0, null], "index and logprobs");
        ok(typeof choice.text === "string", "text is a string", choice.text);
        ok(["stop", "length"].includes(choice.finish_reason), "finish_reason", choice);
        const { usage } = answer;
        const sum = usage.prompt_tokens + usage.completion_tokens;
        equal(usage.total_tokens, sum, "total_tokens");
        ok(usage.completion_tokens <= 8, "completion_tokens ≤ 8", usage);
        equal(usage.prompt_tokens, prompt_tokens, "prompt_tokens");
      }
      ok(answers[0].id !== answers[1].id, "different ids");
      equal(answers[0].system_fingerprint, answers[1].system_fingerprint, "fingerprints");
    },
  },
  {
    id: "029",
    title: "the default length, and no length at all",
    doors: ALL,
    async run(ctx) {
      const default_length = await ctx.completion(R({ ignore_eos: true, max_tokens: undefined }));
      equal(default_length.usage.completion_tokens, 16, "completion_tokens");
      equal(default_length.choices[0].finish_reason, "length", "finish_reason");
      const none = await ctx.completion(R({ max_tokens: 0 }));
      equal(none.usage.completion_tokens, 0, "completion_tokens of max_tokens 0");
      equal([none.choices[0].text, none.choices[0].finish_reason], ["", "length"], "the choice");
    },
  },
  {
    id: "030",
    title: "an unknown model",
    doors: ALL,
    async run(ctx) {
      for (const stream of [false, true]) {
        await ctx.refused(R({ model: "no/such-model", stream }), 404, "model_not_found", "model");
      }
    },
  },
  {
    id: "031",
    title: "the list of models",
    doors: ALL,
    async run(ctx) {
      const { model } = await ctx.completion(R());
      const { status, body } = await ctx.request("/v1/models");
      equal([status, body.object], [200, "list"], "status and object");
      for (const { id, object, created, owned_by } of body.data) {
        ok(typeof id === "string" && id !== "default", "id", id);
        equal(object, "model", "object");
        ok(Number.isInteger(created), "created", created);
        ok(typeof owned_by === "string", "owned_by", owned_by);
      }
      ok(
        body.data.some(({ id }) => id === model),
        `the list contains ${model}`,
        body.data,
      );
    },
  },
  {
    id: "032",
    title: "one model",
    doors: ALL,
    async run(ctx) {
      const [entry] = (await ctx.request("/v1/models")).body.data;
      for (const id of [encodeURIComponent(entry.id), entry.id]) {
        const { status, body } = await ctx.request(`/v1/models/${id}`);
        equal(status, 200, `/v1/models/${id}: status`);
        equal(body, entry, `/v1/models/${id}`);
      }
      const { status, body } = await ctx.request("/v1/models/nope");
      equal([status, body.error?.code], [404, "model_not_found"], "nope: status and code");
    },
  },
];
