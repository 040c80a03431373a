//! Finds links of a built site that lead nowhere: to files that are not there, and to anchors that no element has.

import { existsSync, readFileSync, statSync } from "node:fs";
import { join, posix, relative } from "node:path";
import { filesUnder } from "../stamp.mjs";

const entities = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };
const decoded = (text) =>
  decodeURIComponent(text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name) => entities[name]));

/** One line for each broken link of the HTML files in `folder`, whose pages are served below `base`. */
export function brokenLinks(folder, base = "/") {
  const files = filesUnder(folder).filter((file) => file.endsWith(".html"));
  const anchors = new Map();
  const anchorsOf = (file) => {
    if (!anchors.has(file)) {
      const found = readFileSync(file, "utf8").matchAll(/\bid="([^"]*)"/g);
      anchors.set(file, new Set([...found].map(([, id]) => decoded(id))));
    }
    return anchors.get(file);
  };
  return files.flatMap((file) => {
    const page = posix.join(base, relative(folder, file).replaceAll("\\", "/"));
    const links = readFileSync(file, "utf8").matchAll(/\b(?:href|src)="([^"]*)"/g);
    const targets = new Set([...links].map(([, target]) => decoded(target)));
    return [...targets].flatMap((target) => {
      if (/^([a-z]+:|\/\/)/i.test(target)) return [];
      const url = new URL(target, `http://site${page}`);
      const path = decodeURIComponent(url.pathname);
      if (!path.startsWith(base)) return [`${page}: ${target} is outside of the site`];
      let to = join(folder, path.slice(base.length));
      if (existsSync(to) && statSync(to).isDirectory()) to = join(to, "index.html");
      if (!existsSync(to)) to = `${to}.html`;
      if (!existsSync(to)) return [`${page}: ${target} does not exist`];
      const anchor = decodeURIComponent(url.hash.slice(1));
      const isThere = anchor === "" || !to.endsWith(".html") || anchorsOf(to).has(anchor);
      return isThere ? [] : [`${page}: ${target} has no such anchor`];
    });
  });
}
