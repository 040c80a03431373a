//! The site: where pages are, navigation, and how headings get their anchors. `npm run docs` writes the pages before.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";
import { groups } from "../../scripts/docs/pages.mjs";

const folder = fileURLToPath(new URL("..", import.meta.url));
const { version } = JSON.parse(readFileSync(join(folder, "../package.json"), "utf8"));

/** Anchors as forges make them of headings, because the documents link to those. */
const slugify = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");

const links = (pages) =>
  pages.map(({ title, page }) => ({
    text: page === "index" ? "Overview" : title,
    link: `/${page.replace(/^index$/, "")}`,
  }));

/** The pages that were generated of the package's types, by kind. */
function typeGroups() {
  const reference = join(folder, "dist/pages/reference");
  if (!existsSync(reference)) return [];
  return readdirSync(reference, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => ({
      text: name.replaceAll("-", " ").replace(/^./, (first) => first.toUpperCase()),
      collapsed: true,
      items: readdirSync(join(reference, name))
        .map((file) => file.replace(/\.md$/, ""))
        .map((type) => ({ text: type, link: `/reference/${name}/${type}` })),
    }));
}

const { use, reference, development } = groups();
const first = use.find(({ page }) => page === "index");

export default defineConfig({
  title: "inpage",
  description: first?.title ?? "",
  lang: "en",
  base: process.env.INPAGE_DOCS_BASE ?? "/",
  srcDir: "dist/pages",
  outDir: "dist/site",
  cacheDir: "dist/cache",
  lastUpdated: false,
  metaChunk: true,
  head: [["link", { rel: "icon", href: "data:," }]],
  markdown: {
    anchor: { slugify },
    // Tags and expressions of Vue in the documents are text.
    config: (md) => {
      const { fence, html_inline, text } = md.renderer.rules;
      md.renderer.rules.html_inline = (tokens, index, ...rest) => {
        const { content } = tokens[index];
        if (/^<\/?(a|br|Playground)\b/.test(content)) return html_inline(tokens, index, ...rest);
        return md.utils.escapeHtml(content);
      };
      md.renderer.rules.text = (...args) => text(...args).replaceAll("{{", "&#123;&#123;");
      // The documents tag examples as `json request` and `json error CODE`, for their tests.
      md.renderer.rules.fence = (tokens, index, ...rest) => {
        const token = tokens[index];
        const language = token.info.trim().split(" ")[0];
        // Forges draw these diagrams. The library for it is larger than everything else that the site needs.
        token.info = language === "mermaid" ? "txt" : language;
        const block = fence(tokens, index, ...rest);
        if (language !== "mermaid") return block;
        return `<details><summary>Diagram, as its Mermaid source</summary>${block}</details>`;
      };
    },
  },
  // The tables of the reference need the width.
  transformPageData(page) {
    if (page.relativePath.startsWith("reference/")) page.frontmatter.aside = false;
  },
  themeConfig: {
    nav: [
      {
        text: "Guide",
        link: "/guide",
        activeMatch: "^/(guide|clients|bundlers|deployment|models|troubleshooting)",
      },
      { text: "Playground", link: "/playground" },
      { text: "Endpoint", link: "/api" },
      { text: "TypeScript", link: "/reference/", activeMatch: "^/reference/" },
      { text: version, link: "/changelog" },
    ],
    sidebar: [
      { text: "Use", items: [...links(use), { text: "Playground", link: "/playground" }] },
      {
        text: "Reference",
        items: [
          ...links(reference),
          { text: "TypeScript", link: "/reference/", collapsed: true, items: typeGroups() },
        ],
      },
      { text: "Development", collapsed: true, items: links(development) },
    ],
    outline: { level: [2, 3] },
    search: { provider: "local" },
  },
});
