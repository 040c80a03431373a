//! `inpage/vite`: what the plugin gives to Vite, besides what an app built with it shows.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "vite";
import { root, run } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import inpage from "../../www/dist/node/vite.js";

/** The names of the files that Vite builds of an empty app. */
async function filesOf(plugin, publicFiles = {}) {
  const app = temporaryFolder("inpage-vite-plugin-");
  mkdirSync(join(app, "public"));
  writeFileSync(join(app, "index.html"), "<!doctype html><p>empty</p>");
  for (const [name, text] of Object.entries(publicFiles)) {
    writeFileSync(join(app, "public", name), text);
  }
  const { output } = await build({
    ...{ root: app, configFile: false, logLevel: "warn", plugins: [plugin] },
    build: { write: false },
  });
  return output.map(({ fileName }) => fileName).sort();
}

test("the service worker has the name that the app gives, and a file of the site is left alone", async () => {
  assert.deepEqual(await filesOf(inpage()), ["index.html", "sw.js"]);
  assert.deepEqual(await filesOf(inpage({ serviceWorker: "/own.js" })), ["index.html", "own.js"]);
  assert.deepEqual(await filesOf(inpage({ serviceWorker: false })), ["index.html"]);
  assert.deepEqual(await filesOf(inpage(), { "sw.js": "// the site's" }), ["index.html"]);
});

test("pages are isolated unless the app says otherwise", () => {
  assert.equal(Object.keys(inpage().config().server.headers).length, 2);
  assert.deepEqual(inpage({ isolated: false }).config().preview.headers, {});
});

test("its types are those of a plugin", async () => {
  const file = join(temporaryFolder("inpage-vite-types-"), "config.ts");
  const path = (name) => JSON.stringify(join(root, name));
  writeFileSync(
    file,
    `import { defineConfig } from ${path("node_modules/vite/dist/node/index.js")};
import inpage from ${path("www/dist/node/vite.js")};
export default defineConfig({ plugins: [inpage({ isolated: false })] });
`,
  );
  const tsc = [
    join(root, "node_modules/typescript/bin/tsc"),
    "--noEmit",
    "--ignoreConfig",
    "--strict",
    "--skipLibCheck",
  ];
  const options = ["--module", "nodenext", "--target", "es2022", "--types", "node"];
  const types = ["--typeRoots", join(root, "node_modules/@types")];
  assert.equal(await run(process.execPath, [...tsc, ...options, ...types, file]), 0);
});
