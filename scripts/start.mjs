//! `npm start`: sets up, builds, and serves the demo. With --prompt, it writes a completion to the terminal instead.

import { spawn } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { extname, resolve } from "node:path";
import { parseArgs } from "node:util";
import { build } from "./build.mjs";
import { main, Remediable, root, which } from "./process.mjs";
import { serve } from "./server.mjs";
import { setUpForBuild } from "./setup.mjs";

const USAGE = `npm start                                 serves the demo page
npm start -- --prompt TEXT [options]      writes a completion in headless Chromium; defaults are in parentheses
    --model FILE.gguf     a local file or an http(s) URL (the embedded model)
    --projector FILE.gguf the vision tower of a model that takes images, a local file or an http(s) URL
    --image FILE          an image, once per <image> in the prompt; a prompt without <image> begins with the images
    --device NAME         auto, webgpu or cpu (auto)
    --max-tokens N        at most N tokens (128)
    --temperature T  --top-p P  --top-k K  --min-p P  --seed S  --stop TEXT
    --json                only one JSON line on standard output
    --port N              port of the demo page (8017)
    --open                opens the demo page in the browser
    --no-build            uses what was built before
    --dev                 builds the wasm module faster, for development`;

const OPTIONS = {
  prompt: { type: "string" },
  model: { type: "string" },
  projector: { type: "string" },
  image: { type: "string", multiple: true },
  device: { type: "string", default: "auto" },
  "max-tokens": { type: "string" },
  temperature: { type: "string" },
  "top-p": { type: "string" },
  "top-k": { type: "string" },
  "min-p": { type: "string" },
  seed: { type: "string" },
  stop: { type: "string" },
  json: { type: "boolean" },
  port: { type: "string" },
  open: { type: "boolean" },
  "no-build": { type: "boolean" },
  dev: { type: "boolean" },
  help: { type: "boolean" },
};

const NUMBERS = ["max-tokens", "temperature", "top-p", "top-k", "min-p", "seed"];
/** A file that exists once everything is built. */
const BUILT = "www/dist/worker.js";
const EMBEDDED_MODEL = "www/models/tales.gguf";

function parse(args) {
  try {
    return parseArgs({ args, options: OPTIONS, strict: true }).values;
  } catch (error) {
    throw Object.assign(new Remediable(error.message, USAGE), { exitStatus: 2 });
  }
}

/** The request's fields: only those given, so that the endpoint's defaults apply. */
function requestOf(values) {
  const body = { prompt: values.prompt, max_tokens: 128 };
  for (const name of NUMBERS) {
    if (values[name] === undefined) continue;
    const number = Number(values[name]);
    if (values[name].trim() === "" || !Number.isFinite(number)) {
      throw Object.assign(
        new Remediable(`--${name} takes a number, not "${values[name]}"`, USAGE),
        { exitStatus: 2 },
      );
    }
    body[name.replaceAll("-", "_")] = number;
  }
  if (values.stop !== undefined) body.stop = values.stop;
  const { image: images = [] } = values;
  if (images.length > 0) {
    body.images = images.map(dataUrlOf);
    if (!values.prompt.includes("<image>")) {
      body.prompt = "<image>".repeat(images.length) + values.prompt;
    }
  }
  return body;
}

const IMAGE_TYPES = {
  ...{ ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg" },
  ...{ ".webp": "image/webp", ".gif": "image/gif", ".bmp": "image/bmp" },
};

function dataUrlOf(name) {
  const type = IMAGE_TYPES[extname(name).toLowerCase()];
  if (type === undefined) {
    const known = Object.keys(IMAGE_TYPES).join(", ");
    throw Object.assign(
      new Remediable(
        `--image ${name}: its name does not say which image it is`,
        `It ends with ${known}.`,
      ),
      { exitStatus: 2 },
    );
  }
  const file = localFile(name);
  if (!file) throw new Remediable(`there is no image ${name}`, "--image takes a local file.");
  return `data:${type};base64,${readFileSync(file, "base64")}`;
}

/** `{ file }`, `{ url }`, or undefined for the embedded model; checked before anything is built. */
function modelOf(values) {
  if (values.model === undefined) {
    if (existsSync(resolve(root, EMBEDDED_MODEL))) return undefined;
    throw new Remediable(
      `the embedded model ${EMBEDDED_MODEL} is missing`,
      "Name a model with --model FILE.gguf.",
    );
  }
  return placeOf("model", values.model);
}

/** Also refuses a projector without a model: the embedded one takes no images. */
function projectorOf(values) {
  if (values.projector === undefined) {
    if (values.image === undefined) return undefined;
    throw new Remediable(
      "--image needs a model that takes images",
      "Name it with --model and --projector.",
    );
  }
  if (values.model === undefined) {
    throw new Remediable("--projector needs a model", "Name it with --model FILE.gguf.");
  }
  return placeOf("projector", values.projector);
}

function placeOf(option, place) {
  if (/^https?:\/\//.test(place)) return { url: place };
  const file = localFile(place);
  if (!file)
    throw new Remediable(
      `there is no ${option} file ${place}`,
      `--${option} takes a GGUF file or an http(s) URL.`,
    );
  return { file };
}

/** npm runs scripts in the repository's folder; INIT_CWD is the user's working directory. */
function localFile(name) {
  return [process.env.INIT_CWD, process.cwd()]
    .filter(Boolean)
    .map((folder) => resolve(folder, name))
    .find((path) => existsSync(path) && statSync(path).isFile());
}

function openInBrowser(url) {
  const [program, ...args] = { darwin: ["open", url], win32: ["cmd", "/c", "start", "", url] }[
    process.platform
  ] ?? ["xdg-open", url];
  if (process.platform === "linux" && !which(program)) return;
  spawn(program, args, { stdio: "ignore", detached: true }).unref();
}

async function serveDemo({ port = "8017", open }) {
  const www = resolve(root, "www");
  const pages = {
    // Without an icon, browsers ask for /favicon.ico.
    "/": '<!doctype html><link rel="icon" href="data:,"><meta http-equiv="refresh" content="0; url=/demo/"><a href="/demo/">inpage</a>',
  };
  // The service worker is at the root of the origin, as on a real host.
  const mounts = { "/": `${www}/`, "/sw.js": resolve(www, "dist/sw.js") };
  const server = await serve({ mounts, pages, port: Number(port), isolated: true });
  const url = `${server.origin}/demo/`;
  process.stdout.write(`inpage demo: ${url}   (Ctrl-C stops it)\n`);
  if (
    open ||
    (process.stdout.isTTY &&
      (process.env.DISPLAY || process.env.WAYLAND_DISPLAY || process.platform !== "linux"))
  ) {
    openInBrowser(url);
  }
  await new Promise((end) => {
    process.once("SIGINT", end);
    process.once("SIGTERM", end);
  });
  await server.close();
}

await main(async (args) => {
  const values = parse(args);
  if (values.help) {
    process.stdout.write(`${USAGE}\n`);
    return 0;
  }
  const isDemo = values.prompt === undefined;
  const unused = ["model", "projector", "image"].find((name) => values[name] !== undefined);
  if (isDemo && unused !== undefined) {
    const problem = new Remediable(`--${unused} needs --prompt`, USAGE);
    throw Object.assign(problem, { exitStatus: 2 });
  }
  const model = isDemo ? undefined : modelOf(values);
  const projector = isDemo ? undefined : projectorOf(values);
  const request = isDemo ? undefined : requestOf(values);
  if (!values["no-build"]) await build(await setUpForBuild(), { dev: values.dev, shipped: false });
  else if (!existsSync(resolve(root, BUILT))) {
    throw new Remediable("nothing was built before", "Leave out --no-build.");
  }
  if (isDemo) return serveDemo(values);
  const { generate } = await import("./generate.mjs");
  return generate({ model, projector, device: values.device, request, json: values.json });
});
