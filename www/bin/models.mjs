//! `inpage models`: lists the models of the catalog.

import { parseArgs } from "node:util";
import { catalog } from "../dist/catalog/models.js";

export const USAGE = `Usage: inpage models [NAME ...] [options]

Lists the models of the catalog, which the other commands and createEngine take by name. With names, everything that
the catalog has about these models. Sizes marked with ~ are computed from the architecture, not from the file.

  --task TASK          only models for chat, reasoning, code, vision, embedding or rerank
  --language TAG       only models whose makers name this language, such as de
  --max-bytes SIZE     only models whose files have at most this size: 800MB, 1.5GB, 1GiB or a number of bytes
  --max-memory SIZE    only models that need at most this memory with a context of 4,096 tokens
  --json               print the entries as JSON
  -h, --help           this text

Exit status: 0 models were listed, 1 none fits or a name does not exist, 2 wrong usage.
`;

const NONE = 1;
const WRONG_USAGE = 2;
const TASKS = ["chat", "reasoning", "code", "vision", "embedding", "rerank"];
const UNITS = { "": 1, KB: 1e3, MB: 1e6, GB: 1e9, KIB: 2 ** 10, MIB: 2 ** 20, GIB: 2 ** 30 };

const OPTIONS = {
  task: { type: "string" },
  language: { type: "string" },
  "max-bytes": { type: "string" },
  "max-memory": { type: "string" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", short: "h" },
};

/** Runs the command; returns the exit status. */
export async function models(args) {
  let request;
  try {
    request = requestOf(args);
  } catch (error) {
    process.stderr.write(`inpage models: ${error.message}\n\n${USAGE}`);
    return WRONG_USAGE;
  }
  if (request.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const { names, fits, json } = request;
  const unknown = names.filter((name) => !catalog.some((model) => model.name === name));
  if (unknown.length > 0) {
    process.stderr.write(`inpage models: the catalog has no ${unknown.join(", ")}\n`);
    return NONE;
  }
  const listed = catalog.filter(
    (model) => fits(model) && (names.length === 0 || names.includes(model.name)),
  );
  const text = json
    ? `${JSON.stringify(listed, undefined, 2)}\n`
    : names.length > 0
      ? listed.map(entryText).join("\n")
      : tableText(listed);
  process.stdout.write(text);
  if (listed.length === 0) process.stderr.write("inpage models: no model fits\n");
  return listed.length > 0 ? 0 : NONE;
}

/** @throws Error naming the wrong argument */
function requestOf(args) {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  if (values.help) return { help: true };
  const { task, language, json } = values;
  if (task !== undefined && !TASKS.includes(task)) {
    throw new Error(`--task is ${TASKS.join(", ")}, not ${task}`);
  }
  const maxBytes = bytesOf("max-bytes", values["max-bytes"]);
  const maxMemory = bytesOf("max-memory", values["max-memory"]);
  const fits = ({ tasks, languages, bytes, memory }) =>
    (task === undefined || tasks.includes(task)) &&
    (language === undefined || languages.includes(language)) &&
    bytes <= maxBytes &&
    memory.context4k <= maxMemory;
  return { names: positionals, fits, json };
}

function bytesOf(name, text) {
  if (text === undefined) return Number.POSITIVE_INFINITY;
  const [, number, unit] = /^(\d+(?:\.\d+)?)\s*([KMG]i?B)?$/i.exec(text) ?? [];
  if (number === undefined) throw new Error(`--${name} takes a size such as 1.5GB, not ${text}`);
  return Number(number) * UNITS[(unit ?? "").toUpperCase()];
}

const size = (bytes, isExact) =>
  `${isExact ? "" : "~"}${
    bytes >= 1e9 ? `${(bytes / 1e9).toFixed(2)} GB` : `${Math.round(bytes / 1e6)} MB`
  }`;
const downloadOf = ({ bytes, verified }) => size(bytes, verified !== "shape");
const memoryOf = ({ memory, verified }, context) => size(memory[context], verified === "headers");

function tableText(listed) {
  const rows = listed.map((model) => [
    model.name,
    model.tasks.join(", "),
    downloadOf(model),
    memoryOf(model, "context4k"),
    model.licence,
  ]);
  if (rows.length === 0) return "";
  const all = [["NAME", "TASKS", "DOWNLOAD", "MEMORY (4k)", "LICENCE"], ...rows];
  const widths = all[0].map((_, column) => Math.max(...all.map((row) => row[column].length)));
  const line = (row) => row.map((cell, column) => cell.padEnd(widths[column])).join("  ");
  return `${all.map((row) => line(row).trimEnd()).join("\n")}\n`;
}

function entryText(model) {
  const { sampling, files } = model;
  const lines = {
    Title: model.title,
    "Good for": model.goodFor,
    Tasks: model.tasks.join(", "),
    Parameters: `${(model.parameters / 1e6).toFixed(0)} million, ${model.type}`,
    Download: downloadOf(model),
    Memory: `${memoryOf(model, "context4k")} with 4,096 tokens of context, ${memoryOf(model, "context16k")} with 16,384`,
    Context: `${model.contextTokens} tokens`,
    Licence: model.licence,
    Languages: model.languages.join(", "),
    Sampling: sampling && JSON.stringify(sampling),
    Files: [files.model, files.projector, ...(files.mirrors ?? [])].filter(Boolean).join(" "),
    Sources: model.sources.join(" "),
  };
  const shown = Object.entries(lines).filter(([, text]) => text);
  return `${model.name}\n${shown.map(([name, text]) => `  ${`${name}:`.padEnd(12)} ${text}\n`).join("")}`;
}
