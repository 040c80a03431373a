//! The README of the package: its links to files that are not packed lead to the repository. `npm pack` runs this before it packs, and with
//! `--restore` afterwards.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isProgram, main, root } from "./process.mjs";

const README = join(root, "README.md");

/** The address of the repository for people, from package.json's `repository`. */
export const pageOf = ({ url }) => url.replace(/^git\+/, "").replace(/\.git$/, "");

const folderOf = ({ repository, version }, view) => `${pageOf(repository)}/${view}/v${version}/`;

/** The text with absolute links: to pages of the repository, and for images to the files themselves. */
export function withAbsoluteLinks(text, description) {
  return text.replaceAll(/(!?\[[^\]]*\]\()(?!\w+:|#)([^)\s]+)/g, (_, start, path) => {
    const view = start.startsWith("!") ? "raw" : "blob";
    return `${start}${folderOf(description, view)}${path}`;
  });
}

/** Undoes `withAbsoluteLinks`, so that no copy of the file has to be kept. */
export const withRelativeLinks = (text, description) =>
  ["raw", "blob"].reduce(
    (it, view) => it.replaceAll(`](${folderOf(description, view)}`, "]("),
    text,
  );

if (isProgram(import.meta.url)) {
  await main(async ([option]) => {
    const description = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const change = option === "--restore" ? withRelativeLinks : withAbsoluteLinks;
    writeFileSync(README, change(readFileSync(README, "utf8"), description));
    return 0;
  });
}
