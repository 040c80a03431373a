//! `examples/page` as its README describes: the repository's root folder on a static server. `examples/vite` is tested with
//! the packed package, in `tests/package`.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { launchChromium } from "../../scripts/chromium.mjs";
import { root } from "../../scripts/process.mjs";
import { serve } from "../../scripts/server.mjs";
import { wasmIsBuilt } from "./harness.mjs";

const LOAD_LIMIT_MS = 180_000;

test("examples/page streams a completion, and its service worker answers fetch", {
  skip: !wasmIsBuilt && "skipped: the wasm module is not built",
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
