//! The package as users get it: packed, and installed, bundled and used in the app that `inpage create` writes (`examples/vite`).

import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { launchChromium } from "../../scripts/chromium.mjs";
import { root } from "../../scripts/process.mjs";
import { serve } from "../../scripts/server.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { npm, pack, run } from "./packed.mjs";

let folder;
let packed;

before(() => {
  folder = temporaryFolder("inpage-vite-");
  packed = pack(folder);
});

test("the package has every file that package.json names, and no others", () => {
  const files = packed.files.map(({ path }) => path);
  const stray = files.filter(
    (path) =>
      !/^(LICENSE|examples\/vite\/(index\.html|package\.json|tsconfig\.json|vite\.config\.js|(templates\/\w+\/)?(index\.html|src\/main\.ts))|README\.md|package\.json|www\/bin\/[^/]+\.mjs|www\/dist\/[^.].*|www\/models\/[^/]+\.gguf)$/.test(
        path,
      ),
  );
  assert.deepEqual(stray, []);
  const description = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const targets = Object.values(description.exports)
    .flatMap((target) => (typeof target === "string" ? [target] : Object.values(target)))
    .filter((target) => !target.includes("*"))
    .map((target) => target.slice("./".length));
  for (const target of [
    ...targets,
    description.bin.inpage,
    "LICENSE",
    "README.md",
    "www/models/tales.gguf",
    "www/dist/index.js.br",
    "www/dist/wasm/inpage_bg.wasm.gz",
  ]) {
    assert.ok(files.includes(target), `${target} is not in the package`);
  }
});

const NODE_PROGRAM = `
import { createEngine } from "inpage";
const engine = await createEngine();
const { device } = await engine.info();
const { choices } = await engine.completions.create({ model: "default", prompt: "Once", max_tokens: 4 });
await engine.dispose();
console.log(JSON.stringify({ device, isText: typeof choices[0].text === "string" }));
`;

/** The app that `inpage create` writes, whose only dependency is the packed package. Vite and tsc are those of the root. */
function createApp() {
  const app = join(folder, "My App");
  const archive = join(folder, packed.filename);
  const npx = ["--yes", "--package", archive, "inpage", "create", app, "--no-install"];
  run("npx", [...npx, "--package", archive], folder);
  const description = JSON.parse(readFileSync(join(app, "package.json"), "utf8"));
  assert.deepEqual(description.dependencies, { inpage: `file:${archive}` });
  assert.deepEqual([description.name, description.private], ["my-app", true]);
  assert.deepEqual(Object.keys(description.devDependencies), ["typescript", "vite"]);
  delete description.devDependencies;
  writeFileSync(join(app, "package.json"), JSON.stringify(description));
  npm(["install", "--ignore-scripts", "--no-audit", "--no-fund"], app);
  return app;
}

test("the app of `inpage create` installs it, runs its command and Node, compiles against its types, builds and runs", async () => {
  const app = createApp();
  const model = "node_modules/inpage/www/models/tales.gguf";
  assert.match(run("npx", ["--no", "inpage", "inspect", model], app), /^It runs /m);
  run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", app], root);

  writeFileSync(join(app, "program.mjs"), NODE_PROGRAM);
  const answer = JSON.parse(run(process.execPath, ["program.mjs"], app));
  assert.deepEqual(answer, { device: "cpu", isText: true });
  assert.match(run("npx", ["--no", "inpage", "serve", "--help"], app), /--allow-origin/);

  const vite = await import("vite");
  await vite.build({ root: app, logLevel: "warn" });
  const scripts = readdirSync(join(app, "dist/assets")).filter((name) => name.endsWith(".js"));
  assert.ok(scripts.length > 0);
  for (const name of scripts) {
    const text = readFileSync(join(app, "dist/assets", name), "utf8");
    assert.doesNotMatch(text, /["'`]node:|worker_threads/, name);
  }

  for (const isolated of [true, false]) await visit(join(app, "dist/"), isolated);
});

/** Opens the built app, in a page that is cross-origin isolated or not. */
async function visit(folder, isolated) {
  const server = await serve({ mounts: { "/": folder }, isolated });
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    const faults = [];
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    await page.goto(server.origin);
    const state = (pattern) =>
      page
        .locator("#state", { hasText: pattern })
        .waitFor({ timeout: 180_000 })
        .catch(async (error) => {
          const seen = await page.locator("#state").textContent();
          assert.fail(`${error.message}\nthe page says "${seen}"\n${faults.join("\n")}`);
        });
    await state(/^Ready on /);
    const ready = await page.locator("#state").textContent();
    const processors = await page.evaluate(() => navigator.hardwareConcurrency);
    // The GPU of the machine is used if there is one.
    if (/CPU/.test(ready))
      assert.match(ready, new RegExp(`threads: ${Math.min(processors, 8)}\\.`));
    await page.click("#generate");
    await state(/^Done\.$/);
    assert.match(await page.locator("#text").textContent(), /[a-z]/);

    await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
    const models = await page.evaluate(async () => (await fetch("/v1/models")).json());
    assert.deepEqual(
      models.data.map(({ id }) => id),
      ["tales"],
    );
    assert.deepEqual(faults, []);
  } finally {
    await browser.close();
    await server.close();
  }
}
