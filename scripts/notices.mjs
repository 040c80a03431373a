//! Writes the notices of the third parties whose code is in the package: each crate that is linked into the wasm modules and each
//! npm package that is bundled, with the licence that applies and its text. Which licences are permitted is decided here.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { capture, isProgram, main, Remediable, root, say } from "./process.mjs";
import { digest, dropStamp, filesUnder, isFresh, writeStamp } from "./stamp.mjs";

/** Relative to the repository. */
export const NOTICES = "www/dist/THIRD_PARTY_LICENSES.txt";
const INPUTS = [
  ...["Cargo.toml", "Cargo.lock", "src/cpu/Cargo.toml", "package-lock.json", "rust-toolchain.toml"],
  ...["www/src", "scripts/notices.mjs", "scripts/notices"],
];
/** Texts for packages that come without. */
const KEPT_TEXTS = join(root, "scripts/notices");
/** The scripts that are bundles, from their sources. */
const BUNDLES = ["www/src/index.ts", "www/src/sw.ts", "www/src/worker/run.ts"];
/** The kernels of the CPU are a module of their own. */
const MODULES = [
  "--package",
  "inpage",
  "--package",
  "inpage-cpu",
  "--features",
  "inpage-cpu/module",
];

/**
 * The permitted licences by their SPDX identifiers, with a pattern that finds each in a file. Of several that a package offers, the
 * first one applies: the text of Apache-2.0 is the same in all packages.
 */
export const LICENSES = {
  "Apache-2.0": /Apache License\W+Version 2\.0/i,
  "Apache-2.0 WITH LLVM-exception": /LLVM Exceptions to the Apache 2\.0 License/i,
  MIT: /Permission is hereby granted, free of charge, to any\s+person obtaining a copy/i,
  "BSD-2-Clause": /Redistribution and use in source and binary forms/i,
  "BSD-3-Clause": /Redistribution and use in source and binary forms/i,
  Zlib: /Altered source versions must be plainly marked/i,
  ISC: /Permission to use, copy, modify, and(?:\/or)? distribute/i,
  "BSL-1.0": /Boost Software License/i,
  "Unicode-3.0": /UNICODE LICENSE V3/i,
  // Requires that readers are told where the source code is.
  "MPL-2.0": /Mozilla Public License,?\s+Version 2\.0/i,
};
const ORDER = Object.keys(LICENSES);

/**
 * The licences that apply of those that an SPDX expression offers; "/" is an old spelling of OR.
 *
 * @throws Error if none that is permitted suffices, or if it is no expression
 */
export function licensesOf(expression) {
  const tokens = expression.match(/[()]|\/|[^\s()/]+/g) ?? [];
  const next = (...wanted) => wanted.includes(tokens[0]) && tokens.shift();
  /** The best choice, a list, or undefined. */
  const either = () => {
    const choices = [both()];
    while (next("OR", "/")) choices.push(both());
    const rank = (choice) => Math.max(...choice.map((license) => ORDER.indexOf(license)));
    return choices.filter((choice) => choice !== undefined).sort((a, b) => rank(a) - rank(b))[0];
  };
  const both = () => {
    const parts = [single()];
    while (next("AND")) parts.push(single());
    return parts.includes(undefined) ? undefined : parts.flat();
  };
  const single = () => {
    if (next("(")) {
      const inner = either();
      if (!next(")")) throw new Error(`"${expression}" lacks a parenthesis`);
      return inner;
    }
    let license = tokens.shift();
    if (license === undefined)
      throw new Error(`"${expression}" is not permitted: it ends too early`);
    if (next("WITH")) license += ` WITH ${tokens.shift()}`;
    return ORDER.includes(license) ? [license] : undefined;
  };
  const chosen = either();
  if (tokens.length > 0 || chosen === undefined) {
    throw new Error(`the licence "${expression}" is not permitted: see scripts/notices.mjs`);
  }
  return [...new Set(chosen)];
}

/** The crates that are linked into the modules. Macros are among them: part of the code is written by them. */
export function linkedCrates() {
  const target = ["--target", "wasm32-unknown-unknown", "--edges", "normal"];
  const format = ["--prefix", "none", "--format", "{p}\t{l}\t{r}"];
  const args = ["tree", "--locked", ...MODULES, ...target, ...format];
  // The first time, cargo downloads what it lacks.
  const tree = capture("cargo", args, { timeout: 600_000, maxBuffer: 2 ** 26 });
  if (tree === undefined) {
    throw new Remediable(
      "cargo cannot list the crates of the wasm modules",
      `Is crates.io reachable? Try it yourself:\n    cargo ${args.slice(0, -2).join(" ")}`,
    );
  }
  const sources = crateSources();
  const crates = new Map();
  for (const line of tree.split(/\r?\n/)) {
    const [id, license, repository] = line.replace(/ \(\*\)$/, "").split("\t");
    // Our own crates have a path.
    const [, name, version, path] = /^(\S+) v(\S+)(?: \((?!proc-macro)(.*)\))?/.exec(id) ?? [];
    if (name === undefined || path !== undefined) continue;
    const folder = sources.map((source) => join(source, `${name}-${version}`)).find(existsSync);
    const url = `https://crates.io/crates/${name}/${version}`;
    crates.set(`${name} ${version}`, { name, version, license, folder, url, repository });
  }
  return [...crates.values()];
}

/** Cargo has a folder of sources for each registry. */
function crateSources() {
  const folder = resolve(process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "registry/src");
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
}

/** The npm packages whose code is in a bundle. `entries` are paths relative to the repository. */
export async function bundledPackages(entries = BUNDLES) {
  // Not at the top: the first set-up runs without the npm packages.
  const esbuild = await import("esbuild");
  const { metafile } = await esbuild.build({
    entryPoints: entries,
    absWorkingDir: resolve(root),
    ...{ bundle: true, write: false, metafile: true, outdir: "out", format: "esm" },
    // The glue is written by wasm-bindgen, which is among the crates.
    external: ["*/wasm/inpage.js", "node:*"],
    logLevel: "warning",
  });
  const packages = new Map();
  for (const file of Object.keys(metafile.inputs)) {
    const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? [];
    if (folder === undefined) continue;
    const path = join(root, folder, "package.json");
    const { name, version, license, repository } = JSON.parse(readFileSync(path, "utf8"));
    const url = `https://www.npmjs.com/package/${name}/v/${version}`;
    const repositoryUrl = repository?.url ?? repository;
    const known = { name, version, license, folder: dirname(path), url, repository: repositoryUrl };
    packages.set(`${name} ${version}`, known);
  }
  return [...packages.values()];
}

/** The files of a package that are about its licence: `[name, text]`. */
function legalFiles({ folder }) {
  if (folder === undefined) return [];
  return readdirSync(folder)
    .filter((name) => /^(?:un)?licen[cs]e|^(?:copying|notice|copyright)/i.test(name))
    .flatMap((name) => filesUnder(join(folder, name)))
    .map((path) => [path.slice(folder.length + 1), readFileSync(path, "utf8")]);
}

/** The text of a licence of a package: its own file, or the general text. */
function textOf(component, license) {
  const kept = (name) => readFileSync(join(KEPT_TEXTS, `${name}.txt`), "utf8");
  // The terms are the same in every package: a file differs only in what its appendix says for an example.
  if (license === "Apache-2.0") return kept(license);
  const own = legalFiles(component).find(([, text]) => LICENSES[license].test(text));
  if (own) return own[1];
  if (license === "MPL-2.0") return kept(license);
  if (license === "MIT") {
    return kept(license).replace("<year> <copyright holders>", `the authors of ${component.name}`);
  }
  if (license === "Apache-2.0 WITH LLVM-exception") {
    return `${kept("Apache-2.0")}\n${kept("LLVM-exception")}`;
  }
  throw new Error(`${component.name} has no file with the text of ${license}`);
}

/** A package says in these files what its licence does not. */
const isNotice = (name) => /^(?:notice|copyright|license-details)/i.test(name);

/** The standard library is part of each module, and no package. */
function standardLibrary() {
  const version = capture("rustc", ["--version"])?.split(" ")[1] ?? "of rust-toolchain.toml";
  return `The Rust standard library ${version} (https://github.com/rust-lang/rust) and the crates in it (compiler_builtins, dlmalloc,
hashbrown, libm and others) are licensed under MIT OR Apache-2.0; parts of compiler_builtins also under
Apache-2.0 WITH LLVM-exception.`;
}

const RULE = "=".repeat(100);
const section = (title, text) => `${RULE}\n${title}\n${RULE}\n\n${text.trim()}\n`;

/** The text of the notices of packages: `{ name, version, license, folder, url, repository }`. */
export function noticesOf(components) {
  /** Text without its layout -> title, text and the packages that have it. */
  const texts = new Map();
  const add = (title, text, id) => {
    const key = `${title} ${text.replace(/\s+/g, " ").trim()}`;
    if (!texts.has(key)) texts.set(key, { title, text, ids: [] });
    texts.get(key).ids.push(id);
  };
  const sorted = [...components].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const [list, withSource] = [[], []];
  for (const component of sorted) {
    const id = `${component.name} ${component.version}`;
    if (!component.license) throw new Error(`${id} names no licence`);
    const licenses = licensesOf(component.license);
    list.push(`${id}  ${licenses.join(" AND ")}  ${component.url}`);
    if (licenses.includes("MPL-2.0")) {
      withSource.push(`${id}  ${component.repository || component.url}`);
    }
    for (const license of licenses) add(license, textOf(component, license), id);
    for (const [name, text] of legalFiles(component)) if (isNotice(name)) add("Notice", text, id);
  }
  const exception = { license: "Apache-2.0 WITH LLVM-exception", name: "the standard library" };
  add(exception.license, textOf(exception, exception.license), exception.name);
  const parts = [
    "Third-party software in the npm package inpage\n\nThe wasm modules and scripts of this package contain code of the packages below, unchanged. Each is named with the licence under\nwhich it is used here, and where its source code is. The texts of the licences follow.\n",
    section("Packages", `${list.join("\n")}\n\n${standardLibrary()}`),
  ];
  if (withSource.length > 0) {
    const about = "The source code of these packages is available under the terms of MPL-2.0:";
    parts.push(section("Source code", `${about}\n${withSource.join("\n")}`));
  }
  const order = (title) => (ORDER.includes(title) ? ORDER.indexOf(title) : ORDER.length);
  for (const { title, text, ids } of [...texts.values()].sort(
    (a, b) => order(a.title) - order(b.title),
  )) {
    parts.push(section(`${title}\n\n${wrapped(ids.join(", "))}`, text));
  }
  return parts.join("\n");
}

/** Breaks a list at 100 characters. */
const wrapped = (text) => text.replace(/(.{1,100})(?: |$)/g, "$1\n").trim();

/** Writes the notices, unless they are fresh. Without the sources of a crate, they are not complete: in CI that is an error. */
export async function buildNotices() {
  const inputs = digest(INPUTS);
  if (isFresh("notices", inputs, [NOTICES])) return;
  dropStamp("notices");
  const start = performance.now();
  say("build: notices of third parties");
  const components = [...linkedCrates(), ...(await bundledPackages())];
  const missing = components.filter(({ folder }) => folder === undefined).map(({ name }) => name);
  if (missing.length > 0) {
    const problem = `cargo has no sources of ${missing.join(", ")}`;
    const remedy = "Run: cargo fetch --locked --target wasm32-unknown-unknown";
    if (process.env.CI) throw new Remediable(problem, remedy);
    say(`  not complete: ${problem}. ${remedy}`);
  }
  mkdirSync(dirname(join(root, NOTICES)), { recursive: true });
  writeFileSync(join(root, NOTICES), noticesOf(components));
  say(`  ${components.length} packages, ${((performance.now() - start) / 1000).toFixed(1)} s`);
  if (missing.length === 0) writeStamp("notices", inputs);
}

if (isProgram(import.meta.url)) await main(buildNotices);
