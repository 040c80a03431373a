//! Opens the files of a model to inspect it: of files with tensors only the requested bytes are fetched, and
//! nothing is cached.

import type { ModelLocation } from "../exchange/protocol.js";
import { blobSource } from "./sources/blob.js";
import { type HeadSource, openHead } from "./sources/head.js";
import { fetchWhole } from "./transfer/http.js";
import { openLocalFile } from "./sources/local_file.js";
import { openFirst } from "./sources/mirrors.js";
import { locatedFiles } from "./sources/named_files.js";
import { Redaction } from "./transfer/redact.js";
import { NO_OPTIONS, fetchWith } from "./transfer/requests.js";
import type { ModelFiles } from "../byte_source.js";

/** Must be closed after the last read. */
export interface HeadFiles extends ModelFiles {
  close(): Promise<void>;
}

/**
 * Headers are read one after the other: opening a file cancels the rest of the previous answer, because browsers
 * open only a few connections to one server.
 *
 * @throws TypeError naming the first file, if it cannot be opened
 */
export async function openHeads(location: ModelLocation, signal: AbortSignal): Promise<HeadFiles> {
  let last: HeadSource | undefined;
  const fetchFile = fetchWith(location.kind === "url" ? location.requests : NO_OPTIONS);
  const isWithTensors = (name: string) =>
    location.ggufName !== undefined || name.endsWith(".safetensors");
  const files = await locatedFiles(location, {
    async url({ name, urls }) {
      const local = await openLocalFile(urls);
      if (local !== undefined) return local;
      // The other files are small, and servers that compress them do not send their size.
      if (!isWithTensors(name)) {
        const open = (url: string) =>
          new Redaction(url).failure(fetchWhole(url, fetchFile, signal));
        return blobSource(await openFirst(urls, open, signal));
      }
      await last?.close();
      const open = async (url: string) => {
        const redaction = new Redaction(url);
        const head = await redaction.failure(openHead(url, fetchFile, signal));
        return { ...redaction.source(head), close: () => head.close() };
      };
      last = await openFirst(urls, open, signal);
      return last;
    },
    blob: blobSource,
  });
  return Object.assign(files, { close: async () => last?.close() });
}
