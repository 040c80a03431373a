//! Debian packages: installs them if permitted, else prints the command to run.

import { say, which, run, Remediable } from "../process.mjs";

let updated = false;

/** The command prefix of `apt-get`: [] as root, sudo if it needs no password, else undefined. */
async function privilege() {
  if (process.getuid?.() === 0) return [];
  if (which("sudo") && (await run("sudo", ["-n", "true"], { onOutput() {} })) === 0)
    return ["sudo", "-n"];
  return undefined;
}

export function isDebian() {
  return process.platform === "linux" && which("apt-get") !== undefined;
}

/**
 * Installs packages or throws a `Remediable` that names the command. `purpose` describes them in messages. Each command may
 * take `timeout_ms`.
 */
export async function installPackages(packages, purpose, timeout_ms = 900_000) {
  const command = `apt-get install ${packages.join(" ")}`;
  const remedy = `Install ${purpose}:\n    sudo ${command}\nand try again.`;
  const before = await privilege();
  if (before === undefined)
    throw new Remediable(`${purpose} is missing, and only root may install packages`, remedy);
  say(`  installing Debian packages ${packages.join(" ")}`);
  const apt = (args) => {
    const [program, ...rest] = [...before, "apt-get", ...args];
    return run(program, rest, {
      env: { DEBIAN_FRONTEND: "noninteractive" },
      timeout_ms,
      onOutput() {},
    });
  };
  const install = () => apt(["install", "-y", "--no-install-recommends", ...packages]);
  let status = 1;
  if (!updated) {
    updated = true;
    await apt(["update"]);
  }
  status = await install();
  if (status !== 0) throw new Remediable(`\`${command}\` failed (exit status ${status})`, remedy);
}
