//! Writes compressed copies of the files that a page downloads beside them (`.br`, `.gz`), for hosts that send such files as they are.
//! Run by `npm pack`. A copy is written again only if its file has changed: the wasm module takes a minute.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { NOTICES } from "./notices.mjs";
import { isProgram, main, Remediable, root } from "./process.mjs";
import { digest, filesUnder, isFresh, writeStamp } from "./stamp.mjs";

const DIST = "www/dist";
/** The scripts that pages load; the other modules of the package are for bundlers and for Node. */
const SCRIPTS = ["index.js", "catalog/models.js", "worker.js", "sw.js", "wasm/inpage.js"];

const compressors = {
  br: (content) =>
    promisify(brotliCompress)(content, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
        [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
        [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
      },
    }),
  gz: (content) => promisify(gzip)(content, { level: constants.Z_BEST_COMPRESSION }),
};

/** The files of the package that pages download, relative to `www/dist`. */
export function downloadedFiles() {
  const folder = join(root, DIST, "wasm");
  const modules = filesUnder(folder).filter((file) => file.endsWith(".wasm"));
  if (modules.length === 0)
    throw new Remediable("www/dist has no wasm module", "Run: npm run build");
  return [...modules.map((file) => `wasm/${file.slice(folder.length + 1)}`), ...SCRIPTS];
}

/** Writes the copies that are missing or old. */
export async function compressPackage() {
  await Promise.all(downloadedFiles().map(compressFile));
}

async function compressFile(name) {
  const path = `${DIST}/${name}`;
  const copies = Object.keys(compressors).map((suffix) => `${path}.${suffix}`);
  const [stamp, inputs] = [`compressed-${name.replaceAll("/", "-")}`, digest([path])];
  if (isFresh(stamp, inputs, copies)) return;
  const content = readFileSync(join(root, path));
  for (const [suffix, compress] of Object.entries(compressors)) {
    writeFileSync(join(root, `${path}.${suffix}`), await compress(content));
  }
  writeStamp(stamp, inputs);
}

if (isProgram(import.meta.url)) {
  await main(async () => {
    // Before `npm pack`: licences of what is in the package require them.
    if (!existsSync(join(root, NOTICES)))
      throw new Remediable(`${NOTICES} is missing`, "Run: npm run build");
    await compressPackage();
  });
}
