//! `npm run conformance`: runs the cases of tests/conformance against real models: one that generates text, one that makes
//! embeddings, one that reranks and one that sees, through the native server or a page in a browser. Prints a line per case and a last line
//! "N passed, N failed". The cases are in tests/conformance/cases.

import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { isProgram, main, Remediable, root } from "./process.mjs";
import { provideNpmPackages } from "./setup/npm.mjs";
import { requireRust } from "./setup/rust.mjs";
import { provideVulkan } from "./setup/vulkan.mjs";
import { requireNode } from "./setup.mjs";

const USAGE = `npm run conformance [-- options]   runs every case of tests/conformance
    --door native|page|sw  a native server (default), engine.fetch in a browser, the service worker in a browser
    --browser NAME         chromium (default) or firefox
    --case 042             only this case; may be repeated, and may list several: 042,043
    --group ABC            only the cases of these groups, in capital letters
    --model FILE.gguf      the embedded model when left out
    --embedder FILE.gguf   makes embeddings, for group L; a small model with random weights when left out
    --reranker FILE.gguf   reranks, for group P; a small model with random weights when left out
    --seer FILE.gguf       sees, for group N; a small model with random weights when left out
    --projector FILE.gguf  the vision tower of the model that sees
    --device auto|gpu|cpu  where the model computes; gpu when left out, on a software adapter too
    --built                in a browser: do not build the package with hooks first
    --json                 one JSON document`;

const OPTIONS = {
  door: { type: "string", default: "native" },
  browser: { type: "string", default: "chromium" },
  case: { type: "string", multiple: true, default: [] },
  group: { type: "string" },
  model: { type: "string" },
  embedder: { type: "string" },
  reranker: { type: "string" },
  seer: { type: "string" },
  projector: { type: "string" },
  device: { type: "string", default: "gpu" },
  built: { type: "boolean" },
  json: { type: "boolean" },
  help: { type: "boolean" },
};
const DOORS = ["native", "page", "sw"];
const BROWSERS = ["chromium", "firefox"];
const DEVICES = ["auto", "gpu", "cpu"];
const EMBEDDED_MODEL = "www/models/tales.gguf";
const EMBEDDER = "tests/parity/embeddings/bert-cls-Q8_0.gguf";
const RERANKER = "tests/parity/rerankers/bert.gguf";
const SEER = "tests/parity/images/gemma3.gguf";
const PROJECTOR = "tests/parity/images/gemma3.mmproj.gguf";

const wrong = (message) => Object.assign(new Remediable(message, USAGE), { exitStatus: 2 });

function parse(args) {
  let values;
  try {
    values = parseArgs({ args, options: OPTIONS, strict: true }).values;
  } catch (error) {
    throw wrong(error.message);
  }
  if (!DOORS.includes(values.door)) throw wrong(`--door is native, page or sw, not ${values.door}`);
  if (!BROWSERS.includes(values.browser)) {
    throw wrong(`--browser is chromium or firefox, not ${values.browser}`);
  }
  if (!DEVICES.includes(values.device)) {
    throw wrong(`--device is auto, gpu or cpu, not ${values.device}`);
  }
  return values;
}

/** The model's file. Relative names start at the user's working directory. */
function modelFile(option, name) {
  const file = [process.env.INIT_CWD, process.cwd()]
    .filter(Boolean)
    .map((folder) => resolve(folder, name))
    .find((path) => existsSync(path) && statSync(path).isFile());
  if (!file) throw new Remediable(`there is no model file ${name}`, `${option} takes a GGUF file.`);
  return file;
}

/** The requested cases that the door supports; `letters` are groups. */
function choose({ cases, groups }, wanted, letters, door) {
  const ids = wanted.flatMap((list) => list.split(",")).map((id) => id.padStart(3, "0"));
  for (const id of ids) {
    const found = cases.find((entry) => entry.id === id);
    if (!found) throw wrong(`there is no case ${id}`);
    if (!found.doors.includes(door)) {
      throw wrong(`case ${id} is for ${found.doors.join(" and ")}, not for the door ${door}`);
    }
  }
  const unknown = letters && [...letters].find((letter) => !(letter in groups));
  if (unknown) throw wrong(`there is no group ${unknown}`);
  const grouped = letters ? [...letters].flatMap((letter) => groups[letter]) : cases;
  const known = grouped.filter(({ doors }) => doors.includes(door));
  return ids.length > 0 ? known.filter(({ id }) => ids.includes(id)) : known;
}

/** Runs cases and returns their results; `onResult` gets each as soon as it is there. */
async function runDoor({ door, browser, built, chosen, model, projector, device, onResult }) {
  if (door !== "native") {
    const { buildPackage, runInBrowser } = await import("../tests/conformance/browser.mjs");
    if (!built) await buildPackage();
    const ids = chosen.map(({ id }) => id);
    await runInBrowser({ browser, door, device, ids, model, projector, onResult });
    return;
  }
  await requireRust();
  const { buildServer, nativeDoor, startServer } = await import("../tests/conformance/native.mjs");
  const { runCases } = await import("../tests/conformance/run.mjs");
  const env = device === "cpu" ? {} : await provideVulkan();
  const server = await startServer(await buildServer(), { model, projector, device, env });
  try {
    for await (const result of runCases(chosen, nativeDoor(server.origin))) onResult(result);
  } finally {
    await server.close();
  }
}

function line({ id, title, ok, reason, ms }) {
  const seconds = `${(ms / 1000).toFixed(1)} s`;
  return ok ? `ok ${id} ${title} (${seconds})` : `not ok ${id} ${title} (${seconds}): ${reason}`;
}

if (isProgram(import.meta.url)) {
  await main(async (args) => {
    const { door, browser, built, case: wanted, group, device, json, help, ...files } = parse(args);
    if (help) {
      process.stdout.write(`${USAGE}\n`);
      return 0;
    }
    requireNode();
    const model = modelFile("--model", files.model ?? resolve(root, EMBEDDED_MODEL));
    const embedder = modelFile("--embedder", files.embedder ?? resolve(root, EMBEDDER));
    const reranker = modelFile("--reranker", files.reranker ?? resolve(root, RERANKER));
    await provideNpmPackages();
    const known = await import("../tests/conformance/cases/index.mjs");
    const chosen = choose(known, wanted, group, door);
    const results = [];
    const onResult = (result) => {
      results.push(result);
      if (!json) process.stdout.write(`${line(result)}\n`);
    };
    const seer = modelFile("--seer", files.seer ?? resolve(root, SEER));
    const projector = modelFile("--projector", files.projector ?? resolve(root, PROJECTOR));
    for (const [purpose, loaded] of Object.entries({
      text: { model },
      embeds: { model: embedder },
      ranks: { model: reranker },
      sees: { model: seer, projector },
    })) {
      const some = chosen.filter((entry) => (entry.purpose ?? "text") === purpose);
      if (some.length === 0) continue;
      await runDoor({ door, browser, built, chosen: some, ...loaded, device, onResult });
    }
    const failed = results.filter(({ ok }) => !ok).length;
    const passed = results.length - failed;
    const report = { door, model, embedder, reranker, seer, passed, failed, results };
    if (json) process.stdout.write(`${JSON.stringify(report)}\n`);
    else process.stdout.write(`${passed} passed, ${failed} failed\n`);
    // Missing results mean that the run has not passed.
    return failed === 0 && results.length === chosen.length ? 0 : 1;
  });
}
