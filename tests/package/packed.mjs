//! The package as users get it: packed, and installed into a folder.

import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../scripts/process.mjs";

export const run = (program, args, cwd) =>
  execFileSync(program, args, { cwd, encoding: "utf8", shell: process.platform === "win32" });
export const npm = (args, cwd) => run("npm", [...args, "--loglevel=error"], cwd);

/** Packs the package into a folder: what npm says about it. */
export const pack = (folder) =>
  JSON.parse(npm(["pack", "--json", "--pack-destination", folder], root))[0];

/** Puts a packed package into `node_modules` of an app, as npm would: it has no dependencies. */
export function unpack(archive, app) {
  const target = join(app, "node_modules/inpage");
  mkdirSync(target, { recursive: true });
  run("tar", ["-xzf", archive, "-C", target, "--strip-components=1"], app);
}
