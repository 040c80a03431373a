//! The README of the package: its links to files that are not packed lead to the repository. `npm pack` runs this before it packs, and with
//! `--restore` afterwards.

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isProgram, main, root } from "./process.mjs";
import { targetFolder } from "./setup/target.mjs";

const README = join(root, "README.md");
const original = () => join(targetFolder(), "README.before-pack.md");

/** The address of the repository for people, from package.json's `repository`. */
export const pageOf = ({ url }) => url.replace(/^git\+/, "").replace(/\.git$/, "");

/** The text with absolute links: to pages of the repository, and for images to the files themselves. */
export function withAbsoluteLinks(text, { repository, version }) {
  const page = pageOf(repository);
  return text.replaceAll(/(!?\[[^\]]*\]\()(?!\w+:|#)([^)\s]+)/g, (_, start, path) => {
    const view = start.startsWith("!") ? "raw" : "blob";
    return `${start}${page}/${view}/v${version}/${path}`;
  });
}

if (isProgram(import.meta.url)) {
  await main(async ([option]) => {
    const kept = original();
    if (option === "--restore") {
      if (existsSync(kept)) renameSync(kept, README);
      return 0;
    }
    const text = readFileSync(README, "utf8");
    const description = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    mkdirSync(targetFolder(), { recursive: true });
    rmSync(kept, { force: true });
    writeFileSync(kept, text);
    writeFileSync(README, withAbsoluteLinks(text, description));
    return 0;
  });
}
