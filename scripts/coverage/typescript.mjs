//! Runs the tests of the package's TypeScript with V8's counters, in Node and in Chromium, and sums executed lines by folder
//! of `www/src`. Prints nothing but the messages of the tests.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { mustRun, root, run } from "../process.mjs";

/** Tiers that run the package's scripts. */
const TIERS = ["browser", "delivery", "node", "real", "package", "docs"];
const own = join(root, "scripts/coverage");

async function provideReporter() {
  if (!existsSync(join(own, "node_modules/monocart-coverage-reports"))) {
    const install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    await mustRun("npm", install, { cwd: own });
  }
  return (await import("monocart-coverage-reports")).default;
}

/** The counts of one script of `www`, with its text and source map. */
function entry({ path, functions }) {
  const file = join(root, "www", path);
  if (!existsSync(file)) return undefined;
  const map = `${file}.map`;
  if (!existsSync(map)) return undefined;
  return {
    ...{ url: pathToFileURL(file).href, scriptId: path, functions },
    source: readFileSync(file, "utf8"),
    sourceMap: JSON.parse(readFileSync(map, "utf8")),
  };
}

/** Every module of `www/dist` as one that nobody loaded, so that lines that never ran count. */
function* unloaded() {
  const dist = join(root, "www/dist");
  for (const name of readdirSync(dist, { recursive: true })) {
    if (!name.endsWith(".js")) continue;
    const path = `dist/${name.split(sep).join("/")}`;
    const endOffset = readFileSync(join(dist, name), "utf8").length;
    const ranges = [{ startOffset: 0, endOffset, count: 0 }];
    yield { path, functions: [{ functionName: "", isBlockCoverage: true, ranges }] };
  }
}

/** The counts that Node's processes wrote for scripts of `www/dist`. */
function* countsOfNode(folder) {
  const start = pathToFileURL(join(root, "www/")).href;
  for (const name of readdirSync(folder)) {
    for (const { url, functions } of JSON.parse(readFileSync(join(folder, name), "utf8")).result)
      if (url.startsWith(`${start}dist/`)) yield { path: url.slice(start.length), functions };
  }
}

/**
 * Lines of TypeScript by folder of `www/src`, as a map of `{ lines, covered }`. `tiers` are those of `npm test`; if there are none,
 * all that run the package's scripts. Failed tests do not stop it: the counts are of what ran.
 */
export async function typeScriptByFolder(folder, tiers) {
  const reporter = await provideReporter();
  rmSync(folder, { recursive: true, force: true });
  const [node, chromium] = [join(folder, "node"), join(folder, "chromium")];
  for (const it of [node, chromium]) mkdirSync(it, { recursive: true });
  await run(process.execPath, ["scripts/test.mjs", ...(tiers.length > 0 ? tiers : TIERS)], {
    env: {
      NODE_V8_COVERAGE: node,
      INPAGE_COVERAGE: chromium,
      // Node 20 has its WebSocket behind a flag.
      ...(globalThis.WebSocket ? {} : { NODE_OPTIONS: "--experimental-websocket" }),
    },
  });
  return sumLines(reporter, node, chromium, join(folder, "report"));
}

/** Sums the lines of all counts that lie in the two folders. */
async function sumLines(reporter, node, chromium, outputDir) {
  const report = new reporter.CoverageReport({
    ...{ outputDir, reports: ["none"], logging: "error", clean: true },
    // Neither the glue of wasm-bindgen nor the embedded model's text.
    sourceFilter: (path) => path.startsWith("src/"),
  });
  const add = async (counts) => {
    const entries = [...counts].map(entry).filter(Boolean);
    if (entries.length > 0) await report.add(entries);
  };
  await add(unloaded());
  await add(countsOfNode(node));
  for (const name of readdirSync(chromium))
    await add(JSON.parse(readFileSync(join(chromium, name), "utf8")));
  const folders = new Map();
  for (const { sourcePath, summary } of (await report.generate()).files) {
    const [, folder, file] = sourcePath.split("/");
    const name = file === undefined ? "www/src/*.ts" : `www/src/${folder}`;
    const sum = folders.get(name) ?? { lines: 0, covered: 0 };
    sum.lines += summary.lines.total;
    sum.covered += summary.lines.covered;
    folders.set(name, sum);
  }
  return folders;
}
