//! The script of the engine's thread: supplies the globals of a page's worker, then runs the page's script.

import { parentPort, workerData } from "node:worker_threads";
import { usePlatform } from "../platform.js";
import type { ThreadData } from "./engine_thread.js";
import { nodePlatform } from "./platform.js";
import { supplyWorkerGlobals } from "./worker_globals.js";

if (parentPort === null) throw new Error("this script runs in a thread that the package starts");
usePlatform(nodePlatform);
supplyWorkerGlobals(parentPort, (workerData as ThreadData).name);
// It uses the globals when it is evaluated.
await import("../worker/run.js");
