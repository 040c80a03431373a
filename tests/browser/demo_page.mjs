//! Shared by the tests of the demo: its files with a fake engine, and what a user does and sees in it. INPAGE_SCREENSHOTS names a
//! folder for screenshots.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { bundleFakeWorker } from "./harness.mjs";

export const DEMO = { "/demo/": join(root, "www/demo/") };
const SHOTS = process.env.INPAGE_SCREENSHOTS;

/** The demo with a fake engine and a model of 100 kB, and with `models` as its catalog. */
export async function fakeDemo(models = []) {
  const folder = temporaryFolder("inpage-demo-fake-");
  await bundleFakeWorker(join(folder, "worker.js"));
  writeFileSync(join(folder, "empty.wasm"), "");
  writeFileSync(join(folder, "tales.gguf"), Buffer.alloc(100_000, 7));
  writeFileSync(
    join(folder, "catalog.js"),
    `export const catalog = ${JSON.stringify(models)};
    // The advice is a member of each model. A measured speed is scaled by the models' sizes.
    export const recommendModels = async ({ measured } = {}) => catalog.map((model) => {
      const { bytes } = catalog.find(({ name }) => name === measured?.model) ?? {};
      const tokensPerSecond = bytes && (measured.tokensPerSecond * bytes) / model.bytes;
      return { obstacles: [], ...model.advice, ...(bytes && { tokensPerSecond }), model };
    });`,
  );
  return {
    ...DEMO,
    "/dist/catalog/index.js": join(folder, "catalog.js"),
    "/dist/": join(root, "www/dist/"),
    "/dist/worker.js": join(folder, "worker.js"),
    "/dist/wasm/inpage_bg.wasm": join(folder, "empty.wasm"),
    "/models/tales.gguf": join(folder, "tales.gguf"),
  };
}

/** A browser profile in which the demo has kept `memory` of an earlier visit, such as `{ tab: "write" }`. */
export async function visitor(harness, memory = {}, options = {}) {
  const context = await harness.browser.newContext(options);
  await context.addInitScript((kept) => {
    for (const [key, value] of Object.entries(kept)) {
      const name = `inpage-demo ${key}`;
      if (localStorage.getItem(name) === null) localStorage.setItem(name, value);
    }
  }, memory);
  return context;
}

/** The errors of the page and violations of its policy, from now on. */
export function faultsOf(page) {
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (/Content Security Policy/.test(message.text())) faults.push(message.text());
  });
  return faults;
}

/** Waits until the element's text matches; fails with its actual text. */
export async function says(page, selector, pattern, timeout_ms = 20_000) {
  const end = Date.now() + timeout_ms;
  for (;;) {
    const text = await page.locator(selector).textContent();
    if (pattern.test(text)) return text;
    if (Date.now() > end)
      assert.fail(`${selector} says "${text}", which does not match ${pattern}`);
    await page.waitForTimeout(30);
  }
}

export const ready = (page) => says(page, "#model-state", /^is ready$/, 120_000);

export const canSend = (page) =>
  page.waitForSelector('#chat-send[aria-disabled="false"]', { timeout: 120_000 });

export const openTab = (page, name) => page.click(`#${name}-tab`);

/** Loads a model by its URL, in the tab of models; the tab `back` is shown again. */
export async function loadUrl(page, url, { projector, back } = {}) {
  await openTab(page, "models");
  await page.check('input[name="source"][value="url"]');
  await page.fill("#model-url", url);
  if (projector !== undefined) await page.fill("#projector-url", projector);
  await page.click("#load");
  if (back !== undefined) await openTab(page, back);
}

/** Loads the model of the page. */
export async function loadEmbedded(page, back) {
  await openTab(page, "models");
  await page.click('[data-model="tales"] button');
  if (back !== undefined) await openTab(page, back);
}

export async function send(page, text) {
  await page.fill("#chat-text", text);
  await page.press("#chat-text", "Enter");
}

/** The texts of the messages, as the user sees them. */
export const texts = (page) =>
  page.$$eval("#messages .message .text", (all) => all.map((it) => it.innerText.trim()));

export const done = (page) => says(page, "#chat-state", /^Done/, 120_000);

/** Drops a file on the page. */
export async function drop(page, name, bytes, type = "") {
  const dataTransfer = await page.evaluateHandle(
    ({ name, base64, type }) => {
      const data = new DataTransfer();
      const content = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
      data.items.add(new File([content], name, { type }));
      return data;
    },
    { name, base64: bytes.toString("base64"), type },
  );
  await page.dispatchEvent("body", "dragover", { dataTransfer });
  await page.dispatchEvent("body", "drop", { dataTransfer });
}

/** Screenshots, if INPAGE_SCREENSHOTS is set. */
export async function shot(page, name) {
  if (SHOTS === undefined) return;
  // Scrolled down, sticky elements would appear in the middle.
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: join(SHOTS, `${name}.png`) });
  await page.screenshot({ path: join(SHOTS, `${name}-whole.png`), fullPage: true });
}

/** Nothing is wider than the page, and every control has a name; on a phone, every target is large enough for a finger. */
export async function checkLayout(page, what) {
  const found = await page.evaluate(() => {
    const outer = (element) => element.outerHTML.slice(0, 90);
    const shown = (selector) =>
      [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility());
    const controls = shown("button, input, textarea, select, progress, meter, summary");
    const small = (element) => {
      // A label is part of the target of its control.
      const target = element.closest("label.choice") ?? element;
      const { width, height } = target.getBoundingClientRect();
      return width < 43.5 || height < 43.5;
    };
    return {
      wide: shown("body *")
        .filter((element) => !element.closest(".scroll, pre, .skip"))
        .filter((element) => element.getBoundingClientRect().right > innerWidth + 0.5)
        .map(outer),
      nameless: controls
        .filter((element) => !element.labels?.length && !element.ariaLabel)
        .filter((element) => element.textContent.trim() === "")
        .map(outer),
      small:
        innerWidth > 640
          ? []
          : shown("button, input, textarea, select, summary")
              .filter(small)
              .map((element) => `${element.getBoundingClientRect().height} ${outer(element)}`),
    };
  });
  assert.deepEqual(found, { wide: [], nameless: [], small: [] }, what);
}
