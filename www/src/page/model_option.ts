//! Resolves the `model` option to an id and the location of its files.

import type { ModelLocation } from "../exchange/protocol.js";

/** A model, optionally with the id that requests use for it. */
export type ModelOption = ModelPlace | ModelWithId;

/** `"embedded"`, a URL (relative to the page), or a local file. */
export type ModelPlace = string | URL | Blob;

/** Exactly one of `url`, `file`, `folder` and `files`. */
export interface ModelWithId {
  /**
   * A GGUF file. For a split file (`NAME-00001-of-00003.gguf`), any part: the others are fetched from the same
   * folder.
   */
  url?: string | URL;
  /** A GGUF file that is not split. */
  file?: Blob;
  /**
   * The URL of a Hugging Face folder with `config.json`, `tokenizer.json` and safetensors, such as
   * `https://huggingface.co/ORGANIZATION/MODEL/resolve/main`. `load.quantize` chooses the type of its matrices on
   * the GPU.
   */
  folder?: string | URL;
  /** Files that the user picked: all parts of a split GGUF file, or all files of a Hugging Face folder. */
  files?: Iterable<File>;
  /** The model's id in requests; if omitted, the name of the file without its extension, or of the folder. */
  id?: string;
  /** False: do not cache the download for the next visit. */
  cache?: boolean;
}

export function resolveModel(option: ModelOption = "embedded"): {
  id: string;
  location: ModelLocation;
} {
  if (typeof option === "string" || option instanceof URL) return resolveModel({ url: option });
  if (option instanceof Blob) return resolveModel({ file: option });
  const { file, files, folder, url = "embedded", cache = true } = option;
  // Node has no document: there, URLs must be absolute.
  const baseUrl = globalThis.document?.baseURI;
  if (files !== undefined) return resolveFiles([...files], option.id);
  if (file !== undefined) {
    const name = file instanceof File ? file.name : "local";
    const location = { kind: "files" as const, files: [{ name, blob: file }], ggufName: name };
    return { id: option.id ?? stem(name), location };
  }
  if (folder !== undefined) {
    const absolute = new URL(folder, baseUrl);
    if (!absolute.pathname.endsWith("/")) absolute.pathname += "/";
    const id = option.id ?? folderName(absolute);
    return { id, location: { kind: "url", url: absolute.href, cache, ggufName: undefined } };
  }
  const absolute =
    url === "embedded"
      ? // Bundlers recognise this expression.
        new URL("../../models/tales.gguf", import.meta.url)
      : new URL(url, baseUrl);
  const ggufName = segments(absolute).at(-1) ?? "";
  const id = option.id ?? (url === "embedded" ? "tales" : stem(ggufName));
  return { id, location: { kind: "url", url: absolute.href, cache, ggufName } };
}

/** The end of the name of a part. */
const PART = /-\d{5}-of-\d{5}\.gguf$/;

function resolveFiles(files: File[], id: string | undefined): ReturnType<typeof resolveModel> {
  const isGguf = ({ name }: File) => /\.gguf$/i.test(name);
  const gguf = files.find(isGguf);
  const named = files.map((file) => ({ name: file.name, blob: file }));
  const location = { kind: "files" as const, files: named, ggufName: gguf?.name };
  const folder = files[0]?.webkitRelativePath.split("/").at(-2);
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
