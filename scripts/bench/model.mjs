//! The model that is measured: a file, or random weights in a published shape, which are written once and kept in cargo's
//! target folder.

import { existsSync, mkdirSync, renameSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { mustRun, Remediable, root, say } from "../process.mjs";
import { targetFolder } from "../setup/target.mjs";
import { fromUser } from "./options.mjs";

const EMBEDDED_MODEL = "www/models/tales.gguf";

function existing(name) {
  if (name === undefined) {
    const embedded = resolve(root, EMBEDDED_MODEL);
    if (existsSync(embedded)) return embedded;
    throw new Remediable(
      `the embedded model ${EMBEDDED_MODEL} is missing`,
      "Name a model with --model FILE.gguf.",
    );
  }
  return named("model", name);
}

function named(option, name) {
  const file = placeOf(name, (path) => statSync(path).isFile());
  if (!file) {
    throw new Remediable(`there is no ${option} file ${name}`, `--${option} takes a GGUF file.`);
  }
  return file;
}

/** The path that exists and is of the kind, seen from the user's working directory or the repository. */
const placeOf = (name, isKind) =>
  [fromUser(name), resolve(name)].find((path) => existsSync(path) && isKind(path));

async function synthesized(shape, type) {
  const folder = join(targetFolder(), "bench");
  const file = join(folder, `${shape}-${type}.gguf`);
  if (existsSync(file)) return file;
  mkdirSync(folder, { recursive: true });
  say(`bench: random weights of ${shape} in ${type}`);
  const part = `${file}.part`;
  const options = ["--shape", shape, "--type", type, "--out", part];
  await mustRun("cargo", ["run", "--locked", "--quiet", "--example", "synth", "--", ...options]);
  renameSync(part, file);
  return file;
}

/** The model's file. It is checked or written before anything else is built. */
export const modelFile = ({ model, shape, type = "q4_0" }) =>
  shape === undefined ? existing(model) : synthesized(shape, type.toLowerCase());

/** The file or folder of a model for embeddings. */
export function embeddingsPlace({ embeddings }) {
  const place = placeOf(embeddings, () => true);
  if (place === undefined) {
    throw new Remediable(
      `there is no model ${embeddings}`,
      "--embeddings takes a Hugging Face folder or a GGUF file.",
    );
  }
  return place;
}

/** The projector's file, if one is named. */
export const projectorFile = ({ projector }) =>
  projector === undefined ? undefined : named("projector", projector);
