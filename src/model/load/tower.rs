//! Plans a vision tower: validates its file and gives its layers the names of a decoder's. `tower_modules` reads it.

use super::{Plan, modules::Loader, tensors::Check};
use crate::{
    Error, Result,
    device::ComputeDevice,
    model::{
        config::ModelConfig,
        kv_reservation::KvReservation,
        layers::tower::Tower,
        load_options::LoadOptions,
        vision::{self, ARCHITECTURE, VisionConfig},
    },
    weights::{ByteSource, Gguf},
};

/// Names of an `mmproj` file, and those of the same parts of a decoder. `v.blk.N` comes before a part of a layer.
const NAMES: [(&str, &str); 3] = [
    ("v.patch_embd", "patch_embd"),
    ("v.position_embd", "position_embd"),
    ("v.post_ln", "output_norm"),
];
const PARTS: [(&str, &str); 5] = [
    ("ln1", "attn_norm"),
    ("ln2", "ffn_norm"),
    ("attn_out", "attn_output"),
    ("attn_post_norm", "post_attention_norm"),
    ("ffn_post_norm", "post_ffw_norm"),
];
/// Beginnings of the names of what an `mmproj` file has for sound, which is not run.
const SOUND: [&str; 2] = ["a.", "mm.a."];

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
        if config.tower.needs_layer_inputs && text.layer_input_dim == 0 {
            return Err(Error::UnsupportedModel(format!(
                "images of a model without per-layer embeddings, with a projector {:?}",
                config.kind
            )));
        }
        let parts = text.rope().and_then(|rope| rope.parts);
        if config.tower.places_rows && parts.is_none() {
            return Err(Error::UnsupportedModel(
                "a text model without rotary positions of rows and columns (rope.dimension_sections), which the projector needs"
                    .to_owned(),
            ));
        }
        TowerPlan::validated(gguf, config, max_binding_bytes)
    }

    /// Validates an `mmproj` file without its text model.
    ///
    /// # Errors
    /// Same as [`new`](Self::new).
    pub(crate) fn alone(gguf: &Gguf, max_binding_bytes: u64) -> Result<TowerPlan> {
        TowerPlan::validated(gguf, config_of(gguf)?, max_binding_bytes)
    }

    fn validated(
        gguf: &Gguf,
        mut config: VisionConfig,
        max_binding_bytes: u64,
    ) -> Result<TowerPlan> {
        let gguf = renamed(gguf, config.layers.dim)?;
        if config.tower.ffn_dim_of_tensors
            && let Some(ffn_dim) = ffn_dim(&gguf)
        {
            config.layers.ffn_dim = ffn_dim;
        }
        let mut check = Check::new(&gguf, &config.layers);
        check.tower(&config)?;
        check.layers_and_rest(max_binding_bytes)?;
        let options = LoadOptions {
            context_tokens: Some(config.squares.max_patches),
            ..LoadOptions::default()
        };
        let reservation = KvReservation::new(options, &config.layers, max_binding_bytes)?;
        let plan = Plan {
            with_mtp_block: config.layers.clone(),
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
    ) -> Result<Tower> {
        Loader::new(&self.gguf, Some(source), device, &self.plan, progress)
            .tower(&self.config)
            .await
    }
}

/// The width of the feed-forwards in the first layer. The check of the tensors compares it with all of their shapes.
fn ffn_dim(gguf: &Gguf) -> Option<usize> {
    let up = gguf.tensor("blk.0.ffn_up.weight")?;
    let rows = up.shape.get(1).copied().unwrap_or_default();
    usize::try_from(rows).ok().filter(|rows| *rows > 0)
}

fn config_of(gguf: &Gguf) -> Result<VisionConfig> {
    let architecture = gguf.metadata.str("general.architecture")?;
    if architecture != Some(ARCHITECTURE) {
        return Err(Error::UnsupportedModel(format!(
            "a projector file of architecture {architecture:?}, not \"{ARCHITECTURE}\""
        )));
    }
    vision::read_config(&gguf.metadata)
}

/// The file under other names, for a tower of `dim` columns. The kernel of a patch becomes a row of a matrix.
fn renamed(gguf: &Gguf, dim: usize) -> Result<Gguf> {
    let down = gguf.tensor("v.blk.0.ffn_down.weight");
    // Converters have exchanged the names of the two matrices for years.
    let is_swapped = down.is_some_and(|down| down.shape[0] == dim as u64);
    let is_sound = |name: &str| SOUND.iter().any(|prefix| name.starts_with(prefix));
    let tensors = gguf.tensors.iter().filter(|it| !is_sound(&it.name));
    let mut tensors: Vec<_> = tensors.cloned().collect();
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
            ("mm.model.fc.weight", "mm.model.fc.weight"),
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
