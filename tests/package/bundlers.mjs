//! The bundlers of `bundlers/package.json`, and how each builds an app. What an app needs is in docs/bundlers.md, whose files are used here.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root, run } from "../../scripts/process.mjs";

const folder = join(root, "tests/package/bundlers");
const lock = () => readFileSync(join(folder, "package-lock.json"), "utf8");
const BUILD_LIMIT_MS = 2 * 60_000;
/** The lock file that the installed packages are of. */
const installed = join(folder, "node_modules/.inpage-lock.json");

/** Installs the bundlers, unless they are there: whether they are now. Without npm's registry they may not be. */
export async function installBundlers() {
  if (existsSync(installed) && readFileSync(installed, "utf8") === lock()) return true;
  // Not `npm ci`: it refuses a lock file without the optional packages of every platform, which registries do not all have.
  const install = [
    "install",
    "--no-save",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
  ];
  if ((await run("npm", install, { cwd: folder })) !== 0) return false;
  writeFileSync(installed, lock());
  return true;
}

/** The path of a program of an installed package. */
export const programOf = (name) => join(folder, "node_modules/.bin", name);

const installedModule = async (name) =>
  import(pathToFileURL(createRequire(join(folder, "package.json")).resolve(name)).href);

const RECIPES = readFileSync(join(root, "docs/bundlers.md"), "utf8");

/** The text of a file in docs/bundlers.md. */
export function recipe(name) {
  const heading = `// ${name} ✓\n`;
  const start = RECIPES.indexOf(heading);
  if (start < 0) throw new Error(`docs/bundlers.md has no file ${name}`);
  return RECIPES.slice(start + heading.length, RECIPES.indexOf("```", start));
}

/** Runs a program in the app's folder; throws with what it printed if it fails. */
async function runIn(app, program, args) {
  let output = "";
  const onOutput = (text) => {
    output += text;
  };
  const status = await run(program, args, { cwd: app, timeout_ms: BUILD_LIMIT_MS, onOutput });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} failed:\n${output}`);
}

const compile = (compiler, config) => (app) =>
  runIn(app, process.execPath, [join(folder, "compile.mjs"), compiler, config]);

/** The address of a page of the app that needs no build: that of Vite's development server. */
export async function startVite(name, app) {
  const vite = name === "vite" ? await import("vite") : await installedModule(name);
  const server = await vite.createServer({ root: app, logLevel: "warn", server: { port: 0 } });
  await server.listen();
  const { port } = server.httpServer.address();
  return { origin: `http://localhost:${port}`, close: () => server.close() };
}

/** Each bundler: the files of its recipe, and what builds the app in a folder into its folder `dist`. */
export const BUNDLERS = {
  "Vite 8": {
    files: ["vite.config.js"],
    build: async (app) => (await import("vite")).build({ root: app, logLevel: "warn" }),
  },
  "Vite 7": {
    files: ["vite.config.js"],
    build: async (app) => (await installedModule("vite-7")).build({ root: app, logLevel: "warn" }),
  },
  webpack: {
    files: ["webpack.config.mjs"],
    build: compile("webpack", "webpack.config.mjs"),
  },
  Rspack: {
    files: ["rspack.config.mjs"],
    build: compile("@rspack/core", "rspack.config.mjs"),
  },
  esbuild: {
    files: ["build.mjs", "src/engine.js"],
    build: (app) => runIn(app, process.execPath, ["build.mjs"]),
  },
  Parcel: {
    files: ["package.json"],
    build: (app) => runIn(app, programOf("parcel"), ["build", "index.html", "--no-cache"]),
  },
};
