#!/usr/bin/env node
//! The package's command. Picks a subcommand; knows nothing of models.

import { inspect, USAGE } from "./inspect.mjs";

const [command, ...args] = process.argv.slice(2);
if (command === "inspect") {
  process.exitCode = await inspect(args);
} else if (command === "--help" || command === "-h") {
  process.stdout.write(USAGE);
} else {
  process.stderr.write(
    command === undefined ? USAGE : `inpage: there is no command "${command}"\n\n${USAGE}`,
  );
  process.exitCode = 2;
}
