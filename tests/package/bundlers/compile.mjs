//! `node compile.mjs COMPILER CONFIG`: builds the app in the working directory with webpack or Rspack. A warning is an error, too.

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [compilerName, config] = process.argv.slice(2);
const { default: create } = await import(compilerName);
const { default: options } = await import(pathToFileURL(resolve(config)).href);
const compiler = create(options);
const stats = await new Promise((done, fail) => {
  compiler.run((error, result) => (error ? fail(error) : done(result)));
});
await new Promise((done) => compiler.close(done));
const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
for (const { message } of [...errors, ...warnings]) console.error(message);
process.exitCode = errors.length + warnings.length > 0 ? 1 : 0;
