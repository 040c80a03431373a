//! Apps of Next, SvelteKit and Astro with the packed package, built as docs/bundlers.md says, served by the framework and opened in
//! Chromium. Not part of `npm test`: the frameworks take 500 MB and minutes. Their lock files name every package, so a release of one
//! changes nothing here; `npm install --package-lock-only` in the folder of an app takes newer ones.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { launchChromium } from "../../scripts/chromium.mjs";
import { root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { createEngine } from "../../www/dist/node/index.js";
import { npm, pack, unpack } from "../package/packed.mjs";

const PAGE_LIMIT_MS = 60_000;
const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1", ASTRO_TELEMETRY_DISABLED: "1" };

let archive;
let browser;
/** The text of the model, by the package in this process. */
let story;

before(async () => {
  const folder = temporaryFolder("inpage-packed-");
  archive = join(folder, pack(folder).filename);
  browser = await launchChromium();
  const engine = await createEngine();
  const body = { model: "default", prompt: "Once", max_tokens: 8, temperature: 0 };
  story = (await engine.completions.create(body)).choices[0].text;
  await engine.dispose();
});
after(() => browser?.close());

/** The app of a framework, built. */
function build(name) {
  const app = join(temporaryFolder("inpage-framework-"), name);
  cpSync(join(root, "tests/frameworks", name), app, { recursive: true });
  npm(["ci", "--no-audit", "--no-fund"], app);
  unpack(archive, app);
  if (name === "next") {
    const files = join(app, "node_modules/inpage/www");
    const place = join(app, "public/inpage");
    mkdirSync(place, { recursive: true });
    cpSync(join(files, "dist/worker.js"), join(place, "worker.js"));
    cpSync(join(files, "dist/wasm"), join(place, "wasm"), { recursive: true });
    cpSync(join(files, "models/tales.gguf"), join(place, "tales.gguf"));
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

/** Serves the app by its framework; the origin, and a function that stops it. */
async function preview(app, program, args) {
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

for (const [name, program, args, isIsolated] of [
  ["next", "next", ["start"], false],
  ["sveltekit", "vite", ["preview"], true],
  ["astro", "astro", ["preview"], true],
]) {
  describe(name, () => {
    let served;
    before(async () => {
      served = await preview(build(name), program, args);
    });
    after(() => served?.stop());

    test("a page writes a story", async () => {
      const page = await browser.newPage();
      const problems = [];
      page.on("pageerror", (error) => problems.push(error.message));
      page.on("response", (answer) => {
        if (answer.status() >= 400) problems.push(`${answer.status()} ${answer.url()}`);
      });
      await page.goto(served.origin);
      await page.waitForFunction(
        () => document.getElementById("story")?.textContent !== "",
        undefined,
        { timeout: PAGE_LIMIT_MS },
      );
      assert.equal(await page.locator("#story").textContent(), story);
      assert.equal(await page.evaluate(() => crossOriginIsolated), isIsolated);
      assert.deepEqual(problems, []);
      await page.close();
    });

    test("a route of the server does", { skip: name !== "next" }, async () => {
      const answer = await fetch(`${served.origin}/api/story`);
      assert.deepEqual(await answer.json(), { text: story });
    });
  });
}
