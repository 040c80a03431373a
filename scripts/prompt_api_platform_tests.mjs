//! `node scripts/prompt_api_platform_tests.mjs CHECKOUT [TEXT]`: runs the tests of the Prompt API in a checkout of web-platform-tests, or
//! those whose path contains TEXT, in Chromium over `inpage/prompt-api`. Prints JSON. The package must be built.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix, resolve } from "node:path";
import { CHAT_TEMPLATE } from "../tests/browser/smolvlm_template.mjs";
import { launchChromium } from "./chromium.mjs";
import { main, Remediable, root, say } from "./process.mjs";
import { serve } from "./server.mjs";

const FOLDER = "ai/language-model";
const ENDING = ".window.js";
const FILE_LIMIT_MS = 120_000;
/** The end of a file that has exceeded its limit. */
const END_LIMIT_MS = 5_000;

/** A model of random weights that sees images. */
const MODEL = { file: "smolvlm-F16.gguf", projector: "mmproj-smolvlm-F16.gguf" };

const OPTIONS = {
  model: `/tiny/${MODEL.file}`,
  projector: `/tiny/${MODEL.projector}`,
  ...{ device: "cpu", threads: 1, load: { contextTokens: 512 } },
  endpoint: { chatTemplate: CHAT_TEMPLATE, defaultMaxMessageTokens: 40 },
};

/** In place of a WebDriver, which would activate the page as a user does: `inpage` needs no activation. */
const TEST_DRIVER = "window.test_driver = { bless: async (intent, action) => action?.() };";
const script = (text) => ({ text, headers: { "Content-Type": "text/javascript" } });

/** The URLs of the scripts of a test: those that its first lines name, and its own. */
function scriptsOf(path, source) {
  const named = [...source.matchAll(/^\/\/ META: script=(\S+)/gm)].map(([, name]) => name);
  return [...named.map((name) => posix.resolve(posix.dirname(path), name)), path];
}

/** The page of a test. It ends when its scripts have run and their tests have ended. */
const pageOf = (scripts) => `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<script src="/resources/testharness.js"></script>
<script>
setup({ explicit_done: true, explicit_timeout: true, output: false });
add_completion_callback((tests, status) => {
  const ended = tests.map(({ name, status, message }) => ({ name, status, message }));
  window.outcome = { tests: ended, status: status.status, message: status.message };
});
</script>
<script type="module">
import { createLanguageModel } from "/dist/prompt_api/index.js";
const value = createLanguageModel(${JSON.stringify(OPTIONS)});
Object.defineProperty(window, "LanguageModel", { value, configurable: true, writable: true });
for (const src of ${JSON.stringify(scripts)}) {
  const element = Object.assign(document.createElement("script"), { src });
  await new Promise((resolve, reject) => {
    Object.assign(element, { onload: resolve, onerror: () => reject(new Error(src + " is missing")) });
    document.head.append(element);
  });
}
done();
</script>`;

/** Runs a test. Returns its subtests, and the failure of the file itself if it has one. */
async function outcomeOf(page, url) {
  const ended = (timeout) => page.waitForFunction(() => window.outcome, undefined, { timeout });
  await page.goto(url);
  await ended(FILE_LIMIT_MS).catch(async () => {
    // This is testharness.js's own function.
    await page.evaluate(() => window.timeout());
    await ended(END_LIMIT_MS);
  });
  return page.evaluate(() => window.outcome);
}

await main(async ([checkout, text = ""]) => {
  const folder = resolve(checkout ?? "");
  if (checkout === undefined || !existsSync(join(folder, FOLDER))) {
    throw new Remediable(
      `there is no ${FOLDER} in ${checkout === undefined ? "the command" : folder}`,
      "Give the path of a checkout of https://github.com/web-platform-tests/wpt.",
    );
  }
  const models = join(process.env.INPAGE_MODELS ?? "", "tiny");
  if (!existsSync(join(models, MODEL.projector))) {
    throw new Remediable(
      `there is no tiny/${MODEL.projector}`,
      "Set INPAGE_MODELS to the folder of the models of the tests.",
    );
  }
  const tests = readdirSync(join(folder, FOLDER), { recursive: true })
    .filter((name) => name.endsWith(ENDING))
    .sort()
    .map((name) => `/${FOLDER}/${name.replaceAll("\\", "/")}`)
    .filter((path) => path.includes(text));
  const pages = Object.fromEntries(
    tests.map((path) => {
      const scripts = scriptsOf(path, readFileSync(join(folder, path), "utf8"));
      return [path.replace(/js$/, "html"), pageOf(scripts)];
    }),
  );
  const server = await serve({
    mounts: { "/": folder, "/dist/": join(root, "www/dist/"), "/tiny/": models },
    pages: {
      ...pages,
      "/resources/testdriver.js": script(TEST_DRIVER),
      "/resources/testdriver-vendor.js": script(""),
    },
  });
  const browser = await launchChromium({ args: ["--js-flags=--expose-gc"] });
  const result = { passed: 0, failed: [] };
  try {
    const context = await browser.newContext();
    for (const path of Object.keys(pages)) {
      say(path);
      const page = await context.newPage();
      const fail = (name, message) => result.failed.push({ file: path, name, message });
      try {
        const outcome = await outcomeOf(page, server.origin + path);
        for (const { name, status, message } of outcome.tests) {
          if (status === 0) result.passed += 1;
          else fail(name, message);
        }
        if (outcome.status !== 0) fail(undefined, outcome.message ?? "it did not end");
      } catch (error) {
        fail(undefined, error.message);
      }
      await page.close();
    }
  } finally {
    await browser.close();
    await server.close();
  }
  process.stdout.write(`${JSON.stringify(result, undefined, 2)}\n`);
});
