//! The Markdown of the repository as pages of the site: which files, where they go, and links between them. A link to a
//! file that is no page becomes its text.

import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, posix } from "node:path";
import { root } from "../process.mjs";

/** The order of the pages in the sidebar. Documents that are not named here are found in `docs`, and come last in the first group. */
const USE = [
  ["README.md", "index"],
  "docs/guide.md",
  "docs/loading.md",
  "docs/catalog.md",
  "docs/devices.md",
  "docs/serving.md",
  "docs/several-models.md",
  "docs/tools.md",
  "docs/images.md",
  "docs/node.md",
  "docs/clients.md",
  "docs/bundlers.md",
  "docs/deployment.md",
  "docs/troubleshooting.md",
  "docs/models.md",
  "docs/demo.md",
  "docs/performance.md",
];
const REFERENCE = ["docs/api.md"];
const DEVELOPMENT = [
  ["CONTRIBUTING.md", "contributing"],
  ["ARCHITECTURE.md", "architecture"],
  "docs/development.md",
  "docs/adding-*.md",
  "docs/specification.md",
  "docs/conformance.md",
  "docs/reliability.md",
  "docs/security.md",
  "docs/training.md",
  ["CHANGELOG.md", "changelog"],
  "docs/log.md",
];

/** The pages that `list` names and that exist: `{ source, page }`, from the root of the repository and of the site. */
function pagesOf(list) {
  return list
    .flatMap((entry) => {
      if (Array.isArray(entry)) return [{ source: entry[0], page: entry[1] }];
      const [, start, end] = /^docs\/([^*]*)(?:\*(.*))?$/.exec(entry);
      const names =
        end === undefined
          ? [start]
          : documents().filter((name) => name.startsWith(start) && name.endsWith(end));
      return names.map((name) => ({ source: `docs/${name}`, page: name.replace(/\.md$/, "") }));
    })
    .filter(({ source }) => existsSync(join(root, source)));
}

const documents = () =>
  readdirSync(join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .sort();

const titleOf = (text) => /^# (.+)$/m.exec(text)?.[1].replaceAll("`", "");

/** The groups of the sidebar: `{ use, reference, development }`, lists of `{ source, page, title }`. */
export function groups() {
  const [use, reference, development] = [USE, REFERENCE, DEVELOPMENT].map(pagesOf);
  const named = new Set([...use, ...reference, ...development].map(({ source }) => source));
  for (const name of documents()) {
    if (!named.has(`docs/${name}`))
      use.push({ source: `docs/${name}`, page: name.replace(/\.md$/, "") });
  }
  for (const entry of [...use, ...reference, ...development]) {
    entry.title = titleOf(readFileSync(join(root, entry.source), "utf8")) ?? entry.page;
  }
  return { use, reference, development };
}

const LINK = /(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)/g;

/**
 * The text of a document with the links of its page. `pageOf` maps paths of the repository to entries of `groups`; `addImage(path)` is
 * called for each image and returns its address.
 */
export function relink(text, source, pageOf, addImage) {
  const replace = (part) =>
    part.replace(LINK, (whole, isImage, label, target, anchor = "") => {
      if (target === "" || target.includes("://") || target.startsWith("mailto:")) return whole;
      const path = posix.join(posix.dirname(source), target).replace(/\/$/, "");
      if (isImage) return `![${label}](${addImage(path)})`;
      const page = pageOf.get(path);
      if (page === undefined) return label;
      // A site has no file names: the title takes the place of a name.
      const words = label === target || label === path ? page.title : label;
      return `[${words}](./${page.page}${anchor})`;
    });
  // Links in code are text. A label may contain code, so whole links are found first.
  return text
    .split(/(^```[\s\S]*?^```)/m)
    .map((part, index) => (index % 2 === 1 ? part : replace(part)))
    .join("");
}

/** Writes the pages and their images into `folder`. */
export function writePages(folder) {
  const { use, reference, development } = groups();
  const all = [...use, ...reference, ...development];
  const pageOf = new Map(all.map((entry) => [entry.source, entry]));
  const addImage = (path) => {
    const to = join(folder, "images", posix.basename(path));
    mkdirSync(dirname(to), { recursive: true });
    copyFileSync(join(root, path), to);
    return `./images/${posix.basename(path)}`;
  };
  for (const { source, page } of all) {
    const text = relink(readFileSync(join(root, source), "utf8"), source, pageOf, addImage);
    writeFileSync(join(folder, `${page}.md`), page === "index" ? homePage(text) : text);
  }
}

/** The sections of the README below the head of the site's first page, which says what comes before them. */
function homePage(readme) {
  const head = readFileSync(join(root, "website/index.md"), "utf8");
  return `${head}\n${readme.slice(readme.indexOf("\n## "))}`;
}
