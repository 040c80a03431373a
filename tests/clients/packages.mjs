//! Installs the client libraries of package.json in this folder, unless they are there.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "../../scripts/process.mjs";

const folder = join(root, "tests/clients");
const lock = () => readFileSync(join(folder, "package-lock.json"), "utf8");
/** The lock file that the installed packages are of. */
const installed = join(folder, "node_modules/.inpage-lock.json");

/** The versions of the official JavaScript client: name and package. The first is that of the repository's own tests. */
export const OPENAI_VERSIONS = [
  ["openai 6", "openai"],
  ["openai 7", "openai-7"],
];

/** Whether the libraries are installed now. Without npm's registry they may not be. */
export async function installPackages() {
  if (existsSync(installed) && readFileSync(installed, "utf8") === lock()) return true;
  const install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  if ((await run("npm", install, { cwd: folder })) !== 0) return false;
  writeFileSync(installed, lock());
  return true;
}
