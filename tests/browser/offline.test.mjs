//! `serveFromPage(engine, { offline: true })`: after one visit the site works without its server, and a page never gets files
//! of two versions.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launchChromium } from "../../scripts/chromium.mjs";
import { root } from "../../scripts/process.mjs";
import { serve } from "../../scripts/server.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { wasmIsBuilt } from "./harness.mjs";

let browser;
before(async () => {
  browser = await launchChromium();
});
/** Stop the servers: a test that fails leaves its own running, for which the file would wait. */
const stops = [];
after(async () => {
  await browser?.close();
  for (const stop of stops) await stop();
});

/**
 * A site whose files the test writes, with the package and its models beside them. `down()` stops the server, `up()` starts
 * it again on the same port.
 */
async function startSite(files) {
  const folder = temporaryFolder("inpage-offline-");
  const write = (files) => {
    mkdirSync(folder, { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  };
  write(files);
  const mounts = {
    "/": `${folder}/`,
    "/dist/": join(root, "www/dist/"),
    "/models/": join(root, "www/models/"),
    "/fixtures/": join(root, "tests/browser/fixtures/"),
    "/sw.js": join(root, "www/dist/sw.js"),
  };
  let server = await serve({ mounts });
  const port = Number(new URL(server.origin).port);
  stops.push(() => server.close());
  return {
    origin: server.origin,
    write,
    down: () => server.close(),
    async up() {
      server = await serve({ mounts, port });
      assert.equal(server.origin, `http://127.0.0.1:${port}`);
    },
  };
}

/** A page of five files, two of them loaded late, and all of one version. */
const versioned = (version) => ({
  "index.html": `<!doctype html><link rel="icon" href="data:,"><title>${version}</title>
    <link rel="stylesheet" href="style.css"><script type="module" src="app.js"></script>`,
  "style.css": `/* ${version} */`,
  "app.js": `import * as inpage from "/dist/index.js";
    window.versions = ["${version}"];
    window.late = async () => {
      const { version } = await import("./late.js");
      const module = await (await fetch(new URL("module.wasm", import.meta.url))).text();
      return [...window.versions, version, module];
    };
    window.start = async (options, offline = true) => {
      window.engine = await inpage.createEngine(options ?? {
        workerUrl: "/fixtures/fake_worker.mjs",
        model: { file: new Blob(["abc"]), id: "fake" },
      });
      window.serving = inpage.serveFromPage(engine, { offline });
      await serving.ready;
    };
    window.complete = async (model, prompt) => {
      const response = await fetch("/v1/completions", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model, prompt, max_tokens: 4, temperature: 0 }),
      });
      return [response.status, (await response.json()).choices?.[0].text];
    };
    window.serveAgain = () => {
      window.serving = inpage.serveFromPage(engine, { offline: true });
    };
    window.loaded = true;`,
  "late.js": `export const version = "${version}";`,
  "module.wasm": version,
});

async function open(context, site) {
  const page = await context.newPage();
  if (process.env.INPAGE_VERBOSE) {
    page.on("console", (message) => console.error(`  page: ${message.text()}`));
    page.on("pageerror", (error) => console.error(`  page: ${error.stack}`));
  }
  await page.goto(`${site.origin}/`);
  await page.waitForFunction(() => window.loaded);
  return page;
}

/** Visits the site and waits until it is kept. */
async function visitAndKeep(context, site, options) {
  const page = await open(context, site);
  await page.evaluate(async (options) => {
    await start(options);
    await serving.keptOffline;
  }, options);
  return page;
}

test("a page that was never kept says so without a server", async () => {
  const site = await startSite(versioned("v1"));
  const context = await browser.newContext();
  const page = await open(context, site);
  const failureOf = (start) =>
    page.evaluate(async (start) => {
      await window[start]();
      return serving.keptOffline.then(
        () => "kept",
        ({ name, code, message }) => `${name} ${code}: ${message}`,
      );
    }, start);
  await context.route("**/late.js", (route) => route.abort());
  assert.match(
    await failureOf("start"),
    /^InpageError site_not_kept: http:\S+\/late\.js cannot be fetched: /,
  );
  await context.unroute("**/late.js");
  await site.down();
  assert.match(
    await failureOf("serveAgain"),
    /^InpageError site_not_kept: http:\S+ cannot be fetched: /,
  );
  await context.close();
});

test("a page whose service worker was registered without the option needs the server for it", async () => {
  const site = await startSite(versioned("v1"));
  const context = await browser.newContext();
  const page = await open(context, site);
  await page.evaluate(() => start(undefined, false));
  await site.down();
  const failure = await page.evaluate(async () => {
    serveAgain();
    return serving.keptOffline.then(
      () => "kept",
      ({ name, code }) => `${name} ${code}`,
    );
  });
  assert.equal(failure, "InpageError service_worker_unavailable");
  await context.close();
});

test("each reading asks once for what a script names and does not exist, and never for names of the package", async () => {
  const files = versioned("v1");
  files["app.js"] += '\nwindow.names = ["none.js"];';
  const site = await startSite(files);
  const context = await browser.newContext();
  const page = await open(context, site);
  const missing = [];
  context.on("response", (response) => {
    if (response.status() === 404) missing.push(new URL(response.url()).pathname);
  });
  await page.evaluate(async () => {
    await start();
    await serving.keptOffline;
  });
  assert.deepEqual(missing, ["/none.js", "/none.js"]);
  await context.close();
  await site.down();
});

test("a file that comes late in a deployment is kept, too", async () => {
  const site = await startSite(versioned("v1"));
  const context = await browser.newContext();
  let asked = 0;
  await context.route("**/late.js", (route) =>
    asked++ === 0 ? route.fulfill({ status: 404 }) : route.continue(),
  );
  await (await visitAndKeep(context, site)).close();
  await context.unroute("**/late.js");
  await site.down();
  const page = await open(context, site);
  assert.deepEqual(await page.evaluate(() => late()), ["v1", "v1", "v1"]);
  await context.close();
});

test("an error that is not the network's is reported, also where the site was kept before", async () => {
  const site = await startSite(versioned("v1"));
  const context = await browser.newContext();
  await (await visitAndKeep(context, site)).close();
  const page = await open(context, site);
  const message = await page.evaluate(async () => {
    crypto.subtle.digest = () => Promise.reject(new TypeError("no digest"));
    await start();
    return serving.keptOffline.then(
      () => "kept",
      (error) => error.message,
    );
  });
  assert.equal(message, "no digest");
  await context.close();
  await site.down();
});

test("after one visit the page, its engine and completions need no server", async () => {
  const site = await startSite(versioned("v1"));
  const context = await browser.newContext();
  await (await visitAndKeep(context, site)).close();
  await site.down();
  const page = await open(context, site);
  const answer = await page.evaluate(async () => {
    await start();
    await serving.keptOffline;
    return [await complete("fake", "count:2"), await late()];
  });
  assert.deepEqual(answer, [
    [200, "é0 é1 "],
    ["v1", "v1", "v1"],
  ]);
  await context.close();
});

test("after one visit the real engine and its model need no server", async (t) => {
  if (!wasmIsBuilt) return t.skip("the wasm module is not built");
  const site = await startSite(versioned("v1"));
  const context = await browser.newContext();
  const options = { load: { contextTokens: 256 } };
  const first = await visitAndKeep(context, site, options);
  const ask = (page) => page.evaluate(() => complete("default", "Once upon a time"));
  const [status, text] = await ask(first);
  assert.equal(status, 200);
  await first.close();
  await site.down();
  const page = await open(context, site);
  await page.evaluate((options) => start(options), options);
  assert.deepEqual(await ask(page), [200, text]);
  await context.close();
});

test("a page from the kept site gets no files of a newer version", async () => {
  const site = await startSite(versioned("v1"));
  const context = await browser.newContext();
  await (await visitAndKeep(context, site)).close();
  await site.down();
  const page = await open(context, site);
  site.write(versioned("v2"));
  await site.up();
  // The browser may stop the worker at any time. The worker must still know which release the page has.
  const session = await context.newCDPSession(page);
  await session.send("ServiceWorker.enable");
  await session.send("ServiceWorker.stopAllWorkers");
  // This page now keeps all of the newer version.
  await page.evaluate(async () => {
    await start();
    await serving.keptOffline;
  });
  assert.deepEqual(await page.evaluate(() => late()), ["v1", "v1", "v1"]);
  await page.close();
  await site.down();
  const later = await open(context, site);
  assert.deepEqual(await later.evaluate(() => late()), ["v2", "v2", "v2"]);
  await context.close();
});

test("a page from the network gets no kept files, and the newer version is kept", async () => {
  const site = await startSite(versioned("v1"));
  const context = await browser.newContext();
  await (await visitAndKeep(context, site)).close();
  site.write(versioned("v2"));
  const newer = await open(context, site);
  assert.deepEqual(await newer.evaluate(() => late()), ["v2", "v2", "v2"]);
  await newer.evaluate(async () => {
    await start();
    await serving.keptOffline;
  });
  await newer.close();
  await site.down();
  const page = await open(context, site);
  assert.deepEqual(await page.evaluate(() => late()), ["v2", "v2", "v2"]);
  await context.close();
});

test("files that change while they are read are not kept", async () => {
  const site = await startSite(versioned("v1"));
  const context = await browser.newContext();
  await (await visitAndKeep(context, site)).close();
  // Every read returns another version.
  const page = await context.newPage();
  let reading = 0;
  await context.route("**/late.js", (route) =>
    route.fulfill({
      contentType: "text/javascript",
      body: `export const version = "${reading++}";`,
    }),
  );
  await page.goto(`${site.origin}/`);
  await page.waitForFunction(() => window.loaded);
  const message = await page.evaluate(async () => {
    await start();
    return serving.keptOffline.then(
      () => "kept",
      (error) => `${error.name} ${error.code}: ${error.message}`,
    );
  });
  assert.match(message, /^InpageError site_not_kept: .* changed while they were read$/);
  await page.close();
  await context.unroute("**/late.js");
  await site.down();
  const offline = await open(context, site);
  assert.deepEqual(await offline.evaluate(() => late()), ["v1", "v1", "v1"]);
  await context.close();
});

test("without the option the site needs its server", async () => {
  const site = await startSite(versioned("v1"));
  const context = await browser.newContext();
  const page = await open(context, site);
  await page.evaluate(() => start(undefined, false));
  assert.deepEqual(await page.evaluate(() => caches.keys()), []);
  await site.down();
  await assert.rejects(page.goto(`${site.origin}/`), /ERR_CONNECTION_REFUSED/);
  await context.close();
});
