//! `npm run release -- --dry-run`: checks everything of a release that can be checked without publishing: version, changelog, packed
//! files (notices among them), sizes, `publint` and `attw`. Without `--dry-run` it also wants a clean tree and a dated section of the
//! changelog, and says how the release is made: a tag, from which .github/workflows/publish.yml publishes.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "./build.mjs";
import { NOTICES } from "./notices.mjs";
import { pageOf } from "./packed_readme.mjs";
import { capture, isProgram, main, Remediable, root, run, say } from "./process.mjs";
import { setUpForBuild } from "./setup.mjs";
import { temporaryFolder } from "./temporary_folder.mjs";

/** Programs that check packages. They are downloaded when they are used, because nothing else needs them. */
const PUBLINT = "publint@0.3.25";
const ATTW = "@arethetypeswrong/cli@0.18.5";

/** The faults of the package's description. `repository` is that of the workflow, if one runs. */
export function faultsOfDescription(description, repository) {
  const faults = [];
  const { version, description: text } = description;
  if (!/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version ?? "")) faults.push(`version ${version}`);
  if (!text || text.length > 200) faults.push("description: 1 to 200 characters");
  for (const field of ["license", "homepage", "keywords"])
    if (!description[field]?.length) faults.push(`${field} is missing`);
  const url = description.repository?.url;
  if (!/^git\+https:\/\/.+\.git$/.test(url ?? "")) {
    faults.push("repository.url is not git+https://HOST/OWNER/NAME.git");
  } else if (repository && !pageOf(description.repository).endsWith(`/${repository}`)) {
    faults.push(`repository.url is ${url}, but this is ${repository}: npm refuses its provenance`);
  }
  return faults;
}

/** The faults of the changelog. A dry run accepts a section that is not dated. */
export function faultsOfChangelog(text, version, isDry) {
  const [, first, state] = /^## (\S+) \(([^)]+)\)$/m.exec(text) ?? [];
  if (first !== version) return [`its first section is not of ${version}`];
  if (/^\d{4}-\d\d-\d\d$/.test(state)) return [];
  return isDry && state === "unreleased" ? [] : [`${version} has no date: (YYYY-MM-DD)`];
}

/** The faults of the list of packed files: a missing target of package.json, or what a package must not have. */
export function faultsOfFiles(files, description) {
  const flat = (target) =>
    typeof target === "string" ? [target] : Object.values(target).flatMap(flat);
  const targets = [...flat(description.exports), ...flat(description.bin), description.main];
  const needed = targets.filter((path) => !path.includes("*")).map((it) => it.replace("./", ""));
  const missing = ["README.md", "LICENSE", NOTICES, ...needed].filter((it) => !files.includes(it));
  const stray = files.filter((file) =>
    /(^|\/)(\.(?!d\.ts)[^/]*|node_modules|tests?)(\/|$)|\.(tgz|log|env|pem)$/.test(file),
  );
  return [
    ...missing.map((file) => `${file} is not packed`),
    ...stray.map((file) => `${file} is packed`),
  ];
}

/** Runs a program that checks; what it printed if it fails. */
async function faultsOfProgram(program, args, cwd = root) {
  let output = "";
  const onOutput = (text) => {
    output += text;
  };
  const status = await run(program, args, { cwd, onOutput });
  return status === 0 ? [] : [output.trim() || `${program} ended with status ${status}`];
}

async function checks(isDry) {
  const read = (file) => readFileSync(join(root, file), "utf8");
  const description = JSON.parse(read("package.json"));
  const { version } = description;
  const folder = temporaryFolder("inpage-release-");
  const packed = capture("npm", ["pack", "--json", "--pack-destination", folder], {
    timeout: 600_000,
    maxBuffer: 1 << 26,
  });
  if (packed === undefined) throw new Remediable("npm pack failed");
  // The output of its scripts may come first.
  const [{ filename, files }] = JSON.parse(packed.slice(packed.indexOf("[\n")));
  const names = files.map(({ path }) => path);
  const tool = (name, ...args) =>
    faultsOfProgram("npm", ["exec", "--yes", "--package", name, "--", ...args], folder);
  const all = {
    description: faultsOfDescription(description, process.env.GITHUB_REPOSITORY),
    "version in the scripts": read("www/src/exchange/version.ts").includes(`"${version}"`)
      ? []
      : [`www/src/exchange/version.ts is not of ${version}`],
    changelog: faultsOfChangelog(read("CHANGELOG.md"), version, isDry),
    "packed files": faultsOfFiles(names, description),
    sizes: await faultsOfProgram(process.execPath, ["scripts/size.mjs"]),
    publint: await tool(PUBLINT, "publint", "run", filename, "--strict"),
    attw: await tool(ATTW, "attw", filename, "--profile", "esm-only", "--no-color"),
  };
  if (!isDry) {
    all["working tree"] = capture("git", ["status", "--porcelain"]) === "" ? [] : ["not clean"];
    const tag = capture("git", ["tag", "--list", `v${version}`]);
    all.tag = tag === "" || process.env.GITHUB_REF_NAME === tag ? [] : [`v${version} exists`];
  }
  return { all, version };
}

if (isProgram(import.meta.url)) {
  await main(async (args) => {
    const isDry = args.includes("--dry-run");
    await build(await setUpForBuild());
    const { all, version } = await checks(isDry);
    let failed = 0;
    for (const [name, faults] of Object.entries(all)) {
      process.stdout.write(`${faults.length === 0 ? "ok    " : "failed"} ${name}\n`);
      for (const fault of faults) process.stdout.write(`${fault.replace(/^/gm, "       ")}\n`);
      failed += faults.length;
    }
    if (failed > 0) return 1;
    const done = isDry ? "everything that a dry run checks is right" : "ready";
    say(
      `release ${version}: ${done}. To publish: git tag v${version} && git push origin v${version}`,
    );
    return 0;
  });
}
