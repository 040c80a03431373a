//! promptfoo and the Node that it needs, below target/: 470 MB, so only whole suites install it.

import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../../../scripts/process.mjs";
import { targetFolder } from "../../../scripts/setup/target.mjs";

export const PROMPTFOO_VERSION = "0.123.1";
/** promptfoo refuses older versions, the one that runs these tests among them. */
const NODE = `node-${process.platform}-${process.arch}`;
const NODE_VERSION = "22.23.3";
/** The database in which promptfoo keeps evaluations, in the form of this system. It is optional, as are hundreds of MB of others. */
const LIBSQL = `@libsql/${process.platform}-${process.arch}-gnu`;
const LIBSQL_VERSION = "0.5.29";
const LIMIT_MS = 600_000;

/** The programs in a folder with the packages. */
export function programs(folder) {
  const modules = join(folder, "node_modules");
  return {
    node: join(modules, NODE, "bin/node"),
    promptfoo: join(modules, "promptfoo/dist/src/entrypoint.js"),
  };
}

/** Installs promptfoo unless it is here: `{ folder }` or `{ reason }`. */
export async function installPromptfoo() {
  if (process.platform !== "linux") return { reason: "promptfoo is only installed on Linux" };
  const folder = join(targetFolder(), "promptfoo");
  const installed = join(folder, "node_modules/promptfoo/package.json");
  const isHere = () =>
    existsSync(installed) &&
    existsSync(programs(folder).node) &&
    JSON.parse(readFileSync(installed, "utf8")).version === PROMPTFOO_VERSION;
  if (isHere()) return { folder };
  mkdirSync(folder, { recursive: true });
  const packages = [
    `promptfoo@${PROMPTFOO_VERSION}`,
    `${NODE}@${NODE_VERSION}`,
    `${LIBSQL}@${LIBSQL_VERSION}`,
  ];
  const options = [
    "--omit=optional",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
  ];
  await run("npm", ["install", "--prefix", folder, ...options, ...packages], {
    timeout_ms: LIMIT_MS,
  });
  return isHere() ? { folder } : { reason: `npm cannot install ${packages.join(" ")}` };
}
