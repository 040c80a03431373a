//! The vision tower of a folder as the `mmproj` file that a converter would make of it, and the folder's text model
//! without the tower.

use super::{grid_tower, recipes::tower_recipe, shards};
use crate::{
    Error, Result,
    model::config::{
        ConfigJson, MergerFamily,
        json::{MAX_JSON_BYTES, missing},
        vision::ARCHITECTURE,
    },
    weights::{
        ConvertedSource, Gguf, JoinedSource, Metadata, ModelFiles, files::read_small,
        safetensors::StoredTensor,
    },
};

/// A family of folders with a vision tower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Gemma3,
    /// Also SmolVLM.
    Idefics3,
    /// Qwen2-VL and its successors.
    Qwen(MergerFamily),
}

/// Modules of the tower and the projector: names in checkpoints and in `mmproj` files. `*` is the layer's number.
const MODULES: &[(&str, &str)] = &[
    ("embeddings.patch_embedding", "v.patch_embd"),
    ("embeddings.position_embedding", "v.position_embd"),
    ("post_layernorm", "v.post_ln"),
    ("encoder.layers.*.layer_norm1", "v.blk.*.ln1"),
    ("encoder.layers.*.layer_norm2", "v.blk.*.ln2"),
    ("encoder.layers.*.self_attn.q_proj", "v.blk.*.attn_q"),
    ("encoder.layers.*.self_attn.k_proj", "v.blk.*.attn_k"),
    ("encoder.layers.*.self_attn.v_proj", "v.blk.*.attn_v"),
    ("encoder.layers.*.self_attn.out_proj", "v.blk.*.attn_out"),
    ("encoder.layers.*.mlp.fc1", "v.blk.*.ffn_up"),
    ("encoder.layers.*.mlp.fc2", "v.blk.*.ffn_down"),
    ("modality_projection.proj", "mm.model.fc"),
    ("mm_soft_emb_norm", "mm.soft_emb_norm"),
];
/// What precedes names of the tower's tensors, after an optional `model.`.
const PREFIXES: [&str; 5] = [
    "vision_tower.vision_model.",
    "vision_model.",
    "multi_modal_projector.",
    "connector.",
    "visual.",
];
/// What precedes names of the text model's tensors, and what takes its place. Later versions of transformers have
/// other names.
const TEXT_PREFIXES: [(&str, &str); 3] = [
    ("model.language_model.", "model."),
    ("model.text_model.", "model."),
    ("language_model.", ""),
];
/// Members that a text configuration of Gemma 3 may leave out.
const GEMMA3_SIZES: [(&str, u32); 9] = [
    ("hidden_size", 2304),
    ("intermediate_size", 9216),
    ("num_hidden_layers", 26),
    ("num_attention_heads", 8),
    ("num_key_value_heads", 4),
    ("head_dim", 256),
    ("query_pre_attn_scalar", 256),
    ("max_position_embeddings", 131_072),
    ("sliding_window", 4096),
];

impl Family {
    /// The family of a folder; `None` if it has no tower that this build knows.
    pub fn of(config: &ConfigJson) -> Result<Option<Family>> {
        Ok(match config.str("model_type")? {
            Some("gemma3") => Some(Family::Gemma3),
            Some("idefics3" | "smolvlm") => Some(Family::Idefics3),
            Some("qwen2_vl") => Some(Family::Qwen(MergerFamily::Qwen2)),
            Some("qwen2_5_vl") => Some(Family::Qwen(MergerFamily::Qwen25)),
            Some("qwen3_vl") => Some(Family::Qwen(MergerFamily::Qwen3)),
            _ => None,
        })
    }

    /// The configuration of the text model alone.
    pub fn text(self, config: &ConfigJson) -> Result<ConfigJson> {
        if let Family::Qwen(family) = self {
            return grid_tower::text(family, config);
        }
        let mut text = config
            .object("text_config")?
            .ok_or_else(|| missing("text_config"))?;
        // Whether the output is tied is a property of the whole model, if it says so.
        if let Some(tied) = config.bool("tie_word_embeddings")? {
            text.set("tie_word_embeddings", tied);
        }
        if self == Family::Gemma3 {
            text.add("model_type", "gemma3_text");
            for (key, value) in GEMMA3_SIZES {
                text.add(key, value);
            }
            text.add("hidden_activation", "gelu_pytorch_tanh");
            text.add("rms_norm_eps", 1e-6);
            text.add("rope_theta", 1e6);
            text.add("rope_local_base_freq", 1e4);
            text.add("tie_word_embeddings", true);
        }
        Ok(text)
    }
}

/// The tensors of the text model under the names that they have without a tower.
pub fn text_tensors(tensors: Vec<StoredTensor>) -> Vec<StoredTensor> {
    let text = tensors
        .into_iter()
        .filter(|it| tower_part(&it.name).is_none());
    let text = text.map(|mut tensor| {
        for (theirs, ours) in TEXT_PREFIXES {
            if let Some(rest) = tensor.name.strip_prefix(theirs) {
                tensor.name = format!("{ours}{rest}");
                break;
            }
        }
        tensor
    });
    text.collect()
}

/// The name of a tensor of the tower or the projector without its prefix; `None` for those of the text model.
fn tower_part(name: &str) -> Option<&str> {
    let name = name.strip_prefix("model.").unwrap_or(name);
    PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix))
}

/// The name in an `mmproj` file of what [`tower_part`] returns. Layers whose outputs become values for the text model are
/// counted; their numbers are in the configuration.
fn tower_name(part: &str) -> Option<String> {
    // Neither a weight of a module nor in its place: rows are multiplied by it from the right.
    if part == "mm_input_projection_weight" {
        return Some("mm.input_projection.weight".to_owned());
    }
    let (module, suffix) = part.rsplit_once('.')?;
    let numbers = module.split('.').filter(|part| part.parse::<u32>().is_ok());
    let numbers: Vec<&str> = numbers.collect();
    let pattern = match numbers[..] {
        [] => module.to_owned(),
        [number] => module.replacen(&format!(".{number}."), ".*.", 1),
        _ => return None,
    };
    let mut modules = MODULES.iter().chain(grid_tower::MODULES);
    let (_, name) = modules.find(|(theirs, _)| *theirs == pattern)?;
    let name = name.replacen('*', numbers.first().unwrap_or(&""), 1);
    Some(format!("{name}.{suffix}"))
}

/// Reads the folder's tower; `None` if it has none.
///
/// # Errors
/// [`Error::InvalidModelFile`] and [`Error::UnsupportedModel`] naming the file and what is wrong with it; the errors of
/// `files`.
pub async fn read<F: ModelFiles>(
    files: &F,
) -> Result<Option<(Gguf, ConvertedSource<JoinedSource<F::Source>>)>> {
    let Some(bytes) = read_small(files, "config.json", MAX_JSON_BYTES).await? else {
        return Ok(None);
    };
    let config = ConfigJson::parse(&bytes)?;
    let Some(family) = Family::of(&config)? else {
        return Ok(None);
    };
    let preprocessor = match read_small(files, "preprocessor_config.json", MAX_JSON_BYTES).await? {
        Some(bytes) => Some(ConfigJson::parse(&bytes)?),
        None => None,
    };
    let metadata = metadata(family, &config, preprocessor.as_ref())?;
    let shards = shards::read(files, &[]).await?;
    let mut recipes = Vec::new();
    for stored in shards.tensors {
        let Some(part) = tower_part(&stored.name) else {
            continue;
        };
        // A pooling head, which rows of pictures do not pass.
        if part.starts_with("head.") || part == "embeddings.position_ids" {
            continue;
        }
        let name = tower_name(part).ok_or_else(|| {
            let name: String = stored.name.chars().take(80).collect();
            Error::UnsupportedModel(format!("a vision tower with a tensor {name:?}"))
        })?;
        match family {
            Family::Qwen(_) => recipes.extend(grid_tower::recipes(&config, name, stored)?),
            Family::Gemma3 | Family::Idefics3 => recipes.push(tower_recipe(name, stored)?),
        }
    }
    recipes.sort_by_key(|(offset_bytes, _)| *offset_bytes);
    let recipes = recipes.into_iter().map(|(_, recipe)| recipe).collect();
    ConvertedSource::new(shards.source, metadata, recipes).map(Some)
}

/// The metadata of the `mmproj` file. Members that are left out have the defaults of transformers.
fn metadata(
    family: Family,
    config: &ConfigJson,
    preprocessor: Option<&ConfigJson>,
) -> Result<Metadata> {
    let vision = config
        .object("vision_config")?
        .ok_or_else(|| missing("vision_config"))?;
    let text = family.text(config)?;
    let (projector, [dim, heads, image, patch]) = match family {
        Family::Gemma3 => ("gemma3", [768, 12, 224, 16]),
        Family::Idefics3 => ("idefics3", [1152, 16, 224, 32]),
        Family::Qwen(family) => return grid_tower::metadata(family, &vision, &text, preprocessor),
    };
    let activation = vision.str("hidden_act")?;
    let is_gelu = activation.is_none_or(|it| ["gelu_pytorch_tanh", "gelu_new"].contains(&it));
    vision.require("hidden_act", is_gelu)?;
    let size = |key: &str, default: u32| Ok::<u32, Error>(vision.size(key)?.unwrap_or(default));
    let (image, patch) = (size("image_size", image)?, size("patch_size", patch)?);
    let side = match family {
        Family::Gemma3 => {
            let rows = config.size("mm_tokens_per_image")?.unwrap_or(256);
            let side_patches = image.checked_div(patch).unwrap_or_default();
            side_patches.checked_div(rows.isqrt()).unwrap_or_default()
        }
        _ => config.size("scale_factor")?.unwrap_or(2),
    };
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", ARCHITECTURE);
    metadata.insert("clip.has_vision_encoder", true);
    metadata.insert("clip.projector_type", projector);
    metadata.insert("clip.use_gelu", true);
    for (key, value) in [
        ("projection_dim", text.needed("hidden_size")?),
        ("image_size", image),
        ("patch_size", patch),
        ("embedding_length", size("hidden_size", dim)?),
        ("feed_forward_length", size("intermediate_size", 3072)?),
        ("block_count", size("num_hidden_layers", 12)?),
        ("attention.head_count", size("num_attention_heads", heads)?),
        ("projector.scale_factor", side),
    ] {
        metadata.insert(format!("clip.vision.{key}"), value);
    }
    let eps = vision.number("layer_norm_eps")?.unwrap_or(1e-6);
    metadata.insert("clip.vision.attention.layer_norm_epsilon", eps as f32);
    for key in ["image_mean", "image_std"] {
        let values = match preprocessor {
            Some(preprocessor) => preprocessor.numbers(key)?,
            None => None,
        };
        let values = values.unwrap_or_else(|| vec![0.5; 3]);
        metadata.insert(format!("clip.vision.{key}"), values);
    }
    let edge = match preprocessor {
        Some(preprocessor) => match preprocessor.object("size")? {
            Some(size) => size.size("longest_edge")?,
            None => None,
        },
        None => None,
    };
    if let Some(edge) = edge {
        metadata.insert("clip.vision.preproc_image_size", edge);
    }
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_of_towers_get_the_names_of_mmproj_files() {
        for (name, expected) in [
            (
                "vision_tower.vision_model.embeddings.patch_embedding.bias",
                "v.patch_embd.bias",
            ),
            (
                "model.vision_tower.vision_model.encoder.layers.11.mlp.fc2.weight",
                "v.blk.11.ffn_down.weight",
            ),
            (
                "model.vision_model.encoder.layers.0.self_attn.out_proj.weight",
                "v.blk.0.attn_out.weight",
            ),
            (
                "model.connector.modality_projection.proj.weight",
                "mm.model.fc.weight",
            ),
            (
                "multi_modal_projector.mm_input_projection_weight",
                "mm.input_projection.weight",
            ),
            (
                "multi_modal_projector.mm_soft_emb_norm.weight",
                "mm.soft_emb_norm.weight",
            ),
        ] {
            let part = tower_part(name).unwrap();
            assert_eq!(tower_name(part).as_deref(), Some(expected));
        }
        for part in ["encoder.layers.0.1.fc", "encoder.norm.weight", "weight", ""] {
            assert_eq!(tower_name(part), None, "{part}");
        }
        for name in ["model.layers.0.mlp.up_proj.weight", "lm_head.weight"] {
            assert_eq!(tower_part(name), None, "{name}");
        }
    }

    #[test]
    fn sparse_configurations_get_the_defaults_of_the_family() {
        let config = br#"{"model_type": "gemma3", "mm_tokens_per_image": 256, "text_config":
            {"hidden_size": 2560, "num_hidden_layers": 34, "model_type": "gemma3_text"}, "vision_config":
            {"hidden_size": 1152, "image_size": 896, "patch_size": 14, "num_attention_heads": 16}}"#;
        let config = ConfigJson::parse(config).unwrap();
        let family = Family::of(&config).unwrap().unwrap();
        let text = family.text(&config).unwrap();
        assert_eq!(text.size("num_attention_heads").unwrap(), Some(8));
        assert_eq!(text.size("num_hidden_layers").unwrap(), Some(34));
        assert_eq!(text.bool("tie_word_embeddings").unwrap(), Some(true));
        let metadata = metadata(family, &config, None).unwrap();
        let size = |key: &str| metadata.u32(&format!("clip.vision.{key}")).unwrap();
        assert_eq!(size("projector.scale_factor"), Some(4));
        assert_eq!(size("projection_dim"), Some(2560));
        assert_eq!(size("feed_forward_length"), Some(3072));
    }
}
