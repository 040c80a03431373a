//! The package as a stranger gets it: packed, installed into a fresh Vite app, bundled, and asked for a completion.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { launchChromium } from "../../scripts/chromium.mjs";
import { root } from "../../scripts/process.mjs";
import { serve } from "../../scripts/server.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";

const MAIN = `
import { createEngine } from "inpage";

const engine = await createEngine();
const completion = await engine.completions.create({ model: "default", prompt: "Once upon a time", max_tokens: 8, temperature: 0 });
window.completion = completion;
await engine.dispose();
`;

const run = (program, args, cwd) =>
  execFileSync(program, args, { cwd, encoding: "utf8", shell: process.platform === "win32" });
const npm = (args, cwd) => run("npm", [...args, "--loglevel=error"], cwd);

let folder;
let packed;

before(() => {
  folder = temporaryFolder("inpage-vite-");
  packed = JSON.parse(npm(["pack", "--json", "--pack-destination", folder], root))[0];
});

test("the package has what its description names, and nothing else", () => {
  const files = packed.files.map(({ path }) => path);
  const stray = files.filter(
    (path) =>
      !/^(LICENSE|README\.md|package\.json|www\/bin\/[^/]+\.mjs|www\/dist\/[^.].*|www\/models\/[^/]+\.gguf)$/.test(
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
  ]) {
    assert.ok(files.includes(target), `${target} is not in the package`);
  }
});

test("a fresh Vite app installs it, runs its command, builds with it and gets a completion", async () => {
  const app = join(folder, "app");
  mkdirSync(app);
  writeFileSync(
    join(app, "package.json"),
    JSON.stringify({ name: "app", private: true, type: "module" }),
  );
  writeFileSync(
    join(app, "index.html"),
    '<!doctype html><script type="module" src="/main.js"></script>',
  );
  writeFileSync(join(app, "main.js"), MAIN);
  npm(
    ["install", "--ignore-scripts", "--no-audit", "--no-fund", join(folder, packed.filename)],
    app,
  );

  const model = "node_modules/inpage/www/models/tales.gguf";
  assert.match(run("npx", ["--no", "inpage", "inspect", model], app), /^It runs /m);

  const vite = await import("vite");
  // Top-level await of the app's module; the rest is Vite's defaults.
  await vite.build({ root: app, logLevel: "warn", build: { target: "es2022" } });

  const server = await serve({ mounts: { "/": join(app, "dist/") } });
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    const faults = [];
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    await page.goto(server.origin);
    await page
      .waitForFunction(() => window.completion !== undefined, undefined, { timeout: 180_000 })
      .catch((error) => assert.fail(`${error.message}\n${faults.join("\n")}`));
    const completion = await page.evaluate(() => window.completion);
    assert.equal(completion.object, "text_completion");
    assert.equal(completion.usage.completion_tokens, 8);
    assert.match(completion.choices[0].text, /[a-z]/);
  } finally {
    await browser.close();
    await server.close();
  }
});
