//! What `createEngine` takes as a model, made definite: an id and where the bytes are.

import type { ModelLocation } from "./protocol.js";

/** A model by itself, or with the id that requests name it by. */
export type ModelOption = ModelPlace | ModelWithId;

/** `"embedded"`, a URL (relative to the page), or a local file. */
export type ModelPlace = string | URL | Blob;

export interface ModelWithId {
  url?: string | URL;
  file?: Blob;
  /** The name of the file without its ending, if left out. */
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
  const { file, url = "embedded", cache = true } = option;
  if (file !== undefined) {
    const name = file instanceof File ? file.name : "local";
    return { id: option.id ?? stem(name), location: { kind: "blob", blob: file } };
  }
  const absolute =
    url === "embedded"
      ? // In one piece, for bundlers to recognise.
        new URL("../models/tales.gguf", import.meta.url)
      : new URL(url, document.baseURI);
  const id = option.id ?? (url === "embedded" ? "tales" : stem(lastSegment(absolute)));
  return { id, location: { kind: "url", url: absolute.href, cache } };
}

function lastSegment({ pathname }: URL): string {
  const segment = pathname.split("/").filter(Boolean).at(-1) ?? "";
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function stem(fileName: string): string {
  return fileName.replace(/\.gguf$/i, "") || "model";
}
