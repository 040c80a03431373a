//! The chat apps of `examples/chat` with SmolLM2-135M-Instruct in Chromium, on the CPU device: progress of the download, a call of a tool, an
//! answer that is stopped, and one that is made again.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
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
const APPS = ["react", "ai_sdk", "assistant_ui"];
/** The generation of a turn, on a slow machine. */
const TURN_LIMIT_MS = 120_000;
/** The text that may follow a click on Stop. An answer that is not stopped has about 300 characters. */
const CHARS_AFTER_STOP = 150;
/** Lines of code that an app may have of its own; `dice.js` and `controls.jsx` are shared. */
const MAX_APP_LINES = 40;
const OWN_FILES = { react: ["react.jsx"], ai_sdk: ["ai_sdk.jsx", "dice_agent.js"] };

for (const [name, files] of Object.entries(OWN_FILES)) {
  test(`the app ${name} has less than ${MAX_APP_LINES} lines of code`, () => {
    const lines = files.flatMap((file) =>
      readFileSync(join(root, "examples/chat", file), "utf8").split("\n"),
    );
    const code = lines.filter((line) => /\S/.test(line) && !/^\s*(\/\/|\/\*\*)/.test(line));
    assert.ok(code.length < MAX_APP_LINES, `${code.length}`);
  });
}

describe("chat apps", { skip: reason && `skipped: ${reason}`, concurrency: false }, () => {
  let harness;
  before(async () => {
    const mounts = {};
    for (const name of APPS) {
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

  for (const name of APPS) {
    test(`the app ${name}`, { timeout: 4 * TURN_LIMIT_MS }, async () => {
      const page = await harness.open(undefined, `/${name}/`);
      const problems = [];
      page.on("pageerror", (error) => problems.push(error.message));
      page.setDefaultTimeout(TURN_LIMIT_MS);
      await page.evaluate(() => {
        const stop = () =>
          [...document.querySelectorAll("button")].find(
            ({ textContent }) => textContent === "Stop",
          );
        // assistant-ui shows a dot before the first text.
        window.texts = () =>
          [...document.querySelectorAll(".assistant")].map(({ innerText }) =>
            innerText.replace("Again", "").replace("●", "").trim(),
          );
        const look = () => {
          window.progress ||= document.querySelector("progress") !== null;
          window.hasRun ||= stop()?.disabled === false;
          if (window.stopsAfter === undefined || texts().length <= window.stopsAfter) return;
          if (!texts().at(-1) || stop().disabled) return;
          window.stopsAfter = undefined;
          window.charsAtStop = texts().at(-1).length;
          stop().click();
        };
        const options = { childList: true, subtree: true, attributes: true, characterData: true };
        new MutationObserver(look).observe(document, options);
      });
      // assistant-ui ignores a click that comes before the run that was stopped has ended: a second one begins the next.
      const turn = async (selector) => {
        await page.evaluate(() => {
          window.hasRun = false;
        });
        for (const timeout of [5_000, TURN_LIMIT_MS]) {
          await page.click(selector);
          const begun = page.waitForFunction(() => window.hasRun, undefined, { timeout });
          if (await begun.catch((error) => timeout === TURN_LIMIT_MS && Promise.reject(error)))
            break;
        }
        await page.waitForSelector("button:text('Stop'):disabled");
      };
      // The text of the model may hold the words of buttons: "roll again".
      const say = async (text) => {
        await page.fill("input, textarea", text);
        await turn("button:text-is('Send')");
      };
      const last = () => page.evaluate(() => texts().at(-1));

      await say("Please roll a die.");
      // The model may call again when it has the first result.
      await page.waitForFunction(() => {
        const calls = [...document.querySelectorAll("p.tool")];
        return calls.length > 0 && calls.every(({ innerText }) => innerText !== "");
      });
      const results = await page.locator("p.tool").allInnerTexts();
      for (const result of results) {
        const { rolled } = JSON.parse(result);
        assert.ok(rolled >= 1 && rolled <= 20, result);
      }
      assert.ok(await page.evaluate(() => window.progress), "the download has a progress");

      // The page stops the answer itself, at its first text: it may be short.
      await page.evaluate(() => {
        window.stopsAfter = texts().length;
      });
      await say("Name many animals.");
      assert.equal(await page.evaluate(() => window.stopsAfter), undefined);
      assert.ok((await last()).length > 0);
      const charsAfterStop = await page.evaluate(() => texts().at(-1).length - charsAtStop);
      assert.ok(charsAfterStop <= CHARS_AFTER_STOP, `${charsAfterStop} characters after Stop`);
      const answers = await page.evaluate(() => texts().length);
      await turn("button:text-is('Again')");
      // The model chooses the text, which takes the place of the one before.
      assert.ok((await last()).length > 0);
      assert.equal(await page.evaluate(() => texts().length), answers);
      assert.equal(await page.locator("[role=alert]").count(), 0);
      assert.deepEqual(problems, []);
      await page.context().close();
    });
  }
});
