//! Adapters in GGUF files, as llama.cpp's converter writes them.

use super::adapter::{Adapter, AdapterFormat, Half, pairs};
use crate::{
    Error, Result,
    weights::{Metadata, ModelFiles, gguf::split},
};

/// Reads the header of the file `name`.
pub(super) async fn open<F: ModelFiles>(files: &F, name: &str) -> Result<Adapter<F::Source>> {
    let (gguf, source) = split::read(files, name).await?;
    let architecture = check(name, &gguf.metadata)?;
    let alpha = gguf.metadata.f32("adapter.lora.alpha")?.unwrap_or(0.0);
    let half = |tensor: &str| {
        let a = tensor.strip_suffix(".lora_a").map(|of| (of, Half::A));
        let half = a.or_else(|| Some((tensor.strip_suffix(".lora_b")?, Half::B)));
        half.map(|(of, half)| (of.to_owned(), half))
    };
    // Without alpha, the scale is one.
    let scale = |_: &str, rank: u64| match alpha {
        0.0 => Ok(1.0),
        alpha => Ok(alpha / rank as f32),
    };
    Ok(Adapter {
        pairs: pairs(name, gguf.tensors, half, scale)?,
        file: name.to_owned(),
        format: AdapterFormat::Gguf { architecture },
        source,
    })
}

/// The architecture of the file, which must be a LoRA adapter.
fn check(name: &str, metadata: &Metadata) -> Result<String> {
    for (key, wanted) in [("general.type", "adapter"), ("adapter.type", "lora")] {
        let said = metadata.str(key)?.unwrap_or("nothing");
        if said != wanted {
            return Err(Error::UnsupportedModel(format!(
                "{name}: an adapter says {wanted:?} under {key}, not {said:?}"
            )));
        }
    }
    let activated = "adapter.alora.invocation_tokens";
    if metadata.get(activated).is_some() {
        return Err(Error::UnsupportedModel(format!(
            "{name}: an adapter with {activated}"
        )));
    }
    let architecture = metadata.str("general.architecture")?;
    let missing = || Error::InvalidModelFile(format!("{name}: general.architecture is missing"));
    architecture.map(str::to_owned).ok_or_else(missing)
}
