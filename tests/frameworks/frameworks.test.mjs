//! Apps of Next, SvelteKit and Astro with the packed package and the files of docs/bundlers.md, built, served by the framework and opened
//! in Chromium. Not part of `npm test`: the frameworks take 500 MB and minutes. Their lock files name every package, so a release of one
//! changes nothing here; `npm install --package-lock-only` in the folder of an app takes newer ones.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { basename, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { launchChromium } from "../../scripts/chromium.mjs";
import { root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { createEngine } from "../../www/dist/node/index.js";
import { recipe } from "../package/bundlers.mjs";
import { npm, pack, unpack } from "../package/packed.mjs";

const PAGE_LIMIT_MS = 60_000;
const WASM_MODULES = ["inpage_bg", "cpu_kernels", "cpu_kernels_simd"].map(
  (name) => `dist/wasm/${name}.wasm`,
);
const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1", ASTRO_TELEMETRY_DISABLED: "1" };

/** What all apps ask for, so that they write the same story. */
const REQUEST = { model: "default", prompt: "Once", max_tokens: 8, temperature: 0 };

/** `text` with `part` replaced, which it must have. */
function changed(text, part, replacement) {
  assert.ok(text.includes(part), `${part} is not in:\n${text}`);
  return text.replace(part, replacement);
}

/** The files of docs/bundlers.md for the app of each framework. */
const recipes = {
  next: () => ({
    "next.config.mjs": recipe("next.config.mjs"),
    "app/page.js": changed(
      recipe("app/page.js"),
      "max_tokens: 32",
      "max_tokens: 8, temperature: 0",
    ),
  }),
  sveltekit: () => ({ "vite.config.js": recipe("vite.config.js of SvelteKit") }),
  astro: () => ({ "astro.config.mjs": recipe("astro.config.mjs") }),
};

let archive;
let browser;
/** The text of the model, by the package in this process. */
let story;

before(async () => {
  const folder = temporaryFolder("inpage-packed-");
  archive = join(folder, pack(folder).filename);
  browser = await launchChromium();
  const engine = await createEngine();
  story = (await engine.completions.create(REQUEST)).choices[0].text;
  await engine.dispose();
});
after(() => browser?.close());

/** The app of a framework, built. */
function build(name) {
  const app = join(temporaryFolder("inpage-framework-"), name);
  cpSync(join(root, "tests/frameworks", name), app, { recursive: true });
  npm(["ci", "--no-audit", "--no-fund"], app);
  unpack(archive, app);
  for (const [file, text] of Object.entries(recipes[name]())) writeFileSync(join(app, file), text);
  if (name === "next") {
    for (const file of ["dist/worker.js", "models/tales.gguf", ...WASM_MODULES]) {
      const folder = file.includes("wasm") ? "public/inpage/wasm" : "public/inpage";
      cpSync(join(app, "node_modules/inpage/www", file), join(app, folder, basename(file)));
    }
  }
  Object.assign(process.env, env);
  npm(["run", "build"], app);
  return app;
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Serves the app by a program of its framework; the origin, and a function that stops it. */
async function start(app, program, args) {
  const port = await freePort();
  const file = join(app, "node_modules/.bin", program);
  const child = spawn(file, [...args, "--port", `${port}`], { cwd: app, stdio: "ignore", env });
  const origin = `http://localhost:${port}`;
  for (let tries = 0; ; tries += 1) {
    const answer = await fetch(origin).catch(() => undefined);
    if (answer?.ok) return { origin, stop: () => child.kill() };
    if (tries > 100) throw new Error(`${program} does not answer at ${origin}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Opens the page: it writes the story, and nothing that it asks for is missing. */
async function checkPage(origin, isIsolated) {
  const page = await browser.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("response", (answer) => {
    if (answer.status() >= 400) problems.push(`${answer.status()} ${answer.url()}`);
  });
  await page.goto(origin);
  const text = await page.waitForFunction(
    () => document.querySelector("p")?.textContent,
    undefined,
    { timeout: PAGE_LIMIT_MS },
  );
  assert.equal(await text.jsonValue(), story);
  assert.equal(await page.evaluate(() => crossOriginIsolated), isIsolated);
  assert.deepEqual(problems, []);
  await page.close();
}

for (const [name, program, args, isIsolated] of [
  ["next", "next", ["start"], false],
  ["sveltekit", "vite", ["preview"], true],
  ["astro", "astro", ["preview"], true],
]) {
  describe(name, () => {
    let app;
    let served;
    before(async () => {
      app = build(name);
      served = await start(app, program, args);
    });
    after(() => served?.stop());

    test("a page writes a story", () => checkPage(served.origin, isIsolated));

    test("a route of the server does", { skip: name !== "next" }, async () => {
      const answer = await fetch(`${served.origin}/api/story`);
      assert.deepEqual(await answer.json(), { text: story });
    });

    test("a page of astro dev does, with the headers of the plugin", {
      skip: name !== "astro",
    }, async () => {
      const file = "astro.config.mjs";
      const config = changed(recipe(file), "server: { headers }, ", "");
      writeFileSync(join(app, file), config);
      const development = await start(app, "astro", ["dev"]);
      try {
        await checkPage(development.origin, true);
      } finally {
        development.stop();
      }
    });
  });
}
