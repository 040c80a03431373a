//! Shared by the browser tests: a server with the built package, the real `openai` SDK bundled for the page,
//! Chromium, and a server that a test answers.

import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { build } from "esbuild";
import { launchChromium } from "../../scripts/chromium.mjs";
import { root } from "../../scripts/process.mjs";
import { serve } from "../../scripts/server.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";

const PAGE = `<!doctype html><meta charset="utf-8"><title>inpage test</title>
<link rel="icon" href="data:,">
<script type="module">
import * as inpage from "/dist/index.js";
import OpenAI, * as sdk from "/openai.js";
// For the tests in the page. The fake engine loads three bytes instead of a model. It is not shared: each test counts its own.
// Its own switches are given beside the options.
const isOfFake = ([name]) => name.startsWith("fake");
const withSwitchesOfFake = (options) => {
  const entries = Object.entries(options);
  const own = Object.fromEntries(entries.filter(isOfFake));
  const others = Object.fromEntries(entries.filter((entry) => !isOfFake(entry)));
  return { ...others, endpoint: { ...others.endpoint, ...own } };
};
Object.assign(window, {
  inpage, OpenAI, sdk,
  startFake: (options) => window.inpage.createEngine(withSwitchesOfFake({
    workerUrl: "/fixtures/fake_worker.mjs",
    model: { file: new Blob(["abc"]), id: "fake" },
    shared: false,
    ...options,
  })),
  client: (options) => new OpenAI({
    baseURL: location.origin + "/v1", apiKey: "x", dangerouslyAllowBrowser: true, ...options,
  }),
  until: async (condition, what, limit_ms = 20_000) => {
    const end = performance.now() + limit_ms;
    for (;;) {
      const value = await condition();
      if (value) return value;
      if (performance.now() > end) throw new Error("timed out waiting until " + what);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  },
  // An error as plain data, which can be returned from the page.
  caught: async (run) => {
    try {
      return { value: await run() };
    } catch (error) {
      const { name, message, status, code, param, type } = error;
      return { className: error.constructor.name, name, message, status, code, param, type };
    }
  },
});
window.loaded = true;
</script>`;

/** True if the wasm module is built; without it only the fake engine can be tested. */
export const wasmIsBuilt = existsSync(join(root, "www/dist/wasm/inpage_bg.wasm"));

/** The real `openai` SDK as one module for pages. */
export const bundleSdk = (outfile) =>
  build({
    stdin: {
      contents: 'export * from "openai"; export { default } from "openai";',
      resolveDir: root,
    },
    bundle: true,
    format: "esm",
    platform: "browser",
    // The tests check names of classes, which bundling would change.
    keepNames: true,
    outfile,
    logLevel: "error",
  });

/** The fake engine's worker as one module, as the package has its own: a browser takes a second to load 60 modules. */
export const bundleFakeWorker = (outfile) =>
  build({
    entryPoints: [join(root, "tests/browser/fixtures/fake_worker.mjs")],
    ...{ bundle: true, format: "esm", platform: "browser", outfile, logLevel: "error" },
    plugins: [
      {
        name: "package",
        setup: ({ onResolve }) =>
          onResolve({ filter: /^\/dist\// }, ({ path }) => ({ path: join(root, "www", path) })),
      },
    ],
  });

/**
 * Starts a server and a browser. `open()` opens a page with empty storage; `open(context)` opens another tab of the
 * same profile. `mounts` are served in addition. With `isolated`, pages are cross-origin isolated. With `wholeBrowser`, the
 * browser is never the headless shell, which has no back/forward cache and is no browser that people use.
 */
export async function startHarness({
  mounts = {},
  args = [],
  ignoreDefaultArgs = [],
  isolated = false,
  wholeBrowser = false,
} = {}) {
  const server = await startServer(mounts, { isolated });
  const browser = await launchChromium({ args, ignoreDefaultArgs, shellSuffices: !wholeBrowser });
  return {
    origin: server.origin,
    browser,
    async open(context, path = "/") {
      const page = await (context ?? (await browser.newContext())).newPage();
      if (process.env.INPAGE_VERBOSE) {
        page.on("console", (message) => console.error(`  page: ${message.text()}`));
        page.on("pageerror", (error) => console.error(`  page: ${error.stack}`));
      }
      await page.goto(server.origin + path);
      if (path === "/") await page.waitForFunction(() => window.loaded);
      return page;
    },
    /** After this, the pages have no network. */
    stopServer: () => server.close(),
    async close() {
      await browser.close();
      await server.close();
    },
  };
}

/** A server of another origin for one test; `asked` resolves with its first request, and with the response that the test writes. */
export async function heldServer(t) {
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  const asked = once(server, "request");
  return { origin: `http://127.0.0.1:${server.address().port}`, asked };
}

/** The server of the tests' page, the package and the fixtures. `isolated` and `cors` are those of `serve`. */
export async function startServer(mounts = {}, { isolated = false, cors = false } = {}) {
  const folder = temporaryFolder("inpage-browser-");
  const [sdk, fakeWorker] = [join(folder, "openai.js"), join(folder, "fake_worker.mjs")];
  await Promise.all([bundleSdk(sdk), bundleFakeWorker(fakeWorker)]);
  return serve({
    mounts: {
      "/dist/": join(root, "www/dist/"),
      "/models/": join(root, "www/models/"),
      "/fixtures/": join(root, "tests/browser/fixtures/"),
      "/sw.js": join(root, "www/dist/sw.js"),
      "/fixtures/fake_worker.mjs": fakeWorker,
      "/openai.js": sdk,
      ...mounts,
    },
    pages: {
      "/": PAGE,
      "/plain": '<!doctype html><link rel="icon" href="data:,">',
      "/logout": { text: "", headers: { "Clear-Site-Data": '"storage"' } },
    },
    isolated,
    cors,
  });
}
