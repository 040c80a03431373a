//! B. Body and field validation (specification 1.6, 3, 4).

import { equal, matches, ok } from "../check.mjs";
import { R } from "../context.mjs";
import { ALL } from "../doors.mjs";

/** R as text, with members that `JSON.stringify` cannot write. */
const raw = (members) => JSON.stringify(R()).replace(/\}$/, `,${members}}`);

/** Each member alone in R must be refused with `code`. */
async function eachRefused(ctx, members, code) {
  for (const [field, value] of members) {
    const streams = field === "stream_options" ? { stream: true } : {};
    await ctx.refused(R({ ...streams, [field]: value }), 400, code, field);
  }
}

export default [
  {
    id: "011",
    title: "bodies that are not JSON or not an object",
    doors: ALL,
    async run(ctx) {
      for (const body of ["{", "", '{"model":"default",}']) {
        await ctx.refused(body, 400, "invalid_json", null);
      }
      for (const body of ["[]", '"x"', "null", "3"]) {
        await ctx.refused(body, 400, "invalid_body", null);
      }
    },
  },
  {
    id: "013",
    title: "a body larger than maxBodyBytes",
    doors: ALL,
    async run(ctx) {
      await ctx.switches({ maxBodyBytes: 4096 });
      await ctx.refused(R({ prompt: "a".repeat(5000) }), 413, "request_too_large", null);
      await ctx.completion(R());
    },
  },
  {
    id: "015",
    title: "unknown fields",
    doors: ALL,
    async run(ctx) {
      const body = R({ foo: 1, x_bar: { a: [] } });
      await ctx.completion(body);
      await ctx.switches({ unknownFields: "error" });
      const { error } = (await ctx.refused(body, 400, "unknown_parameter")).body;
      ok(["foo", "x_bar"].includes(error.param), "param is foo or x_bar", error.param);
    },
  },
  {
    id: "016",
    title: "required fields",
    doors: ALL,
    async run(ctx) {
      for (const model of [undefined, null, ""]) {
        await ctx.refused(R({ model }), 400, "missing_required_parameter", "model");
      }
      await ctx.refused(R({ prompt: undefined }), 400, "missing_required_parameter", "prompt");
    },
  },
  {
    id: "017",
    title: "wrong types",
    doors: ALL,
    run: (ctx) =>
      eachRefused(
        ctx,
        [
          ["temperature", "1"],
          ["top_p", [1]],
          ["n", "2"],
          ["echo", 1],
          ["stream", "true"],
          ["max_tokens", 1.5],
          ["max_tokens", "8"],
          ["stop", 5],
          ["stop", ["a", 1]],
          ["logit_bias", [1]],
          ["user", 7],
          ["logprobs", true],
          ["logprobs", 1.5],
          ["top_k", 1.2],
          ["seed", "1"],
          ["seed", 1.5],
          ["suffix", 3],
          ["stream_options", 1],
          ["images", "x"],
          ["tools", {}],
          ["grammar", "x"],
          ["response_format", "json"],
          ["dry_sequence_breakers", "x"],
          ["ignore_eos", 0],
        ],
        "invalid_type",
      ),
  },
  {
    id: "018",
    title: "numbers outside their ranges",
    doors: ALL,
    run: (ctx) =>
      eachRefused(
        ctx,
        [
          ["temperature", -0.1],
          ["temperature", 2.1],
          ["top_p", -0.01],
          ["top_p", 1.01],
          ["min_p", -0.1],
          ["min_p", 1.1],
          ["frequency_penalty", -2.1],
          ["frequency_penalty", 2.1],
          ["presence_penalty", -2.1],
          ["presence_penalty", 2.1],
          ["repetition_penalty", 0],
          ["repetition_penalty", -1],
          ["repetition_penalty", 2.5],
          ["n", 0],
          ["n", 129],
          ["best_of", 21],
          ["max_tokens", -1],
          ["logprobs", -1],
          ["logprobs", 6],
          ["top_k", -2],
          ["mirostat_lr", 0],
          ["mirostat_target", 0.5],
          ["dry_multiplier", -1],
          ["dry_base", 0.5],
          ["dry_allowed_length", -1],
        ],
        "out_of_range",
      ),
  },
  {
    id: "019",
    title: "the bounds of ranges are inclusive",
    doors: ALL,
    async run(ctx) {
      for (const [field, value] of [
        ["temperature", 0],
        ["temperature", 2],
        ["top_p", 0],
        ["top_p", 1],
        ["min_p", 0],
        ["min_p", 1],
        ["frequency_penalty", -2],
        ["frequency_penalty", 2],
        ["presence_penalty", -2],
        ["presence_penalty", 2],
        ["repetition_penalty", 0.01],
        ["repetition_penalty", 2],
        ["top_k", -1],
        ["top_k", 0],
        ["top_k", 1],
        ["top_k", 1_000_000_000],
        ["logprobs", 0],
        ["logprobs", 5],
        ["max_tokens", 0],
        ["n", 1],
        ["best_of", 20],
        ["mirostat_target", 1],
        ["dry_base", 1],
        ["user", ""],
      ]) {
        await ctx.completion(R({ [field]: value }));
      }
      // The last of repeated keys counts, so these replace R's.
      const { usage } = await ctx.completion(raw('"max_tokens":3.0,"n":1e0,"ignore_eos":true'));
      equal(usage.completion_tokens, 3, "completion_tokens");
    },
  },
  {
    id: "021",
    title: "stop: at most four, none empty",
    doors: ALL,
    async run(ctx) {
      for (const stop of [null, [], "zzz", ["zzz", "yyy", "xxx", "www"]]) {
        await ctx.completion(R({ stop }));
      }
      await ctx.refused(R({ stop: ["a", ""] }), 400, "invalid_value", "stop");
      await ctx.refused(R({ stop: ["a", "b", "c", "d", "e"] }), 400, "out_of_range", "stop");
    },
  },
  {
    id: "022",
    title: "stream_options only with stream",
    doors: ALL,
    async run(ctx) {
      const stream_options = { include_usage: true };
      await ctx.refused(R({ stream_options }), 400, null, "stream_options");
      await ctx.refused(R({ stream_options, stream: false }), 400, null, "stream_options");
      await ctx.stream(R({ stream_options: {} }));
    },
  },
  {
    id: "023",
    title: "max_completion_tokens is an alias of max_tokens",
    doors: ALL,
    async run(ctx) {
      const body = (max_tokens, max_completion_tokens) =>
        R({ max_tokens, max_completion_tokens, ignore_eos: true });
      const generated = async (...limits) =>
        (await ctx.completion(body(...limits))).usage.completion_tokens;
      equal(await generated(5, 5), 5, "completion_tokens of 5 and 5");
      await ctx.refused(body(5, 6), 400, "conflicting_parameters");
      equal(await generated(undefined, 3), 3, "completion_tokens of 3 alone");
    },
  },
  {
    id: "024",
    title: "logit_bias: keys and values",
    doors: ALL,
    async run(ctx) {
      const beyond = String(ctx.info.vocabSize);
      for (const logit_bias of [
        { "-1": 1 },
        { "01": 1 },
        { [beyond]: 1 },
        { 0: 100.5 },
        { 0: "1" },
      ]) {
        await ctx.refused(R({ logit_bias }), 400, null, "logit_bias");
      }
      for (const logit_bias of [{}, { 0: -100 }, { abc: 1 }])
        await ctx.completion(R({ logit_bias }));
    },
  },
  {
    id: "026",
    title: "seeds are any int64",
    doors: ALL,
    async run(ctx) {
      for (const seed of ["-9223372036854775808", "9223372036854775807", "-1", "0"]) {
        await ctx.completion(raw(`"seed":${seed}`));
      }
      await ctx.refused(raw('"seed":9223372036854775808'), 400, null, "seed");
    },
  },
  {
    id: "027",
    title: "a refused stream is an ordinary error answer",
    doors: ALL,
    async run(ctx) {
      for (const [members, status] of [
        [{ temperature: 9 }, 400],
        [{ model: "no/such-model" }, 404],
        [{ grammar: { type: "regex", value: "(" } }, 400],
        [{ prompt: [] }, 400],
      ]) {
        const { headers } = await ctx.refused(R({ stream: true, ...members }), status, null);
        matches(headers.get("content-type"), /^application\/json\b/, "content type");
      }
    },
  },
];
