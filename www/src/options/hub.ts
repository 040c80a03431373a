//! Model hubs: what `hf:owner/name/...` stands for, and remedies for what is often written instead. Makes no
//! requests.

import { shownUrl } from "../model_source/store/cache_key.js";

/** The hub where `hf:` names are looked up. */
export interface HubOptions {
  /** `https://huggingface.co` if omitted; a mirror of it or a hub of your own. */
  baseURL?: string | URL;
  /**
   * An access token, for private and gated models. It is sent to the origin of `baseURL` only, never stored, and not
   * part of the cache key.
   */
  token?: string;
}

const HUGGING_FACE = "https://huggingface.co";

/** `owner/name`, a path in the repository, and a revision at the end. */
const REFERENCE = /^hf:(?:\/\/)?([\w.-]+)\/([\w.-]+)(?:\/([^@?#]+))?(?:@([^?#]+))?$/;

/** The name of a repository without `hf:` before it. */
const BARE = /^(?!\.)[\w.-]+\/(?!.*\.gguf$)[\w.-]+$/i;

/** The path of a web page that shows a repository, or a file or folder in it. */
const HUB_PAGE = /^([\w.-]+\/[\w.-]+)(?:\/?|\/(blob|tree)\/([^/?#]+)\/?([^?#]*))(?:[?#].*)?$/;

export const isHubReference = (text: string) => text.startsWith("hf:");

/** The base URL of the hub, with a slash at its end. */
export function hubBase({ baseURL = HUGGING_FACE }: HubOptions): URL {
  let base: URL;
  try {
    base = new URL(baseURL, globalThis.document?.baseURI);
  } catch {
    throw new TypeError(
      `hub.baseURL must be a URL such as "${HUGGING_FACE}", not "${shownUrl(baseURL)}"`,
    );
  }
  if (!base.pathname.endsWith("/")) base.pathname += "/";
  return base;
}

/**
 * The URL of a file, or of a folder (it ends with a slash).
 *
 * @throws TypeError that says what to write
 */
export function hubUrl(reference: string, hub: HubOptions): URL {
  const [, owner, name, path = "", revision = "main"] = REFERENCE.exec(reference) ?? [];
  const isMisplaced = path === "" && /\.gguf$/i.test(revision);
  if (owner === undefined || name === undefined || isMisplaced) {
    throw new TypeError(
      `"${shownUrl(reference)}" is not understood: write "hf:OWNER/NAME/FILE.gguf" for a GGUF file, or "hf:OWNER/NAME" for a folder of safetensors, with "@REVISION" at the end for a branch, a tag or a commit`,
    );
  }
  const segments = path.split("/").filter(Boolean).map(encodeURIComponent);
  const isFile = /\.gguf$/i.test(path);
  const base = hubBase(hub);
  // The slash of a revision such as `refs/pr/1` is part of its name.
  base.pathname += [owner, name, "resolve", encodeURIComponent(revision), ...segments].join("/");
  if (!isFile) base.pathname += "/";
  return base;
}

/** @throws TypeError for a bare repository where a file is meant; it says what to write */
export function refuseRepositoryName(place: string): void {
  if (!BARE.test(place)) return;
  throw new TypeError(
    `"${place}" looks like a repository of a model hub: write "hf:${place}/FILE.gguf" for a GGUF file, "hf:${place}" for a folder of safetensors, or "./${place}" for a path relative to this page`,
  );
}

/** @throws TypeError for a web page of the hub where a file or folder is meant; it says what to write */
export function refuseHubPage(place: string, hub: HubOptions): void {
  const base = hubBase(hub).href;
  const [, repository, , revision = "main", path] =
    (place.startsWith(base) && HUB_PAGE.exec(place.slice(base.length))) || [];
  if (repository === undefined) return;
  const at = revision === "main" ? "" : `@${revision}`;
  const file = path ? `hf:${repository}/${path}${at}` : `hf:${repository}/FILE.gguf${at}`;
  const folder = path
    ? ""
    : ` for a GGUF file, or "hf:${repository}${at}" for a folder of safetensors`;
  throw new TypeError(
    `${shownUrl(place)} is a web page of the model hub and not a file: write "${file}"${folder}`,
  );
}
