//! WebKitGTK, which has no WebGPU: on the CPU.

import { launchWebKit } from "../../scripts/webkit.mjs";
import { testLife } from "./life.mjs";

testLife({ launch: launchWebKit, devices: ["cpu", "auto"] });
