//! Writes tests/real/references.json: what llama.cpp and exact arithmetic in numpy say about the real models of tests/real.
//! `node scripts/references/real_models.mjs PYTHON LLAMACPP`: an interpreter with numpy, gguf, tokenizers, safetensors and scipy, and a
//! folder with llamacpp.mjs and the package node-llama-cpp.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { perplexity, provideRealModels } from "../../tests/real/models.mjs";
import { capture, main, Remediable, root } from "../process.mjs";
import { temporaryFolder } from "../temporary_folder.mjs";

const OUT = join(root, "tests/real/references.json");
const SHARED = process.env.INPAGE_REAL ?? join(root, "../shared/real");
const PROMPTS = [
  "The three primary colours are red,",
  "def is_prime(n):\n    if n < 2:\n        return False\n",
  "Question: Why is the sky blue?\nAnswer:",
];
const GREEDY_TOKENS = 32;
const SENTENCES = [
  "yes",
  "A fox runs through the forest at night.",
  "Ein Fuchs läuft nachts durch den Wald.",
  "The stock market fell sharply on Tuesday.",
  "def fibonacci(n): return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)",
  'To change your password, open the settings and choose "Security".',
  "猫は窓辺で眠っている。",
  '{"name": "Ada", "born": 1815}',
  "Pack my box with five dozen liquor jugs. How vexingly quick daft zebras jump! Sphinx of black quartz, judge my vow.",
];
// The distance of the two best logits of every position.
const MARGINS = `import json, sys, numpy as np
best = np.sort(np.partition(np.load(sys.argv[1]), -2, axis=-1)[:, -2:], axis=-1)
print(json.dumps([round(float(b - a), 3) for a, b in best]))`;

const rounded = (values, digits) => values.map((value) => Number(value.toFixed(digits)));

function ran(program, args) {
  const output = capture(program, args, { timeout: 600_000 });
  if (output === undefined) throw new Remediable(`${program} ${args.join(" ")} failed`);
  return output;
}

await main(async ([python, llamaFolder]) => {
  const models = await provideRealModels();
  if (models.reason) throw new Remediable(models.reason);
  const folder = temporaryFolder("inpage-references-");
  const [input, output] = ["in.json", "out.json"].map((name) => join(folder, name));
  const read = () => JSON.parse(readFileSync(output, "utf8"));
  const compute = (script, model, values) => {
    writeFileSync(input, JSON.stringify(values));
    ran(python, [join(SHARED, script), model, input, output]);
    return read();
  };
  const llama = (mode, ...args) => {
    const script = join(llamaFolder, "llamacpp.mjs");
    const lines = ran(process.execPath, [script, mode, "--model", models.smolLm2, ...args]);
    return JSON.parse(lines.trim().split("\n").at(-1));
  };
  const score = (text) => {
    const file = join(folder, "text.txt");
    writeFileSync(file, text);
    return llama("score", "--text", file);
  };

  const whole = score(models.text);
  const exact = compute("llama_reference.py", models.smolLm2, whole.ids);
  const continuations = PROMPTS.map((prompt) => {
    const { ids } = score(prompt);
    const greedy = llama("greedy", "--ids", ids.join(","), "--gen", String(GREEDY_TOKENS)).ids;
    compute("llama_reference.py", models.smolLm2, [...ids, ...greedy]);
    const margins = JSON.parse(ran(python, ["-c", MARGINS, `${output}.npy`]));
    // The position before a token decides it.
    return { ids, greedy, margins: margins.slice(ids.length - 1, -1) };
  });
  const vectors = compute("minilm_reference.py", models.miniLm, SENTENCES);
  const references = {
    smolLm2: {
      ids: whole.ids,
      logprobs: rounded(exact, 4),
      perplexity: perplexity(exact),
      llamacppPerplexity: whole.perplexity,
      continuations,
    },
    miniLm: { sentences: SENTENCES, vectors: vectors.map((vector) => rounded(vector, 7)) },
  };
  writeFileSync(OUT, `${JSON.stringify(references)}\n`);
  return 0;
});
