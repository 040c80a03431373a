//! An app that each bundler builds with the files of docs/bundlers.md, in Chromium: the worker, the wasm modules and the model are found.

import assert from "node:assert/strict";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { after, before, describe, test } from "node:test";
import { launchChromium } from "../../scripts/chromium.mjs";
import { root } from "../../scripts/process.mjs";
import { serve } from "../../scripts/server.mjs";
import { filesUnder } from "../../scripts/stamp.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { BUNDLERS, installBundlers, recipe, startVite } from "./bundlers.mjs";
import { pack, unpack } from "./packed.mjs";

const HTML = `<!doctype html><meta charset="utf-8"><title>app</title><link rel="icon" href="data:,">
<script type="module" src="SCRIPT"></script>`;
const APP = {
  "package.json": '{ "private": true, "type": "module" }',
  "index.html": HTML.replace("SCRIPT", "./src/main.js"),
  "src/engine.js": `import { createEngine } from "inpage";
import { embedded } from "inpage/embedded";
export const engine = createEngine({ model: embedded });
`,
  "src/main.js": `import { engine } from "./engine.js";
async function complete() {
  const body = { model: "default", prompt: "Once upon a time", max_tokens: 4 };
  return (await (await engine).completions.create(body)).choices[0].text;
}
complete().catch((error) => "failed: " + error.message).then((text) => {
  document.body.dataset.text = text;
});
`,
};
/** What the app of Vite has besides, whose plugin adds the service worker. */
const KEEP = `
import { serveFromPage } from "inpage";
window.keep = async () => serveFromPage(await engine, { offline: true }).keptOffline;
`;
/** The package's service worker, without the address of its source map. */
const PACKAGED = readFileSync(join(root, "www/dist/sw.js"), "utf8")
  .replace(/\/\/# source.*/, "")
  .trim();
const serviceWorkerAt = async (origin) => (await (await fetch(`${origin}/sw.js`)).text()).trim();
/** Bundlers that write no page. */
const SCRIPT_ONLY = ["webpack", "Rspack", "esbuild"];
/** All files of the build of esbuild, which copies those of the package. */
const ESBUILD_FILES = [
  "inpage/tales.gguf",
  "inpage/wasm/cpu_kernels.wasm",
  "inpage/wasm/cpu_kernels_simd.wasm",
  "inpage/wasm/inpage_bg.wasm",
  "inpage/worker.js",
  "main.js",
];

const skip = !(await installBundlers()) && "skipped: the bundlers cannot be installed";

describe("an app built with", { skip }, () => {
  let folder;
  let archive;
  let browser;
  before(async () => {
    folder = temporaryFolder("inpage-bundlers-");
    archive = join(folder, pack(folder).filename);
    browser = await launchChromium({ webgpu: false });
  });
  after(() => browser?.close());

  function makeApp(name) {
    const app = join(folder, name.replace(" ", "-"));
    const recipes = BUNDLERS[name].files.map((file) => [file, recipe(file)]);
    for (const [file, text] of [...Object.entries(APP), ...recipes]) {
      mkdirSync(dirname(join(app, file)), { recursive: true });
      writeFileSync(join(app, file), text);
    }
    if (name.startsWith("Vite")) appendFileSync(join(app, "src/main.js"), KEEP);
    unpack(archive, app);
    const esbuild = join(root, "node_modules/esbuild");
    const link = join(app, "node_modules/esbuild");
    if (!existsSync(link)) symlinkSync(esbuild, link, "junction");
    return app;
  }

  async function textOf(page) {
    const text = await page.waitForFunction(() => document.body.dataset.text, null, {
      timeout: 60_000,
    });
    return text.jsonValue();
  }

  /** The text that the app at an address writes. `use` gets its page before the end. */
  async function textAt(origin, use = async () => {}) {
    const page = await browser.newPage();
    const faults = [];
    page.on("pageerror", (error) => faults.push(error.message));
    page.context().on("response", (response) => {
      if (response.status() >= 400) faults.push(`${response.status()} ${response.url()}`);
    });
    await page.goto(origin);
    const text = await textOf(page).catch((error) =>
      assert.fail(`${error.message}\n${faults.join("\n")}`),
    );
    await use(page);
    await page.close();
    assert.deepEqual(faults, []);
    return text;
  }

  for (const name of Object.keys(BUNDLERS)) {
    test(name, async () => {
      const app = makeApp(name);
      await BUNDLERS[name].build(app);
      const pages = SCRIPT_ONLY.includes(name) ? { "/": HTML.replace("SCRIPT", "/main.js") } : {};
      const server = await serve({ mounts: { "/": join(app, "dist/") }, pages });
      try {
        const isVite = name.startsWith("Vite");
        if (isVite) assert.ok((await serviceWorkerAt(server.origin)) === PACKAGED);
        const offline = async (page) => {
          await page.evaluate(() => keep());
          await server.close();
          await page.reload();
          assert.doesNotMatch(await textOf(page), /^failed/);
        };
        const text = await textAt(server.origin, isVite ? offline : undefined);
        assert.match(text, /[a-z]/);
        assert.doesNotMatch(text, /^failed/);
        if (name === "esbuild") {
          const files = filesUnder(join(app, "dist")).map((file) => relative(app, file));
          assert.deepEqual(
            files,
            ESBUILD_FILES.map((file) => join("dist", file)),
          );
        }
      } finally {
        await server.close();
      }
    });
  }

  for (const name of ["Vite 8", "Vite 7", "webpack", "Rspack", "Parcel"]) {
    test(`${name} leaves the model out of an app that names another one`, async () => {
      const app = makeApp(name);
      const other =
        'import { createEngine } from "inpage"; export const engine = createEngine({ model: "/x.gguf" });';
      writeFileSync(join(app, "src/engine.js"), other);
      rmSync(join(app, "dist"), { recursive: true, force: true });
      await BUNDLERS[name].build(app);
      const files = readdirSync(join(app, "dist"), { recursive: true });
      assert.ok(files.some((file) => file.endsWith(".wasm")));
      assert.deepEqual(
        files.filter((file) => file.endsWith(".gguf")),
        [],
      );
    });
  }

  for (const [name, vite] of [
    ["Vite 8", "vite"],
    ["Vite 7", "vite-7"],
  ]) {
    test(`the development server of ${name}`, async () => {
      const server = await startVite(vite, makeApp(name));
      try {
        assert.doesNotMatch(await textAt(server.origin), /^failed/);
        assert.ok((await serviceWorkerAt(server.origin)) === PACKAGED);
        const { headers } = await fetch(server.origin);
        assert.equal(headers.get("cross-origin-opener-policy"), "same-origin");
        assert.equal(headers.get("cross-origin-embedder-policy"), "require-corp");
      } finally {
        await server.close();
      }
    });
  }
});
