//! Firefox, with WebGPU and on the CPU.

import { launchFirefox } from "../../scripts/firefox.mjs";
import { testLife } from "./life.mjs";

testLife({ launch: launchFirefox, devices: ["webgpu", "cpu"] });
