//! Each app of the packed `inpage create`, compiled against the package, built with Vite and driven in Chromium with small models.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { build } from "vite";
import { launchChromium } from "../../scripts/chromium.mjs";
import { root } from "../../scripts/process.mjs";
import { serve } from "../../scripts/server.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { greedy } from "./greedy_model.mjs";
import { pack, run, unpack } from "./packed.mjs";

const LIMIT_MS = 60_000;

let folder;
/** A model of images whose answers are never empty. */
let model;
let browser;
before(async () => {
  folder = temporaryFolder("inpage-templates-");
  unpack(join(folder, pack(folder).filename), folder);
  model = join(folder, "greedy.gguf");
  writeFileSync(model, greedy(readFileSync(join(root, "tests/parity/images/idefics3.gguf"))));
  browser = await launchChromium();
});
after(() => browser?.close());

/** The app that the command of the packed package writes, built. */
async function built(template) {
  const app = join(folder, template);
  if (existsSync(join(app, "dist"))) return join(app, "dist/");
  const command = join(folder, "node_modules/inpage/www/bin/inpage.mjs");
  run(process.execPath, [command, "create", app, "--template", template, "--no-install"], folder);
  mkdirSync(join(app, "node_modules"));
  symlinkSync(join(folder, "node_modules/inpage"), join(app, "node_modules/inpage"), "junction");
  run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", app], root);
  await build({ root: app, logLevel: "warn" });
  return join(app, "dist/");
}

/** Opens the app with these files at the root of the site, and runs `use` in its page. */
async function visit(template, models, use) {
  const mounts = { "/": await built(template) };
  const query = new URLSearchParams();
  for (const [name, file] of Object.entries(models)) {
    mounts[`/${name}.gguf`] = resolve(root, file);
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

test("the texts of the small model are written", async () => {
  await visit("completion", {}, async (page) => {
    await page.click("#generate");
    await page.waitForFunction(() => document.getElementById("state").textContent === "Done.");
    assert.match(await page.locator("#text").textContent(), /[a-z]/);
  });
});

test("the chat answers, and says why it cannot", async () => {
  await visit("chat", { model }, async (page) => {
    await page.fill("#message", "Hello");
    await page.click("#send");
    const answer = page.locator("#messages li").nth(1);
    await answer.filter({ hasText: /./s }).waitFor();
    await page.click("#stop", { timeout: 2_000 }).catch(() => {});
    await page.waitForSelector("#send:enabled");
    assert.match(await page.locator("#state").textContent(), /^(Stopped\.)?$/);
    assert.ok((await answer.textContent()).length > 0);
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
  const models = { model, projector: "tests/parity/images/idefics3.mmproj.gguf" };
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
