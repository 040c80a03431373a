//! Loads a vision tower: gives its tensors the names of a decoder's, validates them, and reads them.

use super::{Plan, modules::Loader, tensors::check_tower_tensors};
use crate::{
    Error, Result,
    device::ComputeDevice,
    model::{
        config::{
            MergerFamily, ModelConfig,
            vision::{ARCHITECTURE, Projector, VisionConfig},
        },
        kv_reservation::KvReservation,
        layers::{merger_tower::MergerTower, tower::Tower},
        load_options::LoadOptions,
    },
    weights::{ByteSource, Gguf},
};

/// Names of an `mmproj` file, and those of the same parts of a decoder. `v.blk.N` comes before a part of a layer.
const NAMES: [(&str, &str); 6] = [
    ("v.patch_embd", "patch_embd"),
    ("v.position_embd", "position_embd"),
    ("v.post_ln", "output_norm"),
    ("mm.model.fc", "projector"),
    ("mm.input_projection", "projector"),
    ("mm.soft_emb_norm", "projector_norm"),
];
const PARTS: [(&str, &str); 3] = [
    ("ln1", "attn_norm"),
    ("ln2", "ffn_norm"),
    ("attn_out", "attn_output"),
];

/// A vision tower of one of the kinds.
#[allow(clippy::large_enum_variant)] // One per model; a box would save nothing.
pub(crate) enum AnyTower {
    /// Of squares of one size.
    Squares(Tower),
    /// Of pictures of any size.
    Merger(MergerTower),
}

/// A vision tower whose file was validated.
#[derive(Debug, Clone)]
pub(crate) struct TowerPlan {
    /// The hyperparameters.
    pub(in crate::model) config: VisionConfig,
    /// The file under the names of a decoder.
    gguf: Gguf,
    pub(in crate::model) plan: Plan,
}

impl TowerPlan {
    /// Validates an `mmproj` file for the text model `text` and a device whose kernels see
    /// `max_binding_bytes` of a buffer.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] and [`Error::UnsupportedModel`] naming the key or the tensor.
    pub(crate) fn new(
        gguf: &Gguf,
        text: &ModelConfig,
        max_binding_bytes: u64,
    ) -> Result<TowerPlan> {
        let dim = text.dim;
        let config = config_of(gguf)?;
        if config.projection_dim != dim {
            return Err(Error::InvalidModelFile(format!(
                "the projector makes rows of {}, and those of the model have {dim}: it belongs to another model",
                config.projection_dim
            )));
        }
        if config.deepstack.len() != text.deepstack_layers {
            return Err(Error::InvalidModelFile(format!(
                "the projector makes values for {} layers, and {} of the model take some: it belongs to another model",
                config.deepstack.len(),
                text.deepstack_layers
            )));
        }
        TowerPlan::validated(gguf, config, max_binding_bytes)
    }

    /// Validates an `mmproj` file without its text model.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn alone(gguf: &Gguf, max_binding_bytes: u64) -> Result<TowerPlan> {
        TowerPlan::validated(gguf, config_of(gguf)?, max_binding_bytes)
    }

    fn validated(
        gguf: &Gguf,
        mut config: VisionConfig,
        max_binding_bytes: u64,
    ) -> Result<TowerPlan> {
        let gguf = renamed(gguf, config.layers.dim)?;
        if let Some(ffn_dim) = unsaid_ffn_dim(&gguf, config.projector) {
            config.layers.ffn_dim = ffn_dim;
        }
        check_tower_tensors(&gguf, &config, max_binding_bytes)?;
        let options = LoadOptions {
            context_tokens: Some(config.patches()),
            ..LoadOptions::default()
        };
        let reservation = KvReservation::new(options, &config.layers, max_binding_bytes)?;
        let plan = Plan {
            config: config.layers.clone(),
            matrices: Default::default(),
            reservation,
            max_binding_bytes,
            takes_embeddings: false,
        };
        Ok(TowerPlan { config, gguf, plan })
    }

    /// The hyperparameters.
    pub fn config(&self) -> &VisionConfig {
        &self.config
    }

    /// Streams the weights to a device, for kernels of the portable form.
    pub(crate) async fn load<S: ByteSource>(
        &self,
        device: &ComputeDevice,
        source: &S,
        progress: &mut dyn FnMut(u64),
    ) -> Result<AnyTower> {
        let mut loader = Loader::new(&self.gguf, Some(source), device, &self.plan, progress);
        Ok(match self.config.projector {
            projector @ (Projector::PixelShuffle { .. } | Projector::AveragePool { .. }) => {
                AnyTower::Squares(loader.tower(projector).await?)
            }
            Projector::Merger(merger) => {
                AnyTower::Merger(loader.merger_tower(&self.config, merger).await?)
            }
        })
    }
}

/// The width of the feed-forwards, where the metadata does not have it: converters write that of the text model for
/// Qwen2-VL. The check of the tensors compares it with all of their shapes.
fn unsaid_ffn_dim(gguf: &Gguf, projector: Projector) -> Option<usize> {
    match projector {
        Projector::Merger(merger) if merger.family == MergerFamily::Qwen2 => {
            let up = gguf.tensor("blk.0.ffn_up.weight")?;
            let rows = up.shape.get(1).copied().unwrap_or_default();
            usize::try_from(rows).ok().filter(|rows| *rows > 0)
        }
        _ => None,
    }
}

fn config_of(gguf: &Gguf) -> Result<VisionConfig> {
    let architecture = gguf.metadata.str("general.architecture")?;
    if architecture != Some(ARCHITECTURE) {
        return Err(Error::UnsupportedModel(format!(
            "a projector file of architecture {architecture:?}, not \"{ARCHITECTURE}\""
        )));
    }
    VisionConfig::read(&gguf.metadata)
}

/// The file under other names, for a tower of `dim` columns. The kernel of a patch becomes a row of a matrix.
fn renamed(gguf: &Gguf, dim: usize) -> Result<Gguf> {
    let down = gguf.tensor("v.blk.0.ffn_down.weight");
    // Converters have exchanged the names of the two matrices for years.
    let is_swapped = down.is_some_and(|down| down.shape[0] == dim as u64);
    let mut tensors = gguf.tensors.clone();
    for tensor in &mut tensors {
        tensor.name = decoder_name(&tensor.name);
        if is_swapped {
            tensor.name = swapped(&tensor.name);
        }
        if let [width, height, channels, rows] = tensor.shape[..] {
            tensor.shape = vec![width * height * channels, rows];
        }
    }
    Gguf::new(gguf.metadata.clone(), tensors)
}

fn decoder_name(name: &str) -> String {
    if name == "v.patch_embd.weight.1" {
        return "patch_embd_1.weight".to_owned();
    }
    let Some((module, suffix)) = name.rsplit_once('.') else {
        return name.to_owned();
    };
    let find = |table: &[(&str, &'static str)], part: &str| {
        let found = table.iter().find(|(theirs, _)| *theirs == part);
        found.map(|(_, ours)| *ours)
    };
    if let Some(ours) = find(&NAMES, module) {
        return format!("{ours}.{suffix}");
    }
    match module
        .strip_prefix("v.blk.")
        .and_then(|rest| rest.split_once('.'))
    {
        Some((layer, part)) => {
            let part = find(&PARTS, part).unwrap_or(part);
            format!("blk.{layer}.{part}.{suffix}")
        }
        None => name.to_owned(),
    }
}

/// The name with `ffn_up` and `ffn_down` exchanged.
fn swapped(name: &str) -> String {
    match name.contains(".ffn_down.") {
        true => name.replace(".ffn_down.", ".ffn_up."),
        false => name.replace(".ffn_up.", ".ffn_down."),
    }
}

#[cfg(test)]
mod tests {
    use super::{decoder_name, swapped};

    #[test]
    fn names_of_exchanged_matrices_are_those_of_a_decoder() {
        assert_eq!(swapped("blk.3.ffn_down.weight"), "blk.3.ffn_up.weight");
        assert_eq!(swapped("blk.3.ffn_up.bias"), "blk.3.ffn_down.bias");
        assert_eq!(swapped("blk.3.attn_q.bias"), "blk.3.attn_q.bias");
    }

    #[test]
    fn tensors_get_the_names_of_a_decoder() {
        for (theirs, ours) in [
            ("v.patch_embd.bias", "patch_embd.bias"),
            ("v.patch_embd.weight.1", "patch_embd_1.weight"),
            ("v.deepstack.5.fc1.weight", "v.deepstack.5.fc1.weight"),
            ("v.post_ln.weight", "output_norm.weight"),
            ("mm.model.fc.weight", "projector.weight"),
            ("v.blk.11.ln1.bias", "blk.11.attn_norm.bias"),
            ("v.blk.0.attn_out.weight", "blk.0.attn_output.weight"),
            ("v.blk.0.attn_q.weight", "blk.0.attn_q.weight"),
            ("v.class_embd", "v.class_embd"),
            ("blk", "blk"),
        ] {
            assert_eq!(decoder_name(theirs), ours);
        }
    }
}
