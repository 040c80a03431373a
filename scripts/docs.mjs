//! `npm run docs`: builds the documentation as a static site into website/dist/site. Installs the site's own dependencies
//! (`website/package-lock.json`), which nothing else needs. `-- --base /PATH/` for a site that is not at the root of its host;
//! `-- --serve` shows it.

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "./build.mjs";
import { brokenLinks } from "./docs/links.mjs";
import { writePages } from "./docs/pages.mjs";
import { isProgram, main, Remediable, root, run, say } from "./process.mjs";
import { serve } from "./server.mjs";
import { setUpForBuild } from "./setup.mjs";

const website = join(root, "website");
const PLAYGROUND = "website/playground.md";
const pages = join(website, "dist/pages");
export const site = join(website, "dist/site");
/** The lock file that the installed packages are of. */
const installed = join(website, "node_modules/.inpage-lock.json");
const program = (path) => join(website, "node_modules", path);

/** Installs the generators, unless they are there. False where the registry cannot be reached. */
export async function installGenerators() {
  const lock = readFileSync(join(website, "package-lock.json"), "utf8");
  if (existsSync(installed) && readFileSync(installed, "utf8") === lock) return true;
  say("set-up: generators of the documentation (npm ci --ignore-scripts in website)");
  const install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  if ((await run("npm", install, { cwd: website })) !== 0) return false;
  writeFileSync(installed, lock);
  return true;
}

/** Runs a program of the site's dependencies in its folder; its output is shown only if it fails. */
async function generate(name, args, env = {}) {
  const start = performance.now();
  let output = "";
  const onOutput = (text) => {
    output += text;
  };
  const options = { cwd: website, env: { NO_COLOR: "1", ...env }, onOutput };
  if ((await run(process.execPath, args, options)) !== 0) {
    throw new Remediable(`${name} failed`, output);
  }
  say(`  ${name} ${((performance.now() - start) / 1000).toFixed(1)} s`);
}

/** The package with its model, which the playground runs, and the demo, which is at `inpage/www/demo/`. */
function copyPackage() {
  const to = join(pages, "public");
  // The package finds its model by its own folders.
  for (const folder of ["www/dist", "www/models", "www/demo", "www/measure"]) {
    const isShown = (path) => !/\.(map|ts)$|dist[\\/]node$/.test(path);
    cpSync(join(root, folder), join(to, "inpage", folder), { recursive: true, filter: isShown });
  }
}

/** Builds the site from the documents and the built package. Throws if a link leads nowhere. */
export async function buildSite({ base = "/" } = {}) {
  say("build: documentation");
  rmSync(join(website, "dist"), { recursive: true, force: true });
  mkdirSync(pages, { recursive: true });
  writePages(pages);
  cpSync(join(root, PLAYGROUND), join(pages, basename(PLAYGROUND)));
  await generate("typedoc", [program("typedoc/bin/typedoc"), "--options", "typedoc.json"]);
  copyPackage();
  const vitepress = [program("vitepress/bin/vitepress.js"), "build"];
  await generate("vitepress", vitepress, { INPAGE_DOCS_BASE: base });
  const broken = brokenLinks(site, base);
  if (broken.length > 0) throw new Remediable("links lead nowhere", broken.join("\n"));
}

if (isProgram(import.meta.url)) {
  await main(async (args) => {
    const options = {
      base: { type: "string", default: "/" },
      serve: { type: "boolean", default: false },
    };
    const { values } = parseArgs({ args, options });
    await build(await setUpForBuild());
    if (!(await installGenerators())) {
      throw new Remediable(
        "the generators could not be installed",
        "Is the npm registry reachable?",
      );
    }
    await buildSite(values);
    say(`\nThe site is in ${site}`);
    if (!values.serve) return 0;
    const { origin } = await serve({ mounts: { [values.base]: `${site}/` }, port: 8018 });
    process.stdout.write(`${origin}${values.base}\n`);
    return new Promise(() => {});
  });
}
