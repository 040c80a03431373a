#!/usr/bin/env node
//! The package's command: runs the subcommand.

import { inspect, USAGE } from "./inspect.mjs";

const [command, ...args] = process.argv.slice(2);
if (command === "inspect") {
  process.exitCode = await inspect(args);
} else if (command === "--help" || command === "-h") {
  process.stdout.write(USAGE);
} else {
  process.stderr.write(
    command === undefined ? USAGE : `inpage: unknown command "${command}"\n\n${USAGE}`,
  );
  process.exitCode = 2;
}
