//! The chat apps of `examples/chat` with SmolLM2-135M-Instruct in Chromium, on the CPU device: progress of the download, a call of a tool, an
//! answer that is stopped, and one that is made again.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { build } from "esbuild";
import { root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { startHarness, wasmIsBuilt } from "../browser/harness.mjs";
import { installPackages } from "../clients/packages.mjs";
import { provideRealModels } from "./models.mjs";

const models = await provideRealModels();
const missing = !wasmIsBuilt ? "the wasm module is not built" : undefined;
const reason =
  models.reason ?? missing ?? (!(await installPackages()) && "React cannot be installed");
const html =
  '<!doctype html><link rel="icon" href="data:,"><div id="root"></div><script type="module" src="app.js"></script>';
/** The generation of a turn, on a slow machine. */
const TURN_LIMIT_MS = 120_000;

describe("chat apps", { skip: reason && `skipped: ${reason}`, concurrency: false }, () => {
  let harness;
  before(async () => {
    const mounts = {};
    for (const name of ["react", "ai_sdk"]) {
      const folder = temporaryFolder(`inpage-${name}-`);
      await build({
        entryPoints: [join(root, `examples/chat/${name}.jsx`)],
        ...{
          bundle: true,
          format: "esm",
          platform: "browser",
          jsx: "automatic",
          logLevel: "error",
        },
        alias: {
          "inpage/react": join(root, "www/dist/react/index.js"),
          "inpage/ai-sdk": join(root, "www/dist/ai_sdk/index.js"),
        },
        nodePaths: [join(root, "tests/clients/node_modules")],
        outfile: join(folder, "app.js"),
      });
      writeFileSync(join(folder, "index.html"), html);
      mounts[`/${name}/model.gguf`] = models.smolLm2;
      // As the recipe for esbuild in docs/bundlers.md copies them.
      mounts[`/${name}/worker.js`] = join(root, "www/dist/worker.js");
      mounts[`/${name}/wasm/`] = join(root, "www/dist/wasm/");
      mounts[`/${name}/`] = `${folder}/`;
    }
    harness = await startHarness({ mounts });
  });
  after(() => harness?.close());

  for (const name of ["react", "ai_sdk"]) {
    test(`the app ${name}`, { timeout: 4 * TURN_LIMIT_MS }, async () => {
      const page = await harness.open(undefined, `/${name}/`);
      const problems = [];
      page.on("pageerror", (error) => problems.push(error.message));
      page.setDefaultTimeout(TURN_LIMIT_MS);
      await page.evaluate(() => {
        const seen = () => {
          window.progress ||= document.querySelector("progress") !== null;
        };
        new MutationObserver(seen).observe(document, { childList: true, subtree: true });
      });
      const say = async (text) => {
        await page.fill("input", text);
        await page.click("text=Send");
      };
      const ended = () => page.waitForSelector("button:text('Send'):enabled");
      const last = () => page.locator("p.assistant").last().innerText();

      await say("Please roll a die.");
      const result = JSON.parse(await page.locator("p.tool:not(:empty)").last().innerText());
      assert.ok(result.rolled >= 1 && result.rolled <= 20, JSON.stringify(result));
      await ended();
      assert.equal(await page.locator("p.tool").count(), 1);
      assert.ok(await page.evaluate(() => window.progress), "the download has a progress");

      // The page stops the answer itself, at its first text: it may be short.
      await page.evaluate(() => {
        const texts = () => [...document.querySelectorAll("p.assistant")];
        const button = [...document.querySelectorAll("button")].find(
          ({ textContent }) => textContent === "Stop",
        );
        const before = texts().length;
        const timer = setInterval(() => {
          if (texts().length <= before || !texts().at(-1).textContent || button.disabled) return;
          clearInterval(timer);
          button.click();
          window.stopped = true;
        }, 2);
      });
      await say("Name many animals.");
      await page.waitForFunction(() => window.stopped);
      await ended();
      const stopped = await last();
      assert.ok(stopped.length > 0);
      await page.click("text=Again");
      // The turn has begun when the click is done; a short one may have ended.
      await page.waitForTimeout(200);
      await ended();
      // The model chooses the text.
      assert.ok((await last()).length > 0);
      assert.equal(await page.locator("[role=alert]").count(), 0);
      assert.deepEqual(problems, []);
      await page.context().close();
    });
  }
});
