//! `examples/page` and `examples/images` as their READMEs describe: the repository's root folder on a static server.
//! `examples/vite` is tested with the packed package, in `tests/package`.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { launchChromium } from "../../scripts/chromium.mjs";
import { root } from "../../scripts/process.mjs";
import { serve } from "../../scripts/server.mjs";
import { wasmIsBuilt } from "./harness.mjs";
import { png } from "./image_files.mjs";

const LOAD_LIMIT_MS = 180_000;
const skip = !wasmIsBuilt && "skipped: the wasm module is not built";

test("examples/page streams a completion, and its service worker answers fetch", {
  skip,
}, async () => {
  const server = await serve({ mounts: { "/": join(root, "/") } });
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    const faults = [];
    page.on("pageerror", (error) => faults.push(error.message));
    await page.goto(`${server.origin}/examples/page/`);
    for (const button of ["#generate", "#ask"]) {
      await page.click(`${button}:enabled`, { timeout: LOAD_LIMIT_MS });
      await page.locator("#state", { hasText: /^Done\.$/ }).waitFor({ timeout: LOAD_LIMIT_MS });
      assert.match(await page.locator("#text").textContent(), /[a-z]/);
    }
    assert.deepEqual(faults, []);
  } finally {
    await browser.close();
    await server.close();
  }
});

test("examples/images describes images that are picked and dropped, with the plain OpenAI SDK", {
  skip,
}, async () => {
  const server = await serve({ mounts: { "/": join(root, "/") } });
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    const faults = [];
    page.on("pageerror", (error) => faults.push(error.message));
    const answers = [];
    page.on("response", (response) => {
      if (response.url() === `${server.origin}/v1/chat/completions`) answers.push(response);
    });
    const folder = "/tests/parity/images";
    const query = `model=${folder}/gemma3.gguf&projector=${folder}/gemma3.mmproj.gguf`;
    await page.goto(`${server.origin}/examples/images/?${query}`);
    const ready = page.locator("#state", { hasText: /^The model is ready\.$/ });
    await ready.waitFor({ timeout: LOAD_LIMIT_MS });
    // There is no image yet.
    assert.equal(await page.locator("#describe").isDisabled(), true);

    const described = async () => {
      await page.click("#describe:enabled", { timeout: LOAD_LIMIT_MS });
      await page.locator("#state", { hasText: /^Done\.$/ }).waitFor({ timeout: LOAD_LIMIT_MS });
      return page.locator("#text").textContent();
    };
    const light = image((x, y) => [255 - x, 255 - y, 200]);
    await page.setInputFiles("#file", { name: "a.png", mimeType: "image/png", buffer: light });
    const picked = await described();
    assert.ok(picked.length > 0);

    const drop = (file) =>
      page.evaluate((bytes) => {
        const files = new DataTransfer();
        const given = new File([new Uint8Array(bytes)], "b.png", { type: "image/png" });
        files.items.add(given);
        const options = { dataTransfer: files, bubbles: true, cancelable: true };
        document.querySelector("#drop").dispatchEvent(new DragEvent("drop", options));
      }, Array.from(file));
    const preview = () => page.locator("#preview").getAttribute("src");
    const before = await preview();
    const dark = image((x, y) => [(x * y) % 64, x < 32 ? 0 : 90, 10]);
    await drop(dark);
    await page.waitForFunction((src) => document.querySelector("#preview").src !== src, before);
    const dropped = await described();
    assert.notEqual(dropped, picked);

    assert.equal(answers.length, 2);
    for (const [index, file] of [light, dark].entries()) {
      assert.equal(answers[index].fromServiceWorker(), true);
      const { stream, messages } = answers[index].request().postDataJSON();
      assert.equal(stream, true);
      const url = `data:image/png;base64,${file.toString("base64")}`;
      assert.deepEqual(messages[0].content[0], { type: "image_url", image_url: { url } });
    }
    assert.deepEqual(faults, []);
  } finally {
    await browser.close();
    await server.close();
  }
});

/** A PNG file of 64x64 pixels, whose colors are a function of their place. */
function image(colorAt) {
  const pixels = Array.from({ length: 64 * 64 }, (_, i) => colorAt(i % 64, Math.floor(i / 64)));
  return png({ width: 64, height: 64, data: Buffer.from(pixels.flat()) });
}
