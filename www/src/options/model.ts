//! Resolves the `model` option to an id and the location of its files. Whether they are a model is checked in Rust.

import type { CrossOriginUse, ModelLocation } from "../exchange/protocol.js";
import { shownUrl } from "../model_source/store/cache_key.js";
import { embeddedModel } from "../package_files.js";
import { platform } from "../platform.js";
import {
  type HubOptions,
  hubUrl,
  isHubReference,
  refuseHubPage,
  refuseRepositoryName,
} from "./hub.js";
import { type FetchOptions, resolveRequests } from "./fetch.js";

/** A model, optionally with the id that requests use for it. */
export type ModelOption = ModelPlace | ModelWithId;

/**
 * `"embedded"`, a name of the catalog such as `qwen3-0.6b`, a URL (relative to the page), `hf:OWNER/NAME/FILE.gguf` or `hf:OWNER/NAME` (a folder) with an
 * optional `@REVISION`, or a local file. Outside of a browser, a path of a GGUF file or of a Hugging Face folder.
 */
export type ModelPlace = string | URL | Blob;

/** Exactly one of `url`, `file`, `folder` and `files`. */
export interface ModelWithId {
  /**
   * A GGUF file. For a split file (`NAME-00001-of-00003.gguf`), any part: the others are fetched from the same
   * folder. An array names the same file on several servers: the next one is used when one fails permanently.
   */
  url?: string | URL | readonly (string | URL)[];
  /** A GGUF file that is not split. */
  file?: Blob;
  /**
   * The URL of a Hugging Face folder with `config.json`, `tokenizer.json` and safetensors, such as `hf:OWNER/NAME`.
   * An array names the same folder on several servers. `load.quantize` chooses the type of its matrices on the GPU.
   */
  folder?: string | URL | readonly (string | URL)[];
  /** Files that the user picked: all parts of a split GGUF file, or all files of a Hugging Face folder. */
  files?: Iterable<File>;
  /** The model's id in requests; if omitted, the name of the file without its extension, or of the folder. */
  id?: string;
  /** False: do not cache the download for the next visit. */
  cache?: boolean;
  /** Names of query parameters that do not say which file it is. Those of credentials and signatures are recognized. */
  ignoreQuery?: readonly string[];
  /** The expected SHA-256 of the file in hexadecimal digits; of several files, an object by file name. */
  sha256?: string | Readonly<Record<string, string>>;
  /** Options of `fetch` for every request: headers, credentials, ... */
  fetch?: FetchOptions;
  /** The use of the storage that sites share, where the browser has one; it is not used if omitted. */
  crossOriginStorage?: CrossOriginStorageOptions;
}

/** Use of Cross-Origin Storage, a proposal for browsers. Only files whose SHA-256 is known beforehand are looked up or offered. */
export interface CrossOriginStorageOptions {
  /** Look for the model there before it is downloaded. */
  read?: boolean;
  /** Offer the model after a verified download: to the site's own origins, to the listed ones, or to all. */
  offer?: "same-site" | "*" | readonly string[];
}

/** A model's id in requests and where its files are. */
export interface ResolvedModel {
  id: string;
  location: ModelLocation;
}

/** @throws TypeError that says which option cannot be used */
export function resolveModel(
  option: ModelOption = "embedded",
  hub: HubOptions = {},
): ResolvedModel {
  if (typeof option === "string" || option instanceof URL) {
    return resolveModel({ url: option }, hub);
  }
  if (option instanceof Blob) return resolveModel({ file: option });
  const { file, files, folder, url = "embedded", cache = true, ignoreQuery = [] } = option;
  if (file !== undefined || files !== undefined) {
    refuseDownloadOptions(option);
  }
  if (files !== undefined) return resolveFiles([...files], option.id);
  if (file !== undefined) {
    const name = file instanceof File ? file.name : "local";
    const location = { kind: "files" as const, files: [{ name, blob: file }], ggufName: name };
    return { id: option.id ?? stem(name), location };
  }
  const places = [folder ?? url].flat() as (string | URL)[];
  const [first] = places;
  if (first === undefined) throw new TypeError(`${folder ? "folder" : "url"} names no URL`);
  const isEmbedded = folder === undefined && first === "embedded";
  const isFolder =
    folder !== undefined ||
    isHubFolder(first, hub) ||
    platform().locate?.(`${first}`)?.isFolder === true;
  const urls = places.map((place) => resolveUrl(place, hub, isFolder));
  const isOnDisk = isLocal(urls);
  if (isOnDisk) refuseDownloadOptions(option);
  const [at] = urls as [URL];
  const ggufName = isFolder ? undefined : (segments(at).at(-1) ?? "");
  const named = ggufName === undefined ? folderName(at) : isEmbedded ? "tales" : stem(ggufName);
  return {
    id: option.id ?? named,
    location: {
      kind: "url",
      urls: urls.map(({ href }) => href),
      ggufName,
      cache: cache && !isOnDisk,
      ignoreQuery: [...ignoreQuery],
      sha256: hashes(option.sha256, ggufName),
      requests: resolveRequests(option.fetch ?? {}, hub),
      crossOrigin: resolveCrossOrigin(option.crossOriginStorage),
    },
  };
}

function refuseDownloadOptions(option: ModelWithId): void {
  for (const name of ["sha256", "fetch", "ignoreQuery", "crossOriginStorage"] as const) {
    if (option[name] === undefined) continue;
    throw new TypeError(`${name} applies to downloads: it has no meaning for local files`);
  }
}

/** They are read in place and not cached. */
const isLocal = (urls: readonly URL[]) =>
  platform().openFile !== undefined && urls.every(({ protocol }) => protocol === "file:");

/** `hf:OWNER/NAME`, without a file in it. */
function isHubFolder(place: string | URL, hub: HubOptions): boolean {
  return isHubReference(`${place}`) && hubUrl(`${place}`, hub).pathname.endsWith("/");
}

/** The absolute URL of a file or folder; that of a folder ends with a slash. */
function resolveUrl(place: string | URL, hub: HubOptions, isFolder: boolean): URL {
  const text = `${place}`;
  const onDisk = platform().locate?.(text);
  let url: URL;
  if (isHubReference(text)) {
    url = hubUrl(text, hub);
  } else if (text === "embedded" && !isFolder) {
    url = embeddedModel();
  } else if (onDisk !== undefined) {
    ({ url } = onDisk);
  } else {
    if (!isFolder) refuseRepositoryName(text);
    refuseHubPage(text, hub);
    try {
      // Node has no document: there, URLs must be absolute.
      url = new URL(place, globalThis.document?.baseURI);
    } catch {
      throw new TypeError(`"${shownUrl(text)}" is not a URL`);
    }
  }
  if (isFolder && !url.pathname.endsWith("/")) url.pathname += "/";
  if (!isFolder && url.pathname.endsWith("/")) {
    throw new TypeError(`${shownUrl(text)} is a folder: write { folder: "${shownUrl(text)}" }`);
  }
  return url;
}

function hashes(
  sha256: ModelWithId["sha256"],
  ggufName: string | undefined,
): Record<string, string> {
  if (sha256 === undefined) return {};
  if (typeof sha256 === "string" && (ggufName === undefined || PART.test(ggufName))) {
    throw new TypeError(
      'the model has several files: give their hashes by name, as in sha256: { "model.safetensors": "..." }',
    );
  }
  const byName = typeof sha256 === "string" ? { [ggufName ?? ""]: sha256 } : sha256;
  return Object.fromEntries(
    Object.entries(byName).map(([name, hash]) => {
      if (!/^[0-9a-f]{64}$/i.test(hash)) {
        throw new TypeError(`sha256 of ${name} must be 64 hexadecimal digits, not "${hash}"`);
      }
      return [name, hash.toLowerCase()];
    }),
  );
}

function resolveCrossOrigin(
  option: CrossOriginStorageOptions | undefined,
): CrossOriginUse | undefined {
  if (option === undefined) return undefined;
  const { read = false, offer } = option;
  const isOrigin = (text: unknown) =>
    typeof text === "string" && URL.canParse(text) && new URL(text).origin === text;
  const isList = Array.isArray(offer) && offer.length > 0 && offer.every(isOrigin);
  if (offer !== undefined && offer !== "*" && offer !== "same-site" && !isList) {
    throw new TypeError(
      'crossOriginStorage.offer must be "same-site", "*" or a list of origins such as "https://a.example"',
    );
  }
  return { read, offer: isList ? [...offer] : offer };
}

/** The end of the name of a part. */
const PART = /-\d{5}-of-\d{5}\.gguf$/;

/**
 * The name by which a picked file is opened. A file of a subfolder that has the name of one above it keeps the subfolder:
 * `1_Pooling/config.json` beside `config.json`.
 */
function pickedName(file: File, files: readonly File[]): string {
  const pathOf = ({ webkitRelativePath, name }: File) => (webkitRelativePath || name).split("/");
  const path = pathOf(file);
  const isNested = files.some(
    (other) => other.name === file.name && pathOf(other).length < path.length,
  );
  return isNested ? path.slice(-2).join("/") : file.name;
}

function resolveFiles(files: File[], id: string | undefined): ResolvedModel {
  const isGguf = ({ name }: File) => /\.gguf$/i.test(name);
  const gguf = files.find(isGguf);
  const named = files.map((file) => ({ name: pickedName(file, files), blob: file }));
  const location = { kind: "files" as const, files: named, ggufName: gguf?.name };
  const folder = files[0]?.webkitRelativePath?.split("/").at(-2);
  return { id: id ?? (gguf ? stem(gguf.name) : folder || "local"), location };
}

/** The decoded segments of the path. */
function segments({ pathname }: URL): string[] {
  const parts = pathname.split("/").filter(Boolean);
  return parts.map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
}

/** The last segment of the path; on a model hub, the name of the model instead of its revision. */
function folderName(url: URL): string {
  const parts = segments(url);
  return (parts.at(-2) === "resolve" ? parts.at(-3) : parts.at(-1)) ?? "model";
}

function stem(fileName: string): string {
  return fileName.replace(PART, "").replace(/\.gguf$/i, "") || "model";
}
