//! Arguments of all command-line tools that choose how a model is loaded.

use inpage::model::{LoadOptions, Quantize};
use inpage::ops::kv_memory::KvFormat;

/// Sets `--kv-format` or `--quantize`.
///
/// # Errors
/// A message that says what is wrong with the value.
pub fn set_load_option(options: &mut LoadOptions, name: &str, value: &str) -> Result<(), String> {
    match name {
        "--kv-format" => {
            let names = KvFormat::NAMES.join(", ");
            options.kv_format = KvFormat::from_name(value)
                .ok_or(format!("{name} is one of {names}, not {value}"))?;
        }
        "--quantize" => {
            options.quantize = Quantize::from_name(value).ok_or(format!(
                "{name} is none or a type such as q4_0, not {value}"
            ))?;
        }
        other => return Err(format!("unknown option {other}")),
    }
    Ok(())
}
