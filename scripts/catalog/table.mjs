//! The table of `docs/models.md` with the sizes of each family: its smallest and its largest model in the catalog.

import { readFileSync, writeFileSync } from "node:fs";

const [BEGIN, END] = ["<!-- generated: sizes -->\n", "<!-- end -->\n"];

/** The table of a catalog. */
export function sizesOf(catalog) {
  const families = [...new Set(catalog.map(({ family }) => family))];
  const rows = families.map((family) => {
    const models = catalog.filter((model) => model.family === family);
    const bySize = models.toSorted((a, b) => a.parameters - b.parameters);
    const [first] = models;
    const shown = bySize.length > 1 ? [bySize[0], bySize.at(-1)] : bySize;
    const range = (value) => [...new Set(shown.map(value))].join(" to ");
    const cells = [
      `[${family}](${first.sources[0]})`,
      range(({ name }) => `\`${name}\``),
      range(({ parameters }) => short(parameters / 1e6, ["M", "B"])),
      range(({ bytes }) => short(bytes / 1e6, ["MB", "GB"])),
      range(({ memory }) => short(memory.context4k / 1e6, ["MB", "GB"])),
    ];
    return `| ${cells.join(" | ")} |`;
  });
  const head = [
    "| family | models in the catalog | parameters | download | memory |",
    "|---|---|---|---|---|",
  ];
  return `${[...head, ...rows].join("\n")}\n`;
}

function short(millions, [small, large]) {
  if (millions < 995) return `${Math.round(millions)} ${small}`;
  return `${(millions / 1000).toFixed(1)} ${large}`;
}

/** Puts the table of a catalog into a document. */
export function writeSizes(path, catalog) {
  const text = readFileSync(path, "utf8");
  const begin = text.indexOf(BEGIN) + BEGIN.length;
  const end = text.indexOf(END, begin);
  writeFileSync(path, text.slice(0, begin) + sizesOf(catalog) + text.slice(end));
}
