//! D. Prompt shapes, n, best_of, usage (specification 4.2, 8, 10.6).

import { allNear, equal, ok } from "../check.mjs";
import { P, R } from "../context.mjs";
import { ALL } from "../doors.mjs";

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

export default [
  {
    id: "035",
    title: "the four shapes of a prompt",
    doors: ALL,
    async run(ctx) {
      const ids = await ctx.IDS(P);
      const seen = [];
      for (const prompt of [P, [P], ids, [ids]]) {
        const { choices, usage } = await ctx.completion(R({ prompt, temperature: 0 }));
        seen.push([choices[0].text, usage.prompt_tokens]);
      }
      for (const pair of seen) equal(pair, seen[0], "text and prompt_tokens");
    },
  },
  {
    id: "036",
    title: "three prompts, two choices each",
    doors: ALL,
    async run(ctx) {
      const prompts = ["alpha one", "beta two", "gamma three"];
      const members = { n: 2, echo: true, ignore_eos: true, max_tokens: 5 };
      const { choices, usage } = await ctx.completion(R({ prompt: prompts, ...members }));
      equal(
        choices.map(({ index }) => index),
        [0, 1, 2, 3, 4, 5],
        "indices",
      );
      choices.forEach(({ text }, i) => {
        const prompt = prompts[Math.floor(i / 2)];
        ok(text.startsWith(prompt), `choice ${i} starts with "${prompt}"`, text);
      });
      const single = [];
      for (const prompt of prompts) {
        single.push((await ctx.completion(R({ prompt }))).usage.prompt_tokens);
      }
      equal(usage.prompt_tokens, sum(single), "prompt_tokens");
      equal(usage.completion_tokens, 30, "completion_tokens");
    },
  },
  {
    id: "038",
    title: "invalid prompts",
    doors: ALL,
    async run(ctx) {
      const V = ctx.info.vocabSize;
      for (const prompt of [
        [],
        [[]],
        ["a", 1],
        [1, "a"],
        [[1], ["a"]],
        [[[1]]],
        [-1],
        [1.5],
        [V],
        [[0], [V]],
        {},
        5,
      ]) {
        await ctx.refused(R({ prompt }), 400, null, "prompt");
      }
    },
  },
  {
    id: "039",
    title: "an empty prompt is the start of a document",
    doors: ALL,
    async run(ctx) {
      const bodies = [R({ prompt: "" }), R({ prompt: null })];
      const pair = R({ prompt: ["", "hello"], echo: true });
      if (ctx.info.documentStartId === null) {
        for (const body of [...bodies, pair]) {
          await ctx.refused(body, 400, "invalid_value", "prompt");
        }
        return;
      }
      for (const body of bodies) {
        const { usage } = await ctx.completion(body);
        ok(usage.prompt_tokens >= 1, "prompt_tokens ≥ 1", usage);
      }
      const { choices } = await ctx.completion(pair);
      equal(choices.length, 2, "choices");
      ok(choices[1].text.startsWith("hello"), "the second starts with hello", choices[1].text);
      ok(!choices[0].text.startsWith("hello"), "the first does not", choices[0].text);
    },
  },
  {
    id: "040",
    title: "the scores of a batch equal those of single prompts",
    doors: ALL,
    async run(ctx) {
      const prompts = ["The dog ran home.", "Once upon a time there was", "Lily likes to play"];
      const { choices } = await ctx.completion(
        R({ prompt: prompts, echo: true, max_tokens: 0, logprobs: 1 }),
      );
      for (const [i, prompt] of prompts.entries()) {
        const alone = await ctx.SCORE(prompt);
        allNear(choices[i].logprobs.token_logprobs, alone, 0.05, `scores of prompt ${i}`);
      }
    },
  },
  {
    id: "042",
    title: "best_of candidates count as usage",
    doors: ALL,
    async run(ctx) {
      const { usage: single } = await ctx.completion(R());
      const { choices, usage } = await ctx.completion(
        R({ best_of: 4, n: 1, ignore_eos: true, max_tokens: 6 }),
      );
      equal(choices.length, 1, "choices");
      equal(usage.completion_tokens, 24, "completion_tokens");
      equal(usage.prompt_tokens, single.prompt_tokens, "prompt_tokens");
    },
  },
  {
    id: "043",
    title: "best_of returns the candidates with the best mean",
    doors: ALL,
    async run(ctx) {
      const members = { temperature: 1.2, seed: 7, logprobs: 0, max_tokens: 10, ignore_eos: true };
      const all = (await ctx.completion(R({ ...members, n: 4 }))).choices;
      const best = (await ctx.completion(R({ ...members, n: 2, best_of: 4 }))).choices;
      equal(best.length, 2, "choices");
      const mean = ({ logprobs }) => sum(logprobs.token_logprobs) / logprobs.token_logprobs.length;
      const means = best.map(({ text }, i) => {
        const source = all.find((choice) => choice.text === text);
        ok(source, `choice ${i} is one of the four: ${all.map((c) => c.text)}`, text);
        return mean(source);
      });
      const ranked = all.map(mean).sort((a, b) => b - a);
      allNear(means, ranked.slice(0, 2), 1e-3, "means of the two best");
    },
  },
  {
    id: "044",
    title: "best_of, n and stream",
    doors: ALL,
    async run(ctx) {
      await ctx.refused(R({ best_of: 1, n: 2 }), 400, null, "best_of");
      await ctx.completion(R({ best_of: 2, n: 2 }));
      const conflict = R({ best_of: 3, n: 2, stream: true });
      await ctx.refused(conflict, 400, "conflicting_parameters", "best_of");
      await ctx.stream(R({ best_of: 1 }));
    },
  },
];
