#!/usr/bin/env node
//! The package's command: runs the subcommand.

import { create, USAGE as CREATE_USAGE } from "./create.mjs";
import { inspect, USAGE as INSPECT_USAGE } from "./inspect.mjs";
import { models, USAGE as MODELS_USAGE } from "./models.mjs";
import { pull, USAGE as PULL_USAGE } from "./pull.mjs";
import { serve, USAGE as SERVE_USAGE } from "./serve.mjs";

const COMMANDS = { create, inspect, models, pull, serve };
const USAGE = `${CREATE_USAGE}\n${MODELS_USAGE}\n${INSPECT_USAGE}\n${PULL_USAGE}\n${SERVE_USAGE}`;

const [command, ...args] = process.argv.slice(2);
if (Object.hasOwn(COMMANDS, command ?? "")) {
  process.exitCode = await COMMANDS[command](args);
} else if (command === "--help" || command === "-h") {
  process.stdout.write(USAGE);
} else {
  process.stderr.write(
    command === undefined ? USAGE : `inpage: unknown command "${command}"\n\n${USAGE}`,
  );
  process.exitCode = 2;
}
