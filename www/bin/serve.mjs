//! `inpage serve`: parses the arguments, loads the model, answers over HTTP until it is interrupted.

import { once } from "node:events";
import { parseArgs } from "node:util";
import { KV_FORMATS } from "../dist/generated/types.js";
import { createEngine } from "../dist/node/index.js";
import { Access } from "./access.mjs";
import { apiKeyOf } from "./api_key.mjs";
import { serverOf } from "./http_door.mjs";
import { hubOf, remoteModel } from "./model_place.mjs";
import { progressLine } from "./progress_line.mjs";

export const USAGE = `Usage: inpage serve [MODEL] [options]
       inpage serve NAME=MODEL NAME=MODEL ... [options]

Answers OpenAI's endpoints (completions, chat, responses, embeddings), Anthropic's
messages and rerank over HTTP with a model on this machine's CPU. MODEL is a name of the catalog
(inpage models), a GGUF file (of a split one, any part), a Hugging Face folder, a URL of one, or a name on the hub:
hf:OWNER/NAME/FILE.gguf or hf:OWNER/NAME, with @REVISION at the end. Without it, the small model in the package is used. The environment variables HF_ENDPOINT,
HF_TOKEN, INPAGE_API_KEY and INPAGE_CACHE_DIR are used. Models with names are loaded when requests first ask for them.
A path with a = in it begins with ./ or /.

  --id NAME            what requests may call the model besides "default" (default: the name of the file)
  --memory-budget N    most bytes of memory that the models may need together; of several with names, those that were not
                       used for the longest time are unloaded (default: no limit)
  --port N             default 8080; 0 takes any free port
  --host ADDRESS       the address to listen on: 127.0.0.1 (default), or another one to be reached from outside
  --api-key KEY        requests need "Authorization: Bearer KEY". Other users of this machine can see arguments: the
                       environment variable INPAGE_API_KEY and --api-key-file hide the key
  --api-key-file FILE  the key is the content of this file; a line end after it does not count
  --device NAME        auto (default), cpu, or webgpu where the program has it
  --threads N          most threads of the CPU (default: one for each processor, at most 8)
  --context N          longest sequence, in tokens (default: the model's own context, at most 4096)
  --kv-format FORMAT   format of the KV cache: ${KV_FORMATS.join(", ")} (default f16)
  --kv-pool N          KV cache for N tokens, shared by all sequences (default 4096)
  --quantize TYPE      type that a folder's matrices are converted to: q8_0 (default), q4_0, q4_k, ..., none
  --projector PLACE    the GGUF file (mmproj) with which the model sees images; of models with names NAME=PLACE, which
                       may be given several times. Images need the package sharp: npm install sharp
  --draft PLACE        a smaller model with the same tokenizer that guesses tokens; answers are the same, and come sooner
                       where it guesses well
  --lora PLACE[=SCALE] a low-rank adapter: a GGUF file or a folder of PEFT; may be given several times
  --allow-host NAME    answers requests to this name, besides those of this machine (localhost, 127.0.0.1)
  --allow-origin URL   lets pages of this origin use the server, besides those of this machine; * lets every page on
                       the web that runs in a browser here
  --max-connections N  connections at the same time; further ones are closed (default 512)
  --header-timeout S   seconds until the headers of a request are there (default 15); then it gets 408
  --body-timeout S     seconds until its body is there, too (default 60); then it gets 408
  --body-budget BYTES  most bytes of all requests that are not answered, beyond the first 64 KiB of each (default: twice
                       the switch maxBodyBytes, 64 MiB); requests beyond it get 503
  --write-timeout S    seconds in which a client must take bytes of its answer, at most 64 KiB at a time (default 30);
                       then it is closed and its generation ends
  --switches JSON      the endpoint's switches, such as '{"maxN":4}'
  --no-cache           do not keep downloads for the next start
  -h, --help           this text

Ctrl-C stops it. Exit status: 0 it was stopped, 1 the model or the port could not be used, 2 wrong usage.
`;

const FAILED = 1;
const WRONG_USAGE = 2;

/** A timer of Node cannot be longer: 24 days. */
const MAX_TIMEOUT_S = 2_000_000;

const OPTIONS = {
  id: { type: "string" },
  "memory-budget": { type: "string" },
  port: { type: "string", default: "8080" },
  host: { type: "string", default: "127.0.0.1" },
  "api-key": { type: "string" },
  "api-key-file": { type: "string" },
  device: { type: "string", default: "auto" },
  threads: { type: "string" },
  context: { type: "string" },
  "kv-format": { type: "string" },
  "kv-pool": { type: "string" },
  quantize: { type: "string" },
  projector: { type: "string", multiple: true, default: [] },
  draft: { type: "string" },
  lora: { type: "string", multiple: true, default: [] },
  "allow-host": { type: "string", multiple: true, default: [] },
  "allow-origin": { type: "string", multiple: true, default: [] },
  "max-connections": { type: "string" },
  "header-timeout": { type: "string" },
  "body-timeout": { type: "string" },
  "body-budget": { type: "string" },
  "write-timeout": { type: "string" },
  switches: { type: "string", default: "{}" },
  "no-cache": { type: "boolean", default: false },
  help: { type: "boolean", short: "h" },
};

/** Runs the command until it is interrupted; returns the exit status. */
export async function serve(args) {
  let request;
  try {
    request = requestOf(args);
  } catch (error) {
    process.stderr.write(`inpage serve: ${error.message}\n\n${USAGE}`);
    return WRONG_USAGE;
  }
  if (request.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  try {
    await run(request);
    return 0;
  } catch (error) {
    process.stderr.write(`inpage serve: ${error.message}\n`);
    return FAILED;
  }
}

/** @throws Error naming the wrong argument */
function requestOf(args) {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  if (values.help) return { help: true };
  const access = new Access();
  for (const host of values["allow-host"]) access.allowHost(host);
  for (const origin of values["allow-origin"]) access.allowOrigin(origin);
  const positive = (name) => wholeNumber(name, values[name], 1);
  const load = {
    contextTokens: positive("context"),
    kvFormat: oneOf("kv-format", values["kv-format"], KV_FORMATS),
    kvPoolTokens: positive("kv-pool"),
    quantize: values.quantize,
  };
  const switches = switchesOf(values);
  const served = modelsOf(positionals, values);
  return {
    host: values.host,
    port: wholeNumber("port", values.port, 0, 65_535),
    access,
    door: {
      apiKey: switches.apiKey ?? undefined,
      allowOrigin: switches.cors?.allowOrigin,
      maxBodyBytes: switches.maxBodyBytes ?? undefined,
      ...limitsIn(values),
    },
    engine: {
      ...served,
      // The model of a server is loaded from the start; those of several begin with a request, which waits.
      endpoint: { ...(!served.models && { whenModelNotReady: "error" }), ...switches },
      hub: hubOf(process.env),
      lora: values.lora.map(adapterAt),
      device: oneOf("device", values.device, ["auto", "cpu", "webgpu"]),
      threads: positive("threads"),
      load: Object.fromEntries(Object.entries(load).filter(([, value]) => value !== undefined)),
    },
  };
}

/** The limits of clients; undefined where no option sets one. */
function limitsIn(values) {
  const timeoutMs = (name) => {
    const seconds = wholeNumber(name, values[name], 1, MAX_TIMEOUT_S);
    return seconds === undefined ? undefined : 1000 * seconds;
  };
  return {
    maxConnections: wholeNumber("max-connections", values["max-connections"], 1),
    headerTimeoutMs: timeoutMs("header-timeout"),
    bodyTimeoutMs: timeoutMs("body-timeout"),
    bodyBudgetBytes: wholeNumber("body-budget", values["body-budget"], 1),
    writeTimeoutMs: timeoutMs("write-timeout"),
  };
}

/** The match of `NAME=PLACE`; null for a place alone. */
const withName = (text) => /^([^=:/\\]+)=(.+)$/.exec(text);

/** One model, or several with names. */
function modelsOf(positionals, values) {
  const modelAt = (place) => ({
    ...(remoteModel(place) ?? { url: place }),
    cache: !values["no-cache"],
  });
  const memoryBudgetBytes = wholeNumber("memory-budget", values["memory-budget"], 1);
  const budget = memoryBudgetBytes !== undefined && { memoryBudgetBytes };
  const named = positionals.map(withName);
  if (!named.some((it) => it !== null)) {
    if (positionals.length > 1) {
      throw new Error(`several models need names: NAME=${positionals[0]} NAME=${positionals[1]}`);
    }
    const [place = "embedded"] = positionals;
    const [projector, ...further] = values.projector;
    if (further.length > 0) throw new Error("--projector is given twice");
    if (projector !== undefined && positionals.length === 0) {
      throw new Error("--projector needs the model that it belongs to");
    }
    return {
      model: { ...modelAt(place), ...(values.id && { id: values.id }) },
      ...(projector !== undefined && { projector: modelAt(projector) }),
      ...(values.draft !== undefined && { draftModel: modelAt(values.draft) }),
      ...budget,
    };
  }
  if (values.id !== undefined) throw new Error("--id is for one model: the others have names");
  if (values.lora.length > 0) throw new Error("--lora is for one model without a name");
  if (values.draft !== undefined) throw new Error("--draft is for one model without a name");
  const models = {};
  for (const [index, match] of named.entries()) {
    if (match === null) throw new Error(`${positionals[index]} has no name: NAME=MODEL`);
    const [, name, place] = match;
    if (Object.hasOwn(models, name)) throw new Error(`the name ${name} is given twice`);
    models[name] = modelAt(place);
  }
  for (const given of values.projector) {
    const [, name, place] = withName(given) ?? [];
    if (name === undefined) throw new Error(`--projector ${given} has no name: NAME=PLACE`);
    if (!Object.hasOwn(models, name)) throw new Error(`--projector: no model has the name ${name}`);
    if ("projector" in models[name]) throw new Error(`--projector is given twice for ${name}`);
    models[name] = { model: models[name], projector: modelAt(place) };
  }
  return { models, ...budget };
}

function switchesOf(values) {
  let switches;
  try {
    switches = JSON.parse(values.switches);
  } catch (error) {
    throw new Error(`--switches: ${error.message}`);
  }
  if (typeof switches !== "object" || switches === null || Array.isArray(switches)) {
    throw new Error("--switches takes a JSON object");
  }
  const warn = (message) => process.stderr.write(`inpage serve: ${message}\n`);
  const environment = switches.apiKey ? {} : process.env;
  const apiKey = apiKeyOf(values, environment, warn);
  return apiKey === undefined ? switches : { ...switches, apiKey };
}

function wholeNumber(name, text, least, most = Number.MAX_SAFE_INTEGER) {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (/^\d{1,15}$/.test(text) && number >= least && number <= most) return number;
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `up to ${most}`;
  throw new Error(`--${name} takes a whole number ${range}, not ${text}`);
}

function oneOf(name, text, known) {
  if (text === undefined || known.includes(text)) return text;
  throw new Error(`--${name} is ${known.join(", ")}, not ${text}`);
}

/** `PLACE` or `PLACE=SCALE`. */
function adapterAt(text) {
  const [, place, scale] = /^(.+?)(?:=([^=/\\]*))?$/.exec(text) ?? [];
  if (place === undefined) throw new Error("--lora takes PLACE or PLACE=SCALE");
  if (scale === undefined) return { url: place };
  if (scale === "" || !Number.isFinite(Number(scale))) {
    throw new Error(`--lora: the scale is a number, not ${scale}`);
  }
  return { url: place, scale: Number(scale) };
}

async function run({ host, port, access, door, engine: options }) {
  let isInterrupted = false;
  const interrupted = new Promise((resolve) => {
    const stop = () => {
      isInterrupted = true;
      resolve();
    };
    // A second signal ends the program at once.
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, stop);
  });
  // The endpoint answers 503 until the model is loaded. The port is bound first, so that a port in use fails before a
  // load that may take minutes.
  const engine = await createEngine({
    ...options,
    ...{ background: true, onProgress: progressLine() },
  });
  engine.ready.catch(() => {});
  const server = serverOf(engine, access, door);
  try {
    await listen(server, port, host);
    await Promise.race([engine.ready, interrupted]);
    if (!isInterrupted)
      await announce(engine, server, options.models && Object.keys(options.models));
    await interrupted;
  } finally {
    server.close();
    server.closeAllConnections();
    await engine.dispose();
  }
}

async function listen(server, port, host) {
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (error) {
    throw new Error(
      `port ${port}: ${error.message}; choose another with --port (0 takes any free one)`,
    );
  }
}

async function loaded(engine) {
  const { model, adapter, threads, kvFormat, projector } = await engine.info();
  const on = threads > 0 ? `${adapter}, ${threads} thread${threads === 1 ? "" : "s"}` : adapter;
  const sees = projector ? `, images through ${projector.kind}` : "";
  return `${model} on ${on}, KV cache as ${kvFormat}${sees}`;
}

/** `names` are those of several models. */
async function announce(engine, server, names) {
  process.stderr.write(
    `${names ? `${names.join(", ")}, loaded on request` : await loaded(engine)}\n`,
  );
  const { address, family, port } = server.address();
  const origin = `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
  process.stdout.write(`listening on ${origin}\n`);
  if (!process.stderr.isTTY) return;
  const body = '{"model":"default","prompt":"Once upon a time","stream":true}';
  process.stderr.write(
    `try it:  curl ${origin}${engine.basePaths[0]}/completions -H 'content-type: application/json' -d '${body}'\nCtrl-C stops.\n`,
  );
}
