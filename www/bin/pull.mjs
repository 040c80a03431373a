//! `inpage pull`: downloads the files of a model into the cache, which the other commands and programs of this user share.

import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import "../dist/node/index.js";
import { entryLock, entryName } from "../dist/model_source/store/cache_layout.js";
import { openModel } from "../dist/model_source/open.js";
import { DownloadProgress } from "../dist/model_source/transfer/progress.js";
import { withFiles } from "../dist/options/catalog_name.js";
import { resolveModel } from "../dist/options/model.js";
import { platform } from "../dist/platform.js";
import init, { inspectModel } from "../dist/wasm/inpage.js";
import { hubOf, remoteModel } from "./model_place.mjs";
import { progressLine } from "./progress_line.mjs";

export const USAGE = `Usage: inpage pull MODEL ... [options]

Downloads models into the cache, so that inpage serve and other programs start without the network. MODEL is a name of
the catalog (inpage models), a URL of a GGUF file or of a Hugging Face folder, or hf:OWNER/NAME/FILE.gguf or
hf:OWNER/NAME, with @REVISION at the end. The environment variables HF_ENDPOINT, HF_TOKEN and INPAGE_CACHE_DIR are used.
A model that this version does not run is refused before its weights are downloaded. A download that was interrupted
continues.

  -h, --help           this text

Exit status: 0 the models are there, 1 one could not be downloaded, 2 wrong usage.
`;

const FAILED = 1;
const WRONG_USAGE = 2;
const PIECE_BYTES = 8 << 20;

/** Runs the command; returns the exit status. */
export async function pull(args) {
  let places;
  try {
    const options = { help: { type: "boolean", short: "h" } };
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    if (values.help) {
      process.stdout.write(USAGE);
      return 0;
    }
    if (positionals.length === 0) throw new Error("a model is needed");
    places = positionals;
  } catch (error) {
    process.stderr.write(`inpage pull: ${error.message}\n\n${USAGE}`);
    return WRONG_USAGE;
  }
  try {
    const module = new URL("../dist/wasm/inpage_bg.wasm", import.meta.url);
    await init({ module_or_path: await readFile(module) });
    for (const place of places) {
      const bytes = await pullModel(place);
      process.stdout.write(`${place}: ${(bytes / 1e6).toFixed(1)} MB are in the cache\n`);
    }
    return 0;
  } catch (error) {
    const cause = error.cause instanceof Error ? ` (${error.cause.message})` : "";
    process.stderr.write(`inpage pull: ${error.message}${cause}\n`);
    return FAILED;
  }
}

/** Returns the size of the files. */
async function pullModel(place) {
  const { model, projector } = await withFiles(remoteModel(place) ?? place);
  const hub = hubOf(process.env);
  const locations = [model, projector ?? []].flat().map((it) => resolveModel(it, hub).location);
  for (const { urls } of locations) {
    if (urls.some((url) => url.startsWith("file:"))) throw new Error(`${place} is on this machine`);
  }
  const onProgress = progressLine();
  const progress = new DownloadProgress(onProgress);
  let bytes = 0;
  for (const location of locations) bytes += await pullFiles(location, progress);
  onProgress({ phase: "ready", loadedBytes: bytes });
  return bytes;
}

/** Returns the size of the files. */
async function pullFiles(location, progress) {
  const keys = new Set();
  const recordingKeys = {
    of(key) {
      keys.add(key);
      return progress.of(key);
    },
  };
  let reason;
  const onStorage = (report) => {
    reason = report.reason;
  };
  const failed = new AbortController();
  try {
    const options = { progress: recordingKeys, signal: failed.signal, onStorage };
    const bytes = await readAll(await openModel(location, options));
    // The last bytes may have been read before they are stored.
    for (const key of keys) {
      await platform().locks?.request(entryLock(await entryName(key)), () => {});
    }
    if (reason !== undefined) throw new Error(reason);
    return bytes;
  } catch (error) {
    failed.abort(error);
    throw error;
  }
}

/** Inspection opens all files that a load opens; then each is read to its end. Returns their size. */
async function readAll(files) {
  const sources = new Set();
  const recording = {
    ggufName: files.ggufName,
    async open(name) {
      const source = await files.open(name);
      if (source) sources.add(source);
      return source;
    },
  };
  const report = await inspectModel(recording, {});
  if (!report.runs) throw new Error(report.refusal.message);
  for (const source of sources) {
    for (let at = 0; at < source.size; at += PIECE_BYTES) {
      await source.read(at, Math.min(PIECE_BYTES, source.size - at));
    }
  }
  return files.openedBytes;
}
