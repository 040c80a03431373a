//! The models of the gallery: those of the catalog and the one of the page. What is stored of each.

import { catalog } from "../../dist/catalog/index.js";
import { EMBEDDED } from "./choice.js";
import { isFileOf, urlOf } from "./places.js";

/**
 * @import { CachedFile } from "../../dist/index.js"
 * @import { CatalogModel, CatalogSampling } from "../../dist/catalog/index.js"
 * @import { Choice } from "./choice.js"
 *
 * @typedef {object} Entry
 * @property {string} name
 * @property {string} title
 * @property {readonly string[]} tasks
 * @property {number} bytes of the download
 * @property {number | undefined} memoryBytes with a context of 4,096 tokens
 * @property {string} licence
 * @property {readonly string[]} languages
 * @property {string} goodFor
 * @property {Choice} choice
 * @property {CatalogSampling | undefined} sampling that its makers recommend
 * @property {string[]} places URLs of its files and folders; none if it is part of the page
 *
 * The files of an entry that the browser has stored.
 *
 * @typedef {{ kind: "none" } | { kind: "part" | "whole", bytes: number, keys: string[] }} Stored
 */

/** @type {Entry} */
const TALES = {
  name: EMBEDDED.name,
  title: "Tales",
  tasks: ["stories"],
  bytes: 0,
  memoryBytes: undefined,
  licence: "MIT",
  languages: ["en"],
  goodFor: "Part of this page, 2.4 MB: tells short stories, and is there at once.",
  choice: EMBEDDED,
  sampling: undefined,
  places: [],
};

/** From small to large. */
export const ENTRIES = [TALES, ...catalog.map(entryOf)].sort((a, b) => a.bytes - b.bytes);

/**
 * @param {CatalogModel} model
 * @returns {Entry}
 */
function entryOf(model) {
  const { name, title, tasks, bytes, memory, licence, languages, goodFor, sampling } = model;
  const { model: file, projector, mirrors = [] } = model.files;
  const option = mirrors.length > 0 ? { url: [file, ...mirrors] } : file;
  const tower = projector === undefined ? {} : { projector };
  const places = [file, ...(projector === undefined ? [] : [projector])].map(urlOf);
  return {
    ...{ name, title, tasks, bytes, licence, languages, goodFor, sampling, places },
    memoryBytes: memory.context4k,
    choice: { name: title, option, ...tower, catalogName: name },
  };
}

/**
 * @param {Entry} entry
 * @param {CachedFile[]} files that the browser stores
 * @returns {Stored}
 */
export function storedOf({ places }, files) {
  const own = places.map((place) => files.filter(({ key }) => isFileOf(key, place)));
  const all = own.flat();
  if (all.length === 0) return { kind: "none" };
  const isWhole = own.every((some) => some.length > 0 && some.every(({ complete }) => complete));
  const bytes = all.reduce((sum, { storedBytes }) => sum + storedBytes, 0);
  return { kind: isWhole ? "whole" : "part", bytes, keys: all.map(({ key }) => key) };
}
