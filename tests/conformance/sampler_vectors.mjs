//! The sampler vectors of specification 16, sent to the sampler module itself. A question is
//! `{ logits, prompt, generated, mask, params }`. The answer is `{ adjusted, survivors, u, sampled,
//! mirostatMu }`: logits after stages 1 to 5, [id, probability] in draw order, the uniform number of
//! the draw, the sampled id, and μ after it.

import { allNear, equal, near, ok } from "./check.mjs";

const Z = [3, 2.5, 2, 1, 0, -1];
const TOLERANCE = 1e-5;

/** Logits after the stages before greedy. */
const adjusts = (question, expected) => async (ask, name) => {
  const { adjusted } = await ask({ logits: Z, ...question });
  allNear(adjusted, expected, TOLERANCE, `${name}, logits`);
};

/** Survivors and probabilities. */
const keeps = (question, expected) => async (ask, name) => {
  const { survivors } = await ask({ logits: Z, ...question });
  equal(
    survivors.map(([id]) => id),
    expected.map(([id]) => id),
    `${name}, survivors`,
  );
  const probabilities = survivors.map(([, p]) => p);
  allNear(
    probabilities,
    expected.map(([, p]) => p),
    TOLERANCE,
    `${name}, probabilities`,
  );
};

/** The first survivor whose cumulative probability exceeds u. */
function walk(survivors, u) {
  let total = 0;
  const found = survivors.find(([, p]) => {
    total += p;
    return total > u;
  });
  return (found ?? survivors.at(-1))[0];
}

const all =
  (...checks) =>
  async (ask, name) => {
    for (const check of checks) await check(ask, name);
  };

/** Tries seeds until each survivor was sampled. Each sampled id must follow from its u. */
const drawsAll = (question) => async (ask, name) => {
  const { survivors } = await ask({ logits: Z, ...question });
  const seen = new Set();
  for (let seed = 0; seed < 64 && seen.size < survivors.length; seed++) {
    const params = { ...question.params, seed };
    const { u, sampled } = await ask({ logits: Z, ...question, params });
    equal(sampled, walk(survivors, u), `${name}, drawn with u = ${u}`);
    seen.add(sampled);
  }
  equal(seen.size, survivors.length, `${name}, survivors drawn by 64 seeds`);
};

const drawn = (question, expected) => async (ask, name) => {
  const { sampled } = await ask({ logits: Z, ...question });
  equal(sampled, expected, `${name}, sampled`);
};

const bias1 = {
  logitBias: [[3, 1.5]],
  repetitionPenalty: 1.2,
  frequencyPenalty: 0.5,
  presencePenalty: 0.4,
};
const HISTORY = { prompt: [0, 4], generated: [1, 1] };

/** The penalties of DRY after the ids x of V16, by id. */
const dry = (params, expected) => async (ask, name) => {
  const logits = Array(10).fill(0);
  const { adjusted } = await ask({
    logits,
    prompt: [0, 1, 2, 2, 1, 2, 9, 0, 1, 2],
    params: { dry: { multiplier: 0.8, base: 1.75, allowedLength: 2, breakers: [], ...params } },
  });
  const penalised = logits.map((_, id) => -(expected[id] ?? 0));
  allNear(adjusted, penalised, TOLERANCE, `${name}, logits`);
};

/** One step of mirostat that samples `id`: the survivors, and μ after it. */
const mirostat = (target, survivors, id, mu) => async (ask, name) => {
  const params = { mirostat: { targetBits: Math.log2(target), learningRate: 0.1 } };
  let answer;
  for (let seed = 0; seed < 256 && answer?.sampled !== id; seed++) {
    answer = await ask({ logits: Z, params: { ...params, seed } });
    equal(
      answer.survivors.map(([kept]) => kept),
      survivors,
      `${name}, survivors`,
    );
  }
  ok(answer.sampled === id, `${name}: one of 256 seeds draws ${id}`, answer.sampled);
  near(answer.mirostatMu, mu, TOLERANCE, `${name}, μ`);
};

const bare = (prompt, generated) => ({
  logits: [1, 0.5, 0.2],
  prompt,
  generated,
  params: { frequencyPenalty: 0.3, presencePenalty: 0.2 },
});

export const vectors = [
  {
    name: "V1",
    check: adjusts({ ...HISTORY, params: bias1 }, [2.5, 0.683333, 2, 2.5, 0, -1]),
  },
  {
    name: "V2",
    check: keeps(
      { ...HISTORY, params: { ...bias1, temperature: 0.8, topK: 4, topP: 0.85, minP: 0.2 } },
      [
        [0, 0.394437],
        [3, 0.394437],
        [2, 0.211127],
      ],
    ),
  },
  {
    name: "V3",
    check: adjusts({ prompt: [5], params: { repetitionPenalty: 1.5 } }, [3, 2.5, 2, 1, 0, -1.5]),
  },
  { name: "V4", check: keeps({ params: { topP: 0 } }, [[0, 1]]) },
  {
    name: "V5",
    check: all(
      keeps({ params: { topP: 0.8 } }, [
        [0, 0.50648],
        [1, 0.307196],
        [2, 0.186324],
      ]),
      drawsAll({ params: { topP: 0.8 } }),
    ),
  },
  { name: "V6", check: keeps({ params: { topK: 2, topP: 0.62 } }, [[0, 1]]) },
  {
    name: "V7",
    check: keeps({ params: { topP: 0.6, minP: 0.5 } }, [
      [0, 0.622459],
      [1, 0.377541],
    ]),
  },
  {
    name: "V8",
    check: keeps({ params: { temperature: 2, topP: 0.73 } }, [
      [0, 0.419229],
      [1, 0.326496],
      [2, 0.254275],
    ]),
  },
  { name: "V9", check: keeps({ params: { minP: 1 } }, [[0, 1]]) },
  { name: "V10", check: keeps({ mask: [2, 4], params: { topK: 1 } }, [[2, 1]]) },
  { name: "V11", check: drawn({ params: { temperature: 0, logitBias: [[5, 100]] } }, 5) },
  {
    name: "V12",
    check: all(
      keeps({ logits: [1, 1, 1, 0], params: { topK: 2 } }, [
        [0, 0.5],
        [1, 0.5],
      ]),
      drawn({ logits: [1, 1, 1, 0], params: { temperature: 0 } }, 0),
    ),
  },
  {
    name: "V13",
    check: adjusts(
      {
        logits: [0.3, 0],
        generated: [0],
        params: { repetitionPenalty: 2, presencePenalty: 0.4 },
      },
      [-0.25, 0],
    ),
  },
  {
    name: "V14",
    check: adjusts(
      { logits: [1, 0], prompt: [0], params: { logitBias: [[0, 1]], repetitionPenalty: 2 } },
      [1, 0],
    ),
  },
  {
    name: "V15",
    check: all(
      adjusts(bare([0, 0, 1], []), [1, 0.5, 0.2]),
      adjusts(bare([], [0, 0, 1]), [0.2, 0, 0.2]),
    ),
  },
  { name: "V16", check: dry({}, { 2: 1.4, 9: 0.8 }) },
  {
    name: "V17",
    check: all(
      dry({ breakers: [2] }, {}),
      dry({ breakers: [1] }, {}),
      dry({ breakers: [9] }, { 2: 1.4 }),
    ),
  },
  { name: "V18", check: dry({ breakers: [1], allowedLength: 1 }, { 2: 0.8, 9: 0.8 }) },
  { name: "V19", check: mirostat(4, [0, 1, 2], 1, 4.015575) },
  { name: "V20", check: mirostat(1.5, [0], 0, 1.116131) },
];
