//! The meaning of the argument that names a model, and the addresses of hubs.

import { isOfFolder } from "../dist/node/local_place.js";

/** The model option for a place on the network, or `undefined` for a path. */
export function remoteModel(place) {
  if (place.startsWith("hf:")) return { url: place };
  return /^https?:\/\//i.test(place) ? modelAt(new URL(place)) : undefined;
}

function modelAt(url) {
  const { pathname } = url;
  const name = pathname.slice(pathname.lastIndexOf("/") + 1);
  // The root of a repository on a model hub.
  if (/\/resolve\/[^/]+$/.test(pathname)) return { folder: url };
  if (name !== "" && !isOfFolder(name)) return { url };
  url.pathname = pathname.slice(0, pathname.length - name.length);
  return { folder: url };
}

/** The `hub` option from the environment variables that other programs for model hubs use. */
export function hubOf({ HF_ENDPOINT, HF_TOKEN }) {
  return { ...(HF_ENDPOINT && { baseURL: HF_ENDPOINT }), ...(HF_TOKEN && { token: HF_TOKEN }) };
}
