//! `npm run docs`: the site has no broken links, its playground writes a completion in Chromium, and the code that it shows does
//! what was done.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { launchChromium } from "../../scripts/chromium.mjs";
import { buildSite, installGenerators, site } from "../../scripts/docs.mjs";
import { brokenLinks } from "../../scripts/docs/links.mjs";
import { relink } from "../../scripts/docs/pages.mjs";
import { root } from "../../scripts/process.mjs";
import { serve } from "../../scripts/server.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { startServe } from "../node/serve_process.mjs";

const BASE = "/docs/";
const LOAD_LIMIT_MS = 120_000;
const isInstalled = await installGenerators();
const skip = !isInstalled && "skipped: npm could not install the generators";

let browser;
let server;

before(async () => {
  if (skip) return;
  await buildSite({ base: BASE });
  server = await serve({ mounts: { [BASE]: `${site}/` } });
  browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await server?.close();
});

test("links of documents lead to pages, and those to other files are text", () => {
  const pageOf = new Map([["docs/api.md", { page: "api", title: "The endpoint" }]]);
  const images = [];
  const addImage = (path) => {
    images.push(path);
    return "./image.png";
  };
  const text = [
    "[docs/api.md](docs/api.md) [`a` field](docs/api.md#fields) [source](src/lib.rs) [self](#here)",
    "[web](https://example.com/x) ![an image](docs/demo.png)",
    "```js\n[text](docs/api.md)\n```",
  ].join("\n");
  const expected = [
    "[The endpoint](./api) [`a` field](./api#fields) source [self](#here)",
    "[web](https://example.com/x) ![an image](./image.png)",
    "```js\n[text](docs/api.md)\n```",
  ].join("\n");
  assert.equal(relink(text, "README.md", pageOf, addImage), expected);
  assert.deepEqual(images, ["docs/demo.png"]);
});

test("broken links are found", () => {
  const folder = temporaryFolder("inpage-links-");
  mkdirSync(join(folder, "sub"));
  writeFileSync(
    join(folder, "index.html"),
    '<a id="top" href="/base/sub/page#one"></a><img src="x.png">',
  );
  const links = [
    "../index.html#top",
    "#one",
    "#two",
    "https://example.com",
    "/other/",
    "../sub/none",
  ];
  const anchors = links.map((link) => `<a href="${link}"></a>`).join("");
  writeFileSync(join(folder, "sub/page.html"), `<p id="one">${anchors}</p>`);
  assert.deepEqual(brokenLinks(folder, "/base/"), [
    "/base/index.html: x.png does not exist",
    "/base/sub/page.html: #two has no such anchor",
    "/base/sub/page.html: /other/ is outside of the site",
    "/base/sub/page.html: ../sub/none does not exist",
  ]);
});

/** Opens a page of the site; `faults` collects its errors. */
async function open(path, viewport) {
  const context = await browser.newContext({ viewport });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  await page.goto(`${server.origin}${BASE}${path}`);
  return { context, page, faults };
}

const run = promisify(execFile);
const node = async (program) =>
  (await run(process.execPath, ["--input-type=module", "--eval", program], { cwd: root })).stdout;

test("the playground writes a completion, and its code does the same", { skip }, async () => {
  const { context, page, faults } = await open("playground.html", { width: 1280, height: 900 });
  const generate = async () => {
    await page.click("#generate:enabled");
    const done = "#text:not([data-finish='']), #failure";
    await page.locator(done).first().waitFor({ timeout: LOAD_LIMIT_MS });
    assert.equal(await page.locator("#failure").count(), 0, faults.join("\n"));
    await page.locator("#generate:enabled").waitFor();
    return (await page.locator(".token").allTextContents()).join("");
  };
  await page.fill("#prompt", 'Tim\'s "old" dog');
  await page.fill("#max-tokens", "24");
  await page.fill("#seed", "7");
  const text = await generate();
  assert.match(text, /[a-z]{3}/);
  assert.equal(await page.locator(".token").count(), 24);

  await page.locator(".token").nth(5).click();
  const rows = page.locator("#alternatives tbody tr");
  assert.ok((await rows.count()) >= 5);
  assert.equal(await page.locator("#alternatives tr.chosen").count(), 1);

  const code = async (name) => {
    await page.getByRole("tab", { name }).click();
    return page.locator("#program").textContent();
  };
  for (const name of ["engine.completions", "OpenAI SDK"]) {
    assert.equal(await node(await code(name)), `${text}\n`, name);
  }
  const shell = await code("curl");
  const { origin, stop } = await startServe();
  try {
    const command = shell.replace("http://127.0.0.1:8080", origin).replace("curl ", "curl -sS ");
    const { stdout } = await run("sh", ["-c", command]);
    assert.equal(JSON.parse(stdout).choices[0].text, text);
  } finally {
    await stop();
  }

  await page.fill("#max-tokens", "300");
  await page.selectOption("#constraint", "lark");
  assert.match(await generate(), /^(- [A-Z][a-z]{2,8} (runs|sleeps|sings)\.\n){3}$/);
  await page.fill("#constraint-text", "start: nothing");
  await page.click("#generate:enabled");
  await page.locator("#failure", { hasText: /nothing/ }).waitFor();
  await page.selectOption("#constraint", "schema");
  assert.ok(JSON.parse(await generate()).friends.length <= 2);
  await page.fill("#constraint-text", "{");
  await page.click("#generate:enabled");
  await page.locator("#failure", { hasText: /no JSON/ }).waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test("pages fit a phone, and have no errors", { skip }, async () => {
  for (const path of [
    "",
    "guide.html",
    "api.html",
    "playground.html",
    "reference/interfaces/EngineOptions.html",
  ]) {
    const { context, page, faults } = await open(path, { width: 390, height: 844 });
    await page.locator("h1, h2").first().waitFor();
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.equal(width, 390, path);
    assert.deepEqual(faults, [], path);
    await context.close();
  }
});
