//! Files on disk, for programs that may read them: a page may not, and its `file:` URLs fail like any other request.

import { platform } from "../../platform.js";
import { NoSuchFile } from "../store/failure.js";
import type { ModelSource } from "../../byte_source.js";

/**
 * The file that exists first of these places; undefined if they are not on disk.
 *
 * @throws NoSuchFile if none exists
 */
export async function openLocalFile(urls: readonly string[]): Promise<ModelSource | undefined> {
  const { openFile } = platform();
  if (openFile === undefined || !urls.every((url) => url.startsWith("file:"))) return undefined;
  for (const url of urls) {
    const source = await openFile(url);
    if (source !== undefined) return source;
  }
  throw new NoSuchFile(`there is no file ${urls.join(" and no file ")}`);
}
