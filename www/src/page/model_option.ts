//! What `createEngine` takes as a model, made definite: an id and where the files are.

import type { ModelLocation } from "../exchange/protocol.js";

/** A model by itself, or with the id that requests name it by. */
export type ModelOption = ModelPlace | ModelWithId;

/** `"embedded"`, a URL (relative to the page), or a local file. */
export type ModelPlace = string | URL | Blob;

/** One of `url`, `file`, `folder` and `files`. */
export interface ModelWithId {
  /**
   * A GGUF file. Of a split one (`NAME-00001-of-00003.gguf`) any part: the others are taken from beside
   * it.
   */
  url?: string | URL;
  /** A GGUF file in one part. */
  file?: Blob;
  /**
   * The URL of a Hugging Face folder: `config.json`, `tokenizer.json` and safetensors lie in it, such as
   * in `https://huggingface.co/ORGANIZATION/MODEL/resolve/main`. What its matrices become on the GPU,
   * `load.quantize` says.
   */
  folder?: string | URL;
  /** Files that the user picked: all parts of a split GGUF file, or those of a Hugging Face folder. */
  files?: Iterable<File>;
  /** The name of the file without its ending, or that of the folder, if left out. */
  id?: string;
  /** False: do not keep a download for the next visit. */
  cache?: boolean;
}

export function resolveModel(option: ModelOption = "embedded"): {
  id: string;
  location: ModelLocation;
} {
  if (typeof option === "string" || option instanceof URL) return resolveModel({ url: option });
  if (option instanceof Blob) return resolveModel({ file: option });
  const { file, files, folder, url = "embedded", cache = true } = option;
  // Node has no document, and takes absolute URLs only.
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
      ? // In one piece, for bundlers to recognise.
        new URL("../../models/tales.gguf", import.meta.url)
      : new URL(url, baseUrl);
  const ggufName = segments(absolute).at(-1) ?? "";
  const id = option.id ?? (url === "embedded" ? "tales" : stem(ggufName));
  return { id, location: { kind: "url", url: absolute.href, cache, ggufName } };
}

/** The ending of one of several parts. */
const PART = /-\d{5}-of-\d{5}\.gguf$/;

function resolveFiles(files: File[], id: string | undefined): ReturnType<typeof resolveModel> {
  const isGguf = ({ name }: File) => /\.gguf$/i.test(name);
  const gguf = files.find(isGguf);
  const named = files.map((file) => ({ name: file.name, blob: file }));
  const location = { kind: "files" as const, files: named, ggufName: gguf?.name };
  const folder = files[0]?.webkitRelativePath.split("/").at(-2);
  return { id: id ?? (gguf ? stem(gguf.name) : folder || "local"), location };
}

/** The parts of the path, readable. */
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

/** The last part of the path; on a hub that of the model, not of its revision. */
function folderName(url: URL): string {
  const parts = segments(url);
  return (parts.at(-2) === "resolve" ? parts.at(-3) : parts.at(-1)) ?? "model";
}

function stem(fileName: string): string {
  return fileName.replace(PART, "").replace(/\.gguf$/i, "") || "model";
}
