//! Writes the JavaScript glue of a wasm module, as wasm-bindgen's own program does. It takes the options that `scripts/build.mjs`
//! uses and refuses others. What the glue contains is decided by wasm-bindgen-cli-support.

use std::{env, path::PathBuf};

use anyhow::{Context, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let (mut module, mut out_dir) = (None, None);
    let mut bindgen = Bindgen::new();
    // The defaults of wasm-bindgen's program, where the library has others.
    bindgen.typescript(true).omit_default_module_path(false);
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--target" => match value()?.as_str() {
                "web" => {
                    bindgen.web(true)?;
                }
                other => bail!("--target {other}: only web is known"),
            },
            "--no-typescript" => {
                bindgen.typescript(false);
            }
            "--out-name" => {
                bindgen.out_name(&value()?);
            }
            "--out-dir" => out_dir = Some(PathBuf::from(value()?)),
            option if option.starts_with('-') => bail!("unknown option {option}"),
            path if module.is_none() => module = Some(PathBuf::from(path)),
            path => bail!("{path} is a second module"),
        }
    }
    bindgen
        .input_path(module.context("no module is named")?)
        .generate(out_dir.context("--out-dir is missing")?)
}
