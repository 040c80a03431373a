//! G. Logprobs, echo, scoring (specification 7).

import { allNear, cp, equal, matches, near, ok } from "../check.mjs";
import { FORCE, P, R, SCORE } from "../context.mjs";
import { ALL } from "../doors.mjs";

const AS_IDS = { return_tokens_as_token_ids: true };
const LISTS = ["tokens", "token_logprobs", "top_logprobs", "text_offset"];

function checkLengths(logprobs, length) {
  for (const name of LISTS) equal(logprobs[name].length, length, `length of ${name}`);
}

const isScore = (value) => typeof value === "number" && value <= 0;

export default [
  {
    id: "078",
    title: "logprobs 0 lists the sampled token alone",
    doors: ALL,
    async run(ctx) {
      const { choices, usage } = await ctx.completion(R({ logprobs: 0, temperature: 1 }));
      const { logprobs } = choices[0];
      checkLengths(logprobs, usage.completion_tokens);
      logprobs.top_logprobs.forEach((top, i) => {
        const only = { [logprobs.tokens[i]]: logprobs.token_logprobs[i] };
        equal(top, only, `top_logprobs[${i}]`);
      });
    },
  },
  {
    id: "079",
    title: "logprobs 3: the best three and the sampled token",
    doors: ALL,
    async run(ctx) {
      const body = R({ logprobs: 3, temperature: 1.3, max_tokens: 30, seed: 79 });
      const { tokens, token_logprobs, top_logprobs } = (await ctx.completion(body)).choices[0]
        .logprobs;
      const ids = (await ctx.completion({ ...body, ...AS_IDS })).choices[0].logprobs;
      top_logprobs.forEach((top, i) => {
        const values = Object.values(top);
        // Ids are unique, but tokens that share a string share an entry.
        const distinct = Object.keys(ids.top_logprobs[i]).length;
        ok([3, 4].includes(distinct), `entries of position ${i} by id`, distinct);
        ok(values.length >= 1 && values.length <= distinct, `entries of position ${i}`, top);
        ok(values.every(isScore), `log-probabilities at ${i}`, top);
        const mass = values.reduce((total, value) => total + Math.exp(value), 0);
        ok(mass <= 1.001, `mass of position ${i}`, mass);
        const best_first = Object.values(ids.top_logprobs[i]);
        const sorted = [...best_first].sort((a, b) => b - a);
        equal(best_first, sorted, `position ${i} in descending order`);
        // Tokens that share a string have its best value.
        ok(top[tokens[i]] !== undefined, `the token at ${i} is listed`, [tokens[i], top]);
        const own = ids.top_logprobs[i][ids.tokens[i]];
        equal(own, ids.token_logprobs[i], `the value of the token at ${i}, by id`);
        const shared = values.length < distinct;
        if (!shared) equal(top[tokens[i]], token_logprobs[i], `the value of the token at ${i}`);
      });
    },
  },
  {
    id: "080",
    title: "text_offset points at the token's text",
    doors: ALL,
    async run(ctx) {
      const { text, logprobs } = await ctx.choice({ ...FORCE("one two three"), logprobs: 0 });
      const { tokens, text_offset } = logprobs;
      equal(text_offset[0], 0, "text_offset[0]");
      const characters = cp(text);
      let visible = "";
      tokens.forEach((token, i) => {
        if (i > 0) ok(text_offset[i] >= text_offset[i - 1], "text_offset grows", text_offset);
        if (token.startsWith("bytes:") || token === ctx.info.eosText) return;
        const start = text_offset[i];
        const slice = characters.slice(start, start + cp(token).length).join("");
        equal(slice, token, `the text at offset ${start}`);
        visible += token;
      });
      ok(visible.startsWith(text), "the tokens start with the text", [visible, text]);
    },
  },
  {
    id: "082",
    title: "echo returns the prompt unchanged",
    doors: ALL,
    async run(ctx) {
      const prompt = "a  b\n\tc ";
      const text = await ctx.text({ prompt, echo: true, max_tokens: 2 });
      ok(text.startsWith(prompt), `starts with ${JSON.stringify(prompt)}`, text);
    },
  },
  {
    id: "083",
    title: "scoring a prompt",
    doors: ALL,
    async run(ctx) {
      const { choices, usage } = await ctx.completion({ model: "default", ...SCORE(P) });
      const { text, logprobs, finish_reason } = choices[0];
      equal(text, P, "text");
      checkLengths(logprobs, usage.prompt_tokens);
      equal([logprobs.token_logprobs[0], logprobs.top_logprobs[0]], [null, null], "first entries");
      ok(logprobs.token_logprobs.slice(1).every(isScore), "scores", logprobs.token_logprobs);
      equal(usage.completion_tokens, 0, "completion_tokens");
      equal(finish_reason, "length", "finish_reason");
    },
  },
  {
    id: "084",
    title: "the scores of a text equal those of its generation",
    doors: ALL,
    async run(ctx) {
      const prompt = await ctx.IDS(P);
      const members = { prompt, temperature: 0, max_tokens: 8, ignore_eos: true, logprobs: 0 };
      const { token_ids, logprobs } = await ctx.choice({ ...members, ...AS_IDS });
      const scores = await ctx.SCORE([...prompt, ...token_ids]);
      allNear(scores.slice(-8), logprobs.token_logprobs, 0.05, "scores of the completion");
    },
  },
  {
    id: "087",
    title: "the requests of lm-evaluation-harness",
    doors: ALL,
    async run(ctx) {
      const contexts = [await ctx.IDS(P), await ctx.IDS("Once upon a time there was a little")];
      const prompts = [];
      for (const [i, context] of contexts.entries()) {
        const members = { prompt: context, temperature: 0, max_tokens: 4 + i, ignore_eos: true };
        prompts.push([...context, ...(await ctx.choice({ ...members, ...AS_IDS })).token_ids]);
      }
      const { choices } = await ctx.completion({
        ...{ model: "default", prompt: prompts, echo: true, max_tokens: 1, logprobs: 1 },
        ...{ temperature: 0, seed: 1234 },
      });
      for (const [i, prompt] of prompts.entries()) {
        const { token_logprobs, top_logprobs } = choices[i].logprobs;
        checkLengths(choices[i].logprobs, prompt.length + 1);
        const scores = token_logprobs.slice(contexts[i].length, -1);
        equal(scores.length, 4 + i, `scored tokens of choice ${i}`);
        scores.forEach((value, j) => {
          ok(isScore(value), `a number for token ${j} of choice ${i}`, value);
          const [best, second = -Infinity] = Object.values(
            top_logprobs[contexts[i].length + j],
          ).sort((a, b) => b - a);
          const what = `token ${j} of choice ${i} is the best`;
          if (best - second < 0.05) near(value, best, 0.05, what);
          else equal(value, best, what);
        });
      }
    },
  },
  {
    id: "088",
    title: "tokens as ids",
    doors: ALL,
    async run(ctx) {
      const plain = await ctx.text({ temperature: 0 });
      for (const members of [{ logprobs: 2 }, {}]) {
        const body = R({ temperature: 0, ...AS_IDS, ...members });
        const { choices, usage } = await ctx.completion(body);
        const { text, token_ids, logprobs } = choices[0];
        equal(text, plain, "text");
        equal(token_ids.length, usage.completion_tokens, "token_ids");
        const labels = [
          ...(logprobs?.tokens ?? []),
          ...(logprobs?.top_logprobs ?? []).flatMap((top) => Object.keys(top)),
        ];
        for (const label of labels) matches(label, /^token_id:[0-9]+$/, "token");
        if (members.logprobs !== undefined) {
          equal(
            logprobs.tokens,
            token_ids.map((id) => `token_id:${id}`),
            "tokens",
          );
        }
      }
    },
  },
  {
    id: "090",
    title: "echo with two choices",
    doors: ALL,
    async run(ctx) {
      const members = { echo: true, n: 2, logprobs: 0, max_tokens: 3, ignore_eos: true };
      const { choices, usage } = await ctx.completion(R(members));
      equal(choices.length, 2, "choices");
      for (const { text, logprobs } of choices) {
        ok(text.startsWith(P), "starts with the prompt", text);
        checkLengths(logprobs, usage.prompt_tokens + 3);
        for (const name of LISTS) {
          const prompt = logprobs[name].slice(0, usage.prompt_tokens);
          const first = choices[0].logprobs[name].slice(0, usage.prompt_tokens);
          equal(prompt, first, `${name} of the prompt`);
        }
      }
    },
  },
];
