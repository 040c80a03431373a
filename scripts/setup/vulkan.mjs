//! A Vulkan driver for the native GPU tests on Linux: the machine's, Mesa's software driver, or Chromium's. macOS has
//! Metal and Windows has Direct3D, so they need no set-up.

import { existsSync, readdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { say } from "../process.mjs";
import { installPackages, isDebian } from "./apt.mjs";

const DRIVER_FOLDERS = [
  "/usr/share/vulkan/icd.d",
  "/etc/vulkan/icd.d",
  "/usr/local/share/vulkan/icd.d",
];
const LOADERS = [
  "/usr/lib",
  "/usr/lib64",
  "/usr/lib/x86_64-linux-gnu",
  "/usr/lib/aarch64-linux-gnu",
  "/usr/local/lib",
];

function hasDriver() {
  if (process.env.VK_ICD_FILENAMES || process.env.VK_DRIVER_FILES) return true;
  return DRIVER_FOLDERS.some(
    (folder) => existsSync(folder) && readdirSync(folder).some((f) => f.endsWith(".json")),
  );
}

function hasLoader() {
  return LOADERS.some((folder) => existsSync(join(folder, "libvulkan.so.1")));
}

/** The driver file of SwiftShader in Chromium's folder, if it exists. */
function browserDriver(browser) {
  for (const folder of [dirname(realpathSync(browser)), "/usr/lib/chromium"]) {
    const file = join(folder, "vk_swiftshader_icd.json");
    if (existsSync(file)) return file;
  }
  return undefined;
}

/** Environment variables that let native programs find a Vulkan driver. Without a driver, the GPU tests fail with a message. */
export async function provideVulkan(browser) {
  if (process.platform !== "linux" || (hasDriver() && hasLoader())) return {};
  try {
    if (isDebian()) {
      say("set-up: a Vulkan driver for the native GPU tests");
      await installPackages(["mesa-vulkan-drivers", "libvulkan1"], "a software Vulkan driver");
      return {};
    }
  } catch (error) {
    say(`  ${error.message}`);
    if (error.remedy) say(`  ${error.remedy.replaceAll("\n", "\n  ")}`);
  }
  const driver = browser && hasLoader() ? browserDriver(browser) : undefined;
  if (driver) {
    say(`  using the browser's software Vulkan driver ${driver}`);
    return { VK_ICD_FILENAMES: driver };
  }
  say("  no Vulkan driver: native GPU tests will fail because they find no adapter");
  return {};
}
