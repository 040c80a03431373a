//! Installs everything that building, running and testing need, and prints what it does. A second run finds everything in
//! place. Run by `npm run setup`. The other npm scripts set up what they need themselves.

import { provideBindgen } from "./setup/bindgen.mjs";
import { provideBrowser } from "./setup/browser.mjs";
import { provideNpmPackages } from "./setup/npm.mjs";
import { provideWasmToolchain } from "./setup/rust.mjs";
import { provideVulkan } from "./setup/vulkan.mjs";
import { isProgram, main, say, Remediable } from "./process.mjs";

const NODE_MAJOR = 20;

export function requireNode() {
  if (Number(process.versions.node.split(".")[0]) < NODE_MAJOR) {
    throw new Remediable(
      `Node.js ${process.versions.node} is too old: ${NODE_MAJOR} or newer is needed`,
      "Install the current one from https://nodejs.org.",
    );
  }
}

/** Installs the tools of `npm run build`: `{ toolchain, bindgen }`; `bindgen` is a promise, because it is needed last. */
export async function setUpForBuild() {
  requireNode();
  await provideNpmPackages();
  const toolchain = await provideWasmToolchain();
  const bindgen = provideBindgen();
  // A failure is reported where it is awaited.
  bindgen.catch(() => {});
  return { toolchain, bindgen };
}

if (isProgram(import.meta.url)) {
  await main(async () => {
    const { toolchain, bindgen } = await setUpForBuild();
    const browser = await provideBrowser();
    const vulkan = await provideVulkan(browser);
    say(`wasm toolchain  ${toolchain.name}`);
    say(`wasm-bindgen    ${await bindgen}`);
    say(`browser         ${browser}`);
    if (vulkan.VK_ICD_FILENAMES) say(`Vulkan driver   ${vulkan.VK_ICD_FILENAMES}`);
  });
}
