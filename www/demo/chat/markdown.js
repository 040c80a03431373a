//! Markdown as elements. A library divides the text into tokens; this file makes elements of them, never HTML from text.
//! So no text can become a script, and HTML in a text is shown as text. Nothing is fetched: an image is shown as a link.

import { lexer } from "../vendor/marked.js";

/** @import { Token, Tokens } from "../vendor/marked.js" */

/** Lists and quotes in each other up to this depth have elements; a browser lays out thousands of levels slowly. */
const MAX_DEPTH = 16;

const LINK_PROTOCOLS = ["http:", "https:", "mailto:"];

/** The library leaves character references as they are. */
const CHARACTERS = new Map([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["apos", "'"],
  ["#39", "'"],
  ["nbsp", "\u00a0"],
]);

/**
 * @param {string} text
 * @returns {DocumentFragment}
 */
export function markdown(text) {
  const fragment = document.createDocumentFragment();
  try {
    fragment.append(...blocks(lexer(text, { gfm: true, breaks: true }), 0));
  } catch {
    // The library refuses some text, such as quotes that are nested thousands of levels deep.
    fragment.replaceChildren(element("p", text));
  }
  return fragment;
}

/**
 * @param {string} name
 * @param {...(Node | string)} children
 */
function element(name, ...children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

/**
 * @param {Token[]} tokens
 * @param {number} depth of lists and quotes around them
 * @returns {Node[]}
 */
function blocks(tokens, depth) {
  return tokens.flatMap((token) => block(token, depth));
}

/**
 * @param {Token} token
 * @param {number} depth
 * @returns {Node[]}
 */
function block(token, depth) {
  if (depth > MAX_DEPTH) return [element("p", token.raw.trim())];
  switch (token.type) {
    case "space":
    case "def":
      return [];
    case "hr":
      return [element("hr")];
    case "heading":
      // The page's own headings end at the second level.
      return [element(`h${Math.min(token.depth + 2, 6)}`, ...inlines(token.tokens ?? []))];
    case "paragraph":
      return [element("p", ...inlines(token.tokens ?? []))];
    case "code":
      return [code(/** @type {Tokens.Code} */ (token))];
    case "blockquote":
      return [element("blockquote", ...blocks(token.tokens ?? [], depth + 1))];
    case "list":
      return [list(/** @type {Tokens.List} */ (token), depth + 1)];
    case "table":
      return [table(/** @type {Tokens.Table} */ (token))];
    case "html":
      return [element("p", token.raw.trimEnd())];
    default:
      return inline(token);
  }
}

/** @param {Tokens.Code} token */
function code({ text, lang }) {
  const pre = element("pre", element("code", text));
  const word = lang?.match(/^\S+/)?.[0];
  if (word) pre.dataset.language = word;
  // It scrolls sideways, and must do so by keyboard too.
  pre.tabIndex = 0;
  return pre;
}

/**
 * @param {Tokens.List} token
 * @param {number} depth of what is in it
 */
function list({ ordered, start, items }, depth) {
  const made = document.createElement(ordered ? "ol" : "ul");
  if (made instanceof HTMLOListElement && typeof start === "number") made.start = start;
  made.append(...items.map(({ tokens }) => element("li", ...blocks(tokens, depth))));
  return made;
}

/** @param {Tokens.Table} token */
function table({ header, rows }) {
  const cells = (/** @type {string} */ name, /** @type {Tokens.TableCell[]} */ row) =>
    row.map(({ tokens, align }) => {
      const cell = element(name, ...inlines(tokens));
      if (align) cell.classList.add(`align-${align}`);
      return cell;
    });
  const body = rows.map((row) => element("tr", ...cells("td", row)));
  const made = element(
    "table",
    element("thead", element("tr", ...cells("th", header))),
    element("tbody", ...body),
  );
  const scroll = element("div", made);
  scroll.className = "scroll";
  scroll.tabIndex = 0;
  return scroll;
}

/**
 * @param {Token[]} tokens
 * @returns {Node[]}
 */
function inlines(tokens) {
  return tokens.flatMap((token) => inline(token));
}

/**
 * @param {Token} token
 * @returns {Node[]}
 */
function inline(token) {
  switch (token.type) {
    case "strong":
    case "em":
    case "del":
      return [element(token.type, ...inlines(token.tokens ?? []))];
    case "codespan":
      return [element("code", token.text)];
    case "br":
      return [element("br")];
    case "link":
      return [link(token.href, inlines(token.tokens ?? []), token.raw)];
    case "image":
      return [link(token.href, [new Text(`[${token.text || "image"}]`)], token.raw)];
    case "checkbox":
      return [new Text(token.checked ? "☑ " : "☐ ")];
    case "escape":
      return [new Text(token.text)];
    case "text":
      if (token.tokens) return inlines(token.tokens);
      return [new Text(withCharacters(token.text))];
    default:
      return [new Text(token.raw)];
  }
}

/**
 * @param {string} href
 * @param {Node[]} children
 * @param {string} raw shown where the address is not one to follow
 * @returns {Node}
 */
function link(href, children, raw) {
  const url = absolute(href);
  if (url === undefined || !LINK_PROTOCOLS.includes(url.protocol)) return new Text(raw);
  const made = document.createElement("a");
  made.href = url.href;
  made.target = "_blank";
  made.rel = "noopener noreferrer";
  made.append(...children);
  return made;
}

/** @param {string} href */
function absolute(href) {
  try {
    return new URL(href);
  } catch {
    // Relative to what?
    return undefined;
  }
}

/** @param {string} text */
function withCharacters(text) {
  return text.replace(/&(#?\w+);/g, (whole, name) => CHARACTERS.get(name) ?? whole);
}
