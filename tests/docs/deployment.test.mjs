//! The content security policy and the manifest of docs/deployment.md, in Chromium with the built package.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { launchChromium } from "../../scripts/chromium.mjs";
import { root } from "../../scripts/process.mjs";
import { provideBrowser } from "../../scripts/setup/browser.mjs";
import { serve } from "../../scripts/server.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";

const page = readFileSync(join(root, "docs/deployment.md"), "utf8");
const block = (tag) => page.split(`\`\`\`${tag}\n`)[1].split("\n```")[0];
const policy = block("text csp");

const SCRIPT = `
import { createEngine } from "./www/dist/index.js";
const options = location.protocol === "http:" ? { isolatedFrame: { serviceWorkerUrl: "/www/dist/sw.js" } } : {};
try {
  const engine = await createEngine({ device: "cpu", threads: 2, ...options });
  const { isolation, isolationReason } = await engine.info();
  const { choices } = await engine.completions.create({ model: "default", prompt: "Once", max_tokens: 4 });
  window.result = { isolation, isolationReason, text: choices[0].text };
} catch (error) {
  window.result = { failure: error.message };
}
`;
const PAGE = '<!doctype html><title>inpage</title><script type="module" src="page.js"></script>';

/** The first 32 hexadecimal digits of the path's hash, as letters from `a`. */
const extensionId = (path) =>
  createHash("sha256")
    .update(path)
    .digest("hex")
    .slice(0, 32)
    .replace(/./g, (digit) => String.fromCharCode(97 + Number.parseInt(digit, 16)));

let folder;
let browser;

before(async () => {
  folder = temporaryFolder("inpage-deployment-");
  for (const part of ["www/dist", "www/models"]) {
    cpSync(join(root, part), join(folder, part), { recursive: true });
  }
  writeFileSync(join(folder, "page.js"), SCRIPT);
  writeFileSync(join(folder, "index.html"), PAGE);
  writeFileSync(join(folder, "manifest.json"), block("json manifest"));
  browser = await launchChromium();
});

after(() => browser?.close());

/** The report of the page on a completion; of the whole site all responses have the policy. */
async function visit(contentSecurityPolicy) {
  const headers = { "Content-Security-Policy": contentSecurityPolicy };
  const server = await serve({ mounts: { "/": `${folder}/` }, headers });
  const context = await browser.newContext();
  try {
    const tab = await context.newPage();
    const requested = new Set();
    context.on("request", (request) => requested.add(new URL(request.url()).pathname));
    await tab.goto(server.origin);
    await tab.waitForFunction(() => window.result !== undefined, null, { timeout: 120_000 });
    return { ...(await tab.evaluate(() => window.result)), requested: [...requested].sort() };
  } finally {
    await context.close();
    await server.close();
  }
}

test("the content security policy is enough, with threads", async () => {
  const { failure, isolation, text, isolationReason } = await visit(policy);
  assert.equal(failure, undefined);
  assert.match(text, /[a-z]/);
  assert.equal(isolation, "frame", isolationReason);
});

test("without 'wasm-unsafe-eval' the engine does not start", async () => {
  const { failure } = await visit(policy.replace(" 'wasm-unsafe-eval'", ""));
  assert.match(failure, /wasm-unsafe-eval|WebAssembly/);
});

test("without frame-src there are no threads", async () => {
  const { isolation, isolationReason, text, requested } = await visit(
    policy.replace("; frame-src 'self'", ""),
  );
  assert.equal(isolation, "none");
  assert.match(isolationReason, /frame-src/);
  assert.match(text, /[a-z]/);
  // Each script is one file: a module that is left out of a bundle would be one more.
  assert.deepEqual(
    requested.filter((path) => path.startsWith("/www/")),
    [
      "/www/dist/index.js",
      "/www/dist/sw.js",
      "/www/dist/wasm/cpu_kernels.wasm",
      "/www/dist/wasm/inpage_bg.wasm",
      "/www/dist/worker.js",
      "/www/models/tales.gguf",
    ],
  );
});

test("the engine runs in a page of an extension with the manifest", async () => {
  // Extensions are in the profile's own context only.
  const context = await chromium.launchPersistentContext(temporaryFolder("inpage-profile-"), {
    executablePath: await provideBrowser(),
    chromiumSandbox: process.getuid?.() !== 0,
    args: [`--disable-extensions-except=${folder}`, `--load-extension=${folder}`],
    ignoreDefaultArgs: ["--disable-extensions"],
  });
  try {
    const tab = await context.newPage();
    // The browser derives the id of an unpacked extension from its folder.
    await tab.goto(`chrome-extension://${extensionId(folder)}/index.html`);
    await tab.waitForFunction(() => window.result !== undefined, null, { timeout: 120_000 });
    const { failure, text } = await tab.evaluate(() => window.result);
    assert.equal(failure, undefined);
    assert.match(text, /[a-z]/);
  } finally {
    await context.close();
  }
});
