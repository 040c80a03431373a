//! Arguments that choose how a model is loaded, for all command-line tools.

use inpage::model::{LoadOptions, Quantize};
use inpage::ops::kv_memory::KvFormat;

/// Sets `--kv-format` or `--quantize`.
///
/// # Errors
/// What is wrong with the value, for humans.
pub fn set_load_option(options: &mut LoadOptions, name: &str, value: &str) -> Result<(), String> {
    match name {
        "--kv-format" => {
            options.kv_format = KvFormat::from_name(value)
                .ok_or(format!("{name} is f32, f16 or q8_0, not {value}"))?;
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
