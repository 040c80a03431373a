//! Resolves paths and `file:` URLs of models and adapters. The contents of the files are not read here.

import { statSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { PlaceOnDisk } from "../platform.js";

/** Begins with the scheme of a URL or with `hf:`. The one letter of a Windows drive is no scheme. */
const SCHEME = /^[a-z][a-z\d+.-]+:/i;

/** True for the names of files of a Hugging Face folder, which stand for the folder. */
export const isOfFolder = (name: string) =>
  /^config\.json$|\.safetensors(\.index\.json)?$/.test(name);

/** Relative paths are relative to the working directory. Undefined for other URLs. */
export function localPlace(place: string): PlaceOnDisk | undefined {
  const isFileUrl = /^file:/i.test(place);
  if (!isFileUrl && (SCHEME.test(place) || place === "embedded")) return undefined;
  const path = isFileUrl ? fileURLToPath(place) : place;
  const url = pathToFileURL(path);
  const found = statSync(path, { throwIfNoEntry: false });
  const exists = found !== undefined;
  if (isOfFolder(basename(path))) return { url: new URL("./", url), isFolder: true, exists };
  const isFolder = found?.isDirectory() ?? false;
  if (isFolder && !url.pathname.endsWith("/")) url.pathname += "/";
  return { url, isFolder, exists };
}
