//! Measures other runtimes with an external harness (a folder with run.mjs), in the same run as inpage: those for browsers in the same
//! browser, and llama.cpp natively.

import { createHash } from "node:crypto";
import { cpSync, existsSync, readFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Remediable, run, say } from "../process.mjs";
import { perSecond } from "./report.mjs";

/** A peer that takes longer is stopped. */
const PEER_LIMIT_MS = 40 * 60_000;

/** Pages that are added to those of the harness. */
const PAGES = join(dirname(fileURLToPath(import.meta.url)), "peer_pages");

/** Runs llama.cpp, whose binaries come with a package that the harness does not install. */
const LLAMACPP = "llamacpp.mjs";
const LLAMACPP_PACKAGE = "node-llama-cpp@3.22.1";

/** Peers: the runtime of the harness, and its device. */
const PEERS = {
  llamacpp: ["llamacpp", "cpu"],
  transformers: ["transformers", "webgpu"],
  "transformers-cpu": ["transformers", "cpu"],
  webllm: ["webllm", "webgpu"],
  wllama: ["wllama", "cpu"],
};

/**
 * Installs a copy of the harness in a temporary folder. The given folder is not changed. Resolves with the copy, or with
 * undefined if its packages cannot be installed.
 */
async function install(folder) {
  const lock = join(folder, "package-lock.json");
  if (!existsSync(join(folder, "run.mjs")) || !existsSync(lock)) {
    throw new Remediable(
      `${folder} is not a harness for peers`,
      "--peers names the folder with run.mjs.",
    );
  }
  const version = createHash("sha256").update(readFileSync(lock)).digest("hex").slice(0, 16);
  const installed = join(tmpdir(), `inpage-peers-${version}`);
  cpSync(folder, installed, {
    recursive: true,
    filter: (path) => !path.includes("node_modules"),
  });
  cpSync(PAGES, join(installed, "www"), { recursive: true });
  if (!existsSync(join(installed, "node_modules/.package-lock.json"))) {
    say("peers: npm ci --ignore-scripts");
    const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    if ((await run("npm", args, { cwd: installed })) !== 0) return undefined;
  }
  return installed;
}

/** Installs llama.cpp beside the harness, unless it is there: whether it is now. */
async function installLlamaCpp(installed) {
  if (existsSync(join(installed, "node_modules/node-llama-cpp"))) return true;
  const args = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"];
  return (await run("npm", [...args, LLAMACPP_PACKAGE], { cwd: installed })) === 0;
}

/** The arguments of Node that measure a peer. */
function commandOf({ runtime, model, device }, { models, page, ...request }) {
  const { tokens, promptTokens, rounds, threads } = request;
  const of = (options) =>
    Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const common = { prompt: promptTokens, gen: tokens, runs: rounds, threads };
  if (runtime === "llamacpp")
    return [LLAMACPP, "speed", ...of({ model: join(models, model), ...common })];
  const timeout = PEER_LIMIT_MS / 1000;
  return ["run.mjs", page, ...of({ models, model, device, ...common, timeout })];
}

/** `NAME=MODEL` as given on the command line. */
export function parsePeer(text) {
  const [name, ...model] = text.split("=");
  if (!(name in PEERS) || model.length === 0) return undefined;
  const [runtime, device] = PEERS[name];
  return { name, runtime, model: model.join("="), device };
}

/** The harness has the pages for texts. */
const pageOf = ({ runtime }, kind) => (kind === "texts" ? runtime : `${runtime}-${kind}`);

/** Whether there is a page that measures the peer with `images` or `embeddings`. */
export const hasPage = (peer, kind) =>
  kind === "texts" || existsSync(join(PAGES, `${pageOf(peer, kind)}.html`));

/**
 * Runs each peer on its model, which is in `models`. Yields `{ peer, device, peer_model, ... }` with the rates of the `kind`, or
 * `{ peer, device, peer_model, error }` for one that fails. A request has `promptTokens` tokens, or so many texts for embeddings.
 */
export async function* measurePeers({
  folder,
  models,
  peers,
  tokens,
  promptTokens,
  kind = "texts",
  rounds,
  threads = availableParallelism(),
  chromium,
  adapter,
}) {
  const installed = await install(resolve(folder));
  for (const peer of peers) {
    const { name, runtime, model, device } = peer;
    if (installed === undefined) {
      const error = "the peers' packages could not be installed";
      yield { peer: name, device, peer_model: model, error };
      continue;
    }
    if (runtime === "llamacpp" && !(await installLlamaCpp(installed))) {
      yield { peer: name, device, peer_model: model, error: `${LLAMACPP_PACKAGE} is not here` };
      continue;
    }
    let output = "";
    const args = commandOf(peer, {
      models: resolve(models),
      page: pageOf(peer, kind),
      ...{ tokens, promptTokens, rounds, threads },
    });
    await run(process.execPath, args, {
      cwd: installed,
      env: { CHROMIUM: chromium, GPU_ADAPTER: adapter },
      timeout_ms: PEER_LIMIT_MS,
      onOutput: (text) => {
        output += text;
      },
    });
    const line = output.split("\n").find((text) => text.startsWith("{"));
    const said = line ? JSON.parse(line) : { error: output.trim().split("\n").at(-1) };
    yield said.error
      ? { peer: name, device, peer_model: model, error: said.error }
      : {
          ...{
            peer: name,
            device,
            peer_model: model,
            threads: device === "cpu" ? threads : undefined,
          },
          ...RATES[kind](said, promptTokens),
          load_ms: said.load_ms,
          busy_before: said.cpu_busy_before,
        };
  }
}

/** The rates that each kind of page reports. */
const RATES = {
  texts: ({ prefill_tps, decode_tps }) => ({
    prefill_tokens_per_s: prefill_tps.median,
    decode_tokens_per_s: decode_tps.median,
  }),
  images: ({ prompt_tokens, image_ms, first_token_ms }) => ({
    prompt_tokens,
    first_token_ms: first_token_ms.median,
    image_ms: image_ms.median,
    images_per_s: perSecond(image_ms.median),
  }),
  embeddings: ({ texts_ms, text_ms, vector }, texts) => ({
    texts_per_s: perSecond(texts_ms.median / texts),
    text_ms: text_ms.median,
    vector,
  }),
};
