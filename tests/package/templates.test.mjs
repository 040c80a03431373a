//! The other apps of `inpage create` (`examples/vite/templates`), compiled, built with Vite and driven in Chromium with small models.

import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { build } from "vite";
import { launchChromium } from "../../scripts/chromium.mjs";
import { root } from "../../scripts/process.mjs";
import { serve } from "../../scripts/server.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { run } from "./packed.mjs";

const EXAMPLE = join(root, "examples/vite");
const LIMIT_MS = 60_000;

let folder;
let browser;
before(async () => {
  folder = temporaryFolder("inpage-templates-");
  browser = await launchChromium();
});
after(() => browser?.close());

/** The app of a template, as `inpage create` writes it, built; the package is that of the repository. */
async function built(template) {
  const app = join(folder, template);
  if (existsSync(join(app, "dist"))) return join(app, "dist/");
  mkdirSync(join(app, "node_modules"), { recursive: true });
  for (const file of ["tsconfig.json", "vite.config.js", "package.json"]) {
    cpSync(join(EXAMPLE, file), join(app, file));
  }
  cpSync(join(EXAMPLE, "templates", template), app, { recursive: true });
  symlinkSync(root, join(app, "node_modules/inpage"), "dir");
  run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", app], root);
  await build({ root: app, logLevel: "warn" });
  return join(app, "dist/");
}

/** Opens the app with these files of `tests/parity` at the root, and runs `use` in its page. */
async function visit(template, models, use) {
  const mounts = { "/": await built(template) };
  const query = new URLSearchParams();
  for (const [name, file] of Object.entries(models)) {
    mounts[`/${name}.gguf`] = join(root, file);
    query.set(name, `./${name}.gguf`);
  }
  const server = await serve({ mounts, isolated: true });
  const page = await browser.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.setDefaultTimeout(LIMIT_MS);
  try {
    await page.goto(`${server.origin}/?${query}`);
    await use(page);
    assert.deepEqual(faults, []);
  } finally {
    await page.close();
    await server.close();
  }
}

test("the chat answers, and says why it cannot", async () => {
  const model = "tests/parity/images/idefics3.gguf";
  await visit("chat", { model }, async (page) => {
    await page.fill("#message", "Hello");
    await page.click("#send");
    await page.waitForFunction(() => document.querySelectorAll("#messages li").length === 2);
    await page.click("#stop", { timeout: 2_000 }).catch(() => {});
    await page.waitForSelector("#send:enabled");
    assert.match(await page.locator("#state").textContent(), /^(Stopped\.)?$/);
  });
  await visit("chat", { model: "tests/parity/embeddings/bert.gguf" }, async (page) => {
    await page.fill("#message", "Hello");
    await page.click("#send");
    await page.waitForSelector("#send:enabled");
    assert.match(await page.locator("#state").textContent(), /makes embeddings/);
  });
});

test("the search puts texts in order", async () => {
  await visit("search", { model: "tests/parity/embeddings/bert.gguf" }, async (page) => {
    await page.fill("#texts", "the cat\n\nthe dog is at the hill\n");
    await page.fill("#query", "the cat");
    await page.click("#search");
    await page.waitForFunction(() => document.querySelectorAll("#results li").length === 2);
    assert.match(await page.locator("#results li").first().textContent(), /^1\.000 the cat$/);
  });
});

test("a question about a picture is answered", async () => {
  const models = {
    model: "tests/parity/images/idefics3.gguf",
    projector: "tests/parity/images/idefics3.mmproj.gguf",
  };
  const picture = join(folder, "picture.png");
  // One red pixel.
  const png =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
  writeFileSync(picture, Buffer.from(png, "base64"));
  await visit("images", models, async (page) => {
    await page.setInputFiles("#picture", picture);
    await page.click("#ask");
    await page.waitForSelector("#ask:enabled");
    assert.equal(await page.locator("#state").textContent(), "Done.");
    assert.ok((await page.locator("#answer").textContent()).length > 0);
  });
});
