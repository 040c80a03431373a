//! F. Stop, special tokens, UTF-8, suffix (specification 4.2, 6).

import { equal, ok } from "../check.mjs";
import { BIAS, FORCE, P, R } from "../context.mjs";
import { ALL } from "../doors.mjs";

const FOX = "The quick brown fox jumps";

/** Checks that after every event the joined text is a prefix of the final text. */
function checkGrowth({ chunks, choices: [choice] }) {
  let joined = "";
  for (const chunk of chunks) {
    for (const { text } of chunk.choices) joined += text;
    ok(choice.text.startsWith(joined), `a prefix of ${JSON.stringify(choice.text)}`, joined);
  }
}

const outcome = ({ text, finish_reason }) => [text, finish_reason];

export default [
  {
    id: "066",
    title: "a stop string inside words",
    doors: ALL,
    async run(ctx) {
      for (const [include, text] of [
        [false, "The quick br"],
        [true, "The quick brown f"],
      ]) {
        const members = { ...FORCE(FOX), stop: "own f", include_stop_str_in_output: include };
        equal(outcome(await ctx.choice(members)), [text, "stop"], `included: ${include}, plain`);
        const streamed = await ctx.stream(R(members));
        const seen = outcome(streamed.choices[0]);
        equal(seen, [text, "stop"], `included: ${include}, streamed`);
        checkGrowth(streamed);
      }
    },
  },
  {
    id: "069",
    title: "text withheld for a possible stop is not lost",
    doors: ALL,
    async run(ctx) {
      const full = "aaab aaac end";
      for (const [stop, text] of [
        [{ stop: "aaac" }, "aaab "],
        [{ stop: "aaad" }, full],
        [{ stop: "end!" }, full],
        [{ stop_regex: "a+c" }, "aaab "],
        [{ stop_regex: "e.*x" }, full],
      ]) {
        const { choices } = await ctx.stream(R({ ...FORCE(full), ...stop }));
        equal(outcome(choices[0]), [text, "stop"], JSON.stringify(stop));
      }
    },
  },
  {
    id: "070",
    title: "a stop on the last allowed token is a stop",
    doors: ALL,
    async run(ctx) {
      const members = { ...FORCE(FOX), stop: "own f" };
      const { choices, usage } = await ctx.completion(R(members));
      const k = usage.completion_tokens;
      equal(choices[0].finish_reason, "stop", "finish_reason");
      const exact = await ctx.choice({ ...members, max_tokens: k });
      equal(outcome(exact), [choices[0].text, "stop"], `max_tokens ${k}`);
      const less = await ctx.choice({ ...members, max_tokens: k - 1 });
      equal(less.finish_reason, "length", `max_tokens ${k - 1}: finish_reason`);
    },
  },
  {
    id: "071",
    title: "stop strings do not match the prompt",
    doors: ALL,
    async run(ctx) {
      const members = { prompt: "fox fox", echo: true, stop: "fox", ...FORCE("red dog") };
      equal(outcome(await ctx.choice(members)), ["fox foxred dog", "stop"], "the choice");
    },
  },
  {
    id: "072",
    title: "any text is returned completely",
    doors: ALL,
    async run(ctx) {
      const text = "  naïve 🎉👩‍👩‍👧 Ω終\n\n";
      equal(await ctx.text(FORCE(text)), text, "plain");
      for (const [stop, expected] of [
        [undefined, text],
        ["🎉", "  naïve "],
      ]) {
        const { chunks, choices } = await ctx.stream(R({ ...FORCE(text), stop }));
        equal(choices[0].text, expected, `streamed with stop ${stop}`);
        for (const chunk of chunks.flatMap((chunk) => chunk.choices)) {
          const whole = !/[\uFFFD\p{Surrogate}]/u.test(chunk.text);
          ok(whole, "a chunk without halves of characters", chunk.text);
        }
      }
    },
  },
  {
    id: "074",
    title: "skip_special_tokens",
    doors: ALL,
    async run(ctx) {
      const members = { ...BIAS(ctx.EOS), ignore_eos: true, max_tokens: 3 };
      equal(await ctx.text({ ...members, skip_special_tokens: true }), "", "skipped");
      const literal = ctx.info.eosText.repeat(3);
      equal(await ctx.text({ ...members, skip_special_tokens: false }), literal, "not skipped");
    },
  },
  {
    id: "076",
    title: "a stop string that is a special token",
    doors: ALL,
    async run(ctx) {
      const members = { ...BIAS(ctx.EOS), stop: ctx.info.eosText, ignore_eos: true };
      const { choices, usage } = await ctx.completion(R(members));
      equal(choices[0].finish_reason, "stop", "finish_reason");
      equal(usage.completion_tokens, 1, "completion_tokens");
    },
  },
  {
    id: "077",
    title: "suffix",
    doors: ALL,
    async run(ctx) {
      const members = { ...FORCE("abc"), suffix: "XYZ" };
      equal(await ctx.text(members), "abcXYZ", "plain");
      equal(await ctx.text({ ...members, echo: true }), `${P}abcXYZ`, "echo");
      equal(await ctx.text({ ...members, stop: "b" }), "aXYZ", "stop");
      const { choices } = await ctx.stream(R(members));
      equal(choices[0].text, "abcXYZ", "streamed");
      const [with_suffix, without] = [
        await ctx.completion(R({ ...members, logprobs: 0 })),
        await ctx.completion(R({ ...FORCE("abc"), logprobs: 0 })),
      ];
      equal(with_suffix.usage, without.usage, "usage");
      const { tokens, text_offset } = with_suffix.choices[0].logprobs;
      equal(tokens, without.choices[0].logprobs.tokens, "tokens");
      equal(text_offset, without.choices[0].logprobs.text_offset, "text_offset");
      equal(with_suffix.choices[0].text, "abcXYZ", "text with logprobs");
    },
  },
];
