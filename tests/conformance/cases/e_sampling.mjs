//! E. Sampling (specification 5).

import { allNear, equal, near, ok } from "../check.mjs";
import { BIAS, P, R } from "../context.mjs";
import { ALL } from "../doors.mjs";
import { vectors } from "../sampler_vectors.mjs";

const AS_IDS = { return_tokens_as_token_ids: true };
const key = (id) => `token_id:${id}`;
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const descending = (numbers) => [...numbers].sort((a, b) => b - a);

/** M of specification 5.1 for the token `next` after `ids`, with no breakers; undefined if nothing repeats. */
function dryMatch(ids, next) {
  let most;
  for (let i = 0; i < ids.length - 1; i++) {
    if (ids[i] !== ids.at(-1) || ids[i + 1] !== next) continue;
    let length = 1;
    while (length < 50 && length <= i && ids[i - length] === ids[ids.length - 1 - length]) {
      length += 1;
    }
    most = Math.max(most ?? 0, length);
  }
  return most;
}

export default [
  {
    id: "045",
    title: "temperature 0 is deterministic",
    doors: ALL,
    async run(ctx) {
      const texts = [await ctx.text({ temperature: 0 }), await ctx.text({ temperature: 0 })];
      const { choices } = await ctx.completion(R({ temperature: 0, n: 3 }));
      equal(choices.length, 3, "choices");
      for (const text of [...texts, ...choices.map((choice) => choice.text)]) {
        equal(text, texts[0], "text");
      }
    },
  },
  {
    id: "046",
    title: "a seed is deterministic, streamed or not",
    doors: ALL,
    async run(ctx) {
      const members = { temperature: 1.3, seed: 11, logprobs: 2 };
      const first = await ctx.choice(members);
      const { choices } = await ctx.stream(R(members));
      for (const again of [await ctx.choice(members), choices[0]]) {
        equal(again.text, first.text, "text");
        equal(again.logprobs.tokens, first.logprobs.tokens, "tokens");
        const scores = first.logprobs.token_logprobs;
        allNear(again.logprobs.token_logprobs, scores, 1e-3, "token_logprobs");
        equal(again.finish_reason, first.finish_reason, "finish_reason");
      }
    },
  },
  {
    id: "047",
    title: "different seeds, and no seed, give different texts",
    doors: ALL,
    async run(ctx) {
      for (const seeds of [[1, 2, 3, 4, 5, 6, 7, 8], Array(6).fill(undefined)]) {
        const texts = new Set();
        for (const seed of seeds) {
          const members = { temperature: 1.5, max_tokens: 12, ignore_eos: true, seed };
          texts.add(await ctx.text(members));
        }
        ok(texts.size >= 2, `two distinct texts among seeds ${seeds}`, [...texts]);
      }
    },
  },
  {
    id: "049",
    title: "top_k 1, top_p 0 and min_p 1 are greedy at any temperature",
    doors: ALL,
    async run(ctx) {
      const greedy = (await ctx.choice({ temperature: 0, logprobs: 2, ...AS_IDS })).logprobs;
      // At a tie, either token may be chosen, and texts may differ from there on.
      const tie = greedy.top_logprobs.findIndex((top) => {
        const [best, second] = descending(Object.values(top));
        return best === second;
      });
      const comparable = tie === -1 ? greedy.tokens.length : tie;
      ok(comparable > 0, "a position without a tie to compare");
      for (const members of [{ top_k: 1 }, { top_p: 0 }, { min_p: 1 }]) {
        const all = { temperature: 2, logprobs: 0, ...AS_IDS, ...members };
        const { tokens } = (await ctx.choice(all)).logprobs;
        const [name] = Object.keys(members);
        equal(tokens.slice(0, comparable), greedy.tokens.slice(0, comparable), name);
      }
    },
  },
  {
    id: "050",
    title: "top_k keeps the k best",
    doors: ALL,
    async run(ctx) {
      const members = { temperature: 2, top_k: 3, logprobs: 5, max_tokens: 40, ignore_eos: true };
      const { logprobs } = await ctx.choice({ ...members, ...AS_IDS });
      equal(logprobs.tokens.length, 40, "tokens");
      logprobs.token_logprobs.forEach((value, i) => {
        const third = descending(Object.values(logprobs.top_logprobs[i]))[2];
        ok(value >= third, `token ${i} is among the three best`, [value, third]);
      });
    },
  },
  {
    id: "051",
    title: "top_p keeps the tokens before the mass is reached",
    doors: ALL,
    async run(ctx) {
      const members = { temperature: 1, top_p: 0.5, logprobs: 5, max_tokens: 60 };
      const { logprobs } = await ctx.choice({ ...members, ignore_eos: true, ...AS_IDS });
      equal(logprobs.tokens.length, 60, "tokens");
      logprobs.token_logprobs.forEach((value, i) => {
        const values = descending(Object.values(logprobs.top_logprobs[i]));
        // A sixth entry is the sampled token, if it is not among the five best.
        const better = values.length > 5 ? values.slice(0, 5) : values.filter((v) => v > value);
        const mass = sum(better.map(Math.exp));
        ok(mass < 0.51, `mass before token ${i}`, mass);
      });
    },
  },
  {
    id: "053",
    title: "a large bias forces a token",
    doors: ALL,
    async run(ctx) {
      const [X] = await ctx.ordinary();
      const members = { ...BIAS(X), max_tokens: 5, ignore_eos: true, ...AS_IDS };
      equal((await ctx.choice(members)).token_ids, [X, X, X, X, X], "token_ids");
    },
  },
  {
    id: "054",
    title: "a bias of −100 forbids a token",
    doors: ALL,
    async run(ctx) {
      const members = { temperature: 0, max_tokens: 1, ignore_eos: true, ...AS_IDS };
      const [t] = (await ctx.choice(members)).token_ids;
      const [other] = (await ctx.choice({ ...members, logit_bias: { [t]: -100 } })).token_ids;
      ok(other !== t, `the first token is not ${t}`, other);
    },
  },
  {
    id: "055",
    title: "raw log-probabilities do not include the bias",
    doors: ALL,
    async run(ctx) {
      const [X] = await ctx.ordinary();
      const ids = await ctx.IDS(P);
      const members = { prompt: ids, temperature: 0, max_tokens: 1, logprobs: 5, ...AS_IDS };
      const top = async (more) =>
        (await ctx.choice({ ...members, ignore_eos: true, ...more })).logprobs.top_logprobs[0];
      const plain = await top({});
      const biased = await top(BIAS(X));
      for (const [name, value] of Object.entries(plain)) near(biased[name], value, 1e-3, name);
      const names = new Set([...Object.keys(plain), key(X)]);
      equal(Object.keys(biased).sort(), [...names].sort(), "entries with bias");
      const scores = await ctx.SCORE([...ids, X]);
      near(biased[key(X)], scores.at(-1), 0.05, "log-probability of X");
    },
  },
  {
    id: "057",
    title: "the repetition penalty divides the biased logit of prompt tokens",
    doors: ALL,
    async run(ctx) {
      const [X, Y] = await ctx.ordinary();
      const ids = await ctx.IDS(P);
      const difference = async (prompt, repetition_penalty) => {
        const bias = { logit_bias: { [X]: 100, [Y]: 60 }, temperature: 0, max_tokens: 1 };
        const scores = { logprobs_mode: "processed", logprobs: 5, ...AS_IDS };
        const members = { prompt, repetition_penalty, ...bias, ...scores };
        const [top] = (await ctx.choice(members)).logprobs.top_logprobs;
        for (const id of [X, Y]) ok(key(id) in top, `token ${id} is listed`, top);
        return top[key(X)] - top[key(Y)];
      };
      const shrunk = (await difference([...ids, X], 1)) - (await difference([...ids, X], 2));
      ok(shrunk > 20, "with X in the prompt the difference shrinks by more than 20", shrunk);
      near(await difference(ids, 2), await difference(ids, 1), 0.1, "with neither in the prompt");
    },
  },
  {
    id: "059",
    title: "DRY breaks repetitions",
    doors: ALL,
    async run(ctx) {
      const prompt = "a b c d e f. a b c d e f. a b c";
      const ids = await ctx.IDS(prompt);
      const dry = { dry_multiplier: 1000, dry_sequence_breakers: [] };
      const members = { prompt, temperature: 0, max_tokens: 24, ignore_eos: true, ...dry };
      const { token_ids } = await ctx.choice({ ...members, ...AS_IDS });
      equal(token_ids.length, 24, "tokens");
      token_ids.forEach((id, t) => {
        const match = dryMatch([...ids, ...token_ids.slice(0, t)], id);
        ok(match === undefined || match < 2, `M of token ${t} (${id})`, match);
      });
    },
  },
  {
    id: "061",
    title: "DRY and mirostat are off by default",
    doors: ALL,
    async run(ctx) {
      const members = { seed: 3, temperature: 1 };
      const expected = await ctx.text(members);
      for (const idle of [
        { dry_base: 3, dry_allowed_length: 0 },
        { dry_multiplier: 0 },
        { mirostat_lr: 0.5 },
      ]) {
        equal(await ctx.text({ ...members, ...idle }), expected, Object.keys(idle).join());
      }
    },
  },
  {
    id: "062",
    title: "mirostat steers the surprise",
    doors: ALL,
    async run(ctx) {
      const members = { temperature: 1, seed: 5, ignore_eos: true, max_tokens: 220, logprobs: 0 };
      const surprise = async (others) => {
        const { logprobs } = await ctx.choice({ ...members, ...others });
        equal(logprobs.token_logprobs.length, 220, "tokens");
        const bits = logprobs.token_logprobs.slice(-150).map((value) => -value / Math.LN2);
        return sum(bits) / bits.length;
      };
      const plain = await surprise({});
      // No choice of tokens makes a model whose distributions are flat less surprised. That of the embedded model is 0.42 bits, below all
      // targets.
      const least = await surprise({ temperature: 0 });
      const targets = [2, 4, 16];
      const seen = [];
      for (const mirostat_target of targets) {
        const bits = await surprise({ mirostat_lr: 0.2, mirostat_target });
        const most = Math.max(Math.log2(mirostat_target), least) + 0.8;
        ok(bits < most, `target ${mirostat_target}: at most ${most} bits`, bits);
        seen.push(bits);
      }
      // Mirostat only lowers the surprise. If the model's surprise is already below the target, mirostat has no
      // effect.
      const limits = (target) => plain > Math.log2(target) && least < Math.log2(target);
      for (const i of [0, 1]) {
        const grows = seen[i] < seen[i + 1] || !limits(targets[i]);
        ok(grows, `surprise grows from target ${targets[i]} on; plain ${plain}`, seen);
      }
      const four = seen[1] >= 1.2 && seen[1] <= 2.8;
      ok(four || !limits(4), `target 4: 1.2 to 2.8 bits; plain ${plain}, least ${least}`, seen[1]);
    },
  },
  {
    id: "064",
    title: "end of text ends a choice, and with ignore_eos it does not",
    doors: ALL,
    async run(ctx) {
      const members = { ...BIAS(ctx.EOS), max_tokens: 4 };
      const ended = await ctx.completion(R(members));
      const { text, finish_reason } = ended.choices[0];
      equal([text, finish_reason], ["", "stop"], "text and finish_reason");
      equal(ended.usage.completion_tokens, 1, "completion_tokens");
      const ignored = await ctx.completion(R({ ...members, ignore_eos: true }));
      equal(ignored.choices[0].finish_reason, "length", "finish_reason with ignore_eos");
      equal(ignored.usage.completion_tokens, 4, "completion_tokens with ignore_eos");
      const { chunks, data } = await ctx.stream(R(members));
      equal(data.length, 2, "events of the stream");
      const [choice] = chunks[0].choices;
      equal([choice.text, choice.finish_reason], ["", "stop"], "the chunk");
    },
  },
  {
    id: "065",
    title: "the sampler's vectors V1 to V20",
    doors: ALL,
    async run(ctx) {
      for (const { name, check } of vectors) {
        await check((question) => ctx.hooks({ sampler: question }), name);
      }
    },
  },
];
