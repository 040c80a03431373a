//! `inpage/vite`: what the plugin gives to Vite, besides what an app built with it shows.

import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { build, createServer, preview } from "vite";
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

/** The names of the files that Vite builds of a script that imports the package. */
async function filesOfScript(script) {
  const app = temporaryFolder("inpage-vite-embedded-");
  mkdirSync(join(app, "node_modules"));
  symlinkSync(root, join(app, "node_modules/inpage"), "junction");
  writeFileSync(join(app, "index.html"), '<script type="module" src="./main.js"></script>');
  writeFileSync(join(app, "main.js"), script);
  const config = { root: app, configFile: false, logLevel: "warn", build: { write: false } };
  const { output } = await build({ ...config, plugins: [inpage()] });
  return output.map(({ fileName }) => fileName);
}

test("the embedded model is in builds of apps that import it, and in no others", async () => {
  const use = 'import { createEngine } from "inpage"; window.engine = createEngine({ model: ';
  const other = await filesOfScript(`${use}"https://example.com/x.gguf" });`);
  assert.ok(other.some((name) => name.endsWith(".wasm")));
  assert.deepEqual(
    other.filter((name) => name.endsWith(".gguf")),
    [],
  );
  const embedded = `import { embedded } from "inpage/embedded"; ${use}embedded });`;
  const models = (await filesOfScript(embedded)).filter((name) => name.endsWith(".gguf"));
  assert.equal(models.length, 1);
});

/** Renders every page by itself, as the plugins of SvelteKit and Astro do. */
const framework = () => {
  const render = (_, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    response.end("<!doctype html><p>rendered</p>");
  };
  const configure = (server) => () => server.middlewares.use(render);
  return { name: "framework", configureServer: configure, configurePreviewServer: configure };
};

test("pages that a framework renders are isolated, too, unless the app says otherwise", async () => {
  const app = temporaryFolder("inpage-vite-framework-");
  mkdirSync(join(app, "dist"));
  for (const start of [createServer, preview]) {
    for (const isolated of [true, false]) {
      const server = await start({
        ...{ root: app, configFile: false, logLevel: "warn", appType: "custom" },
        plugins: [framework(), inpage({ isolated })],
        server: { port: 0, host: "127.0.0.1" },
        preview: { port: 0, host: "127.0.0.1" },
      });
      if (!server.httpServer.listening) await server.listen();
      const { port } = server.httpServer.address();
      const response = await fetch(`http://127.0.0.1:${port}/`);
      assert.match(await response.text(), /rendered/);
      const policies = ["opener", "embedder"].map((it) => `cross-origin-${it}-policy`);
      const found = policies.map((name) => response.headers.get(name));
      assert.deepEqual(found, isolated ? ["same-origin", "require-corp"] : [null, null]);
      await server.close();
    }
  }
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
