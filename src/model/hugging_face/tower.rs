//! The vision tower of a folder as the `mmproj` file that a converter would make of it, and the folder's text model
//! without the tower. What the families differ in is declared in `vision`.

use super::{recipes::tower_recipe, shards};
use crate::{
    Error, Result,
    model::{
        config::{ConfigJson, json::MAX_JSON_BYTES},
        vision::{ARCHITECTURE, DEEPSTACK, Family, FolderJson, find_by_config, layers},
    },
    tensor_types::TensorType,
    weights::{
        ConvertedSource, Gguf, JoinedSource, Metadata, ModelFiles,
        converted::{Origin, Part, Recipe},
        files::read_small,
        safetensors::StoredTensor,
    },
};

/// The prefixes of the text model's tensor names, and what takes their place. Later versions of transformers have
/// other names.
const TEXT_PREFIXES: [(&str, &str); 3] = [
    ("model.language_model.", "model."),
    ("model.text_model.", "model."),
    ("language_model.", ""),
];

/// The tensors of the text model under the names that they have without other parts: the tower of `family`, and tensors
/// with one of the `prefixes`.
pub fn text_tensors(
    family: Option<&Family>,
    prefixes: &[&str],
    tensors: Vec<StoredTensor>,
) -> Vec<StoredTensor> {
    if family.is_none() && prefixes.is_empty() {
        return tensors;
    }
    let is_other = |name: &str| {
        prefixes.iter().any(|prefix| name.starts_with(prefix))
            || family.is_some_and(|family| tower_part(family, name).is_some())
    };
    let text = tensors.into_iter().filter(|it| !is_other(&it.name));
    with_text_names(text).collect()
}

fn with_text_names(
    tensors: impl Iterator<Item = StoredTensor>,
) -> impl Iterator<Item = StoredTensor> {
    tensors.map(|mut tensor| {
        if let Some(name) = text_name(&tensor.name) {
            tensor.name = name;
        }
        tensor
    })
}

/// The name of a tensor of a text model that is beside a tower, without its prefix.
pub fn text_name(name: &str) -> Option<String> {
    let mut prefixes = TEXT_PREFIXES.iter();
    prefixes.find_map(|(theirs, ours)| Some(format!("{ours}{}", name.strip_prefix(theirs)?)))
}

/// The name of a tensor of the tower or the projector without its prefix; `None` for those of the text model.
fn tower_part<'a>(family: &Family, name: &'a str) -> Option<&'a str> {
    let name = name.strip_prefix("model.").unwrap_or(name);
    let mut prefixes = family.folder.prefixes.iter();
    prefixes.find_map(|prefix| name.strip_prefix(prefix))
}

/// The name in an `mmproj` file of what [`tower_part`] returns. Layers whose outputs become values for the text model are
/// counted there; `deepstack` has their numbers.
fn tower_name(family: &Family, part: &str, deepstack: &[u32]) -> Option<String> {
    let find = |pattern: &str| {
        let mut rows = family.folder.tensors.iter().copied().flatten();
        rows.find(|(theirs, _)| *theirs == pattern)
    };
    if let Some((_, whole)) = find(part) {
        return Some((*whole).to_owned());
    }
    let (module, suffix) = part.rsplit_once('.')?;
    let numbers = module.split('.').filter(|part| part.parse::<u32>().is_ok());
    let numbers: Vec<&str> = numbers.collect();
    let pattern = match numbers[..] {
        [] => module.to_owned(),
        [number] => module.replacen(&format!(".{number}."), ".*.", 1),
        _ => return None,
    };
    let (_, name) = find(&pattern)?;
    let number = match (name.starts_with("v.deepstack."), numbers.first()) {
        (true, Some(at)) => deepstack.get(at.parse::<usize>().ok()?)?.to_string(),
        (_, number) => (*number.unwrap_or(&"")).to_owned(),
    };
    Some(format!("{}.{suffix}", name.replacen('*', &number, 1)))
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
    let Some(family) = find_by_config(&config)? else {
        return Ok(None);
    };
    let preprocessor = match read_small(files, "preprocessor_config.json", MAX_JSON_BYTES).await? {
        Some(bytes) => Some(ConfigJson::parse(&bytes)?),
        None => None,
    };
    let folder = FolderJson::new(&family.folder, config, preprocessor)?;
    let inputs = folder.text.number("hidden_size_per_layer_input")?;
    if family.tower.needs_layer_inputs && inputs == Some(0.0) {
        return Ok(None);
    }
    let deepstack = layers(&folder.vision, DEEPSTACK, family.folder.deepstack)?;
    let metadata = metadata(family, &folder, &deepstack)?;
    let shards = shards::read(files, &[], true).await?;
    let mut recipes = Vec::new();
    for stored in shards.tensors {
        let Some(part) = tower_part(family, &stored.name) else {
            continue;
        };
        let mut ignored = family.folder.ignored.iter();
        if ignored.any(|ignored| part.starts_with(ignored)) {
            continue;
        }
        let name = tower_name(family, part, &deepstack).ok_or_else(|| {
            let name: String = stored.name.chars().take(80).collect();
            Error::UnsupportedModel(format!("a vision tower with a tensor {name:?}"))
        })?;
        match name == "v.patch_embd.weight" {
            true if family.tower.frames > 1 => recipes.extend(frames(family, &name, stored)?),
            true if family.folder.has_linear_patches => recipes.push(linear_patches(name, stored)?),
            _ => recipes.push(recipe(family, name, stored)?),
        }
    }
    if recipes.is_empty() {
        // The text model alone, whose `config.json` still describes the tower.
        return Ok(None);
    }
    recipes.sort_by_key(|(offset_bytes, _)| *offset_bytes);
    let recipes = recipes.into_iter().map(|(_, recipe)| recipe).collect();
    ConvertedSource::new(shards.source, metadata, recipes).map(Some)
}

/// The conversion of a tensor to one of the `mmproj` file, and its place.
fn recipe(family: &Family, name: String, mut stored: StoredTensor) -> Result<(u64, Recipe)> {
    if stored.shape.is_empty() {
        // A number.
        stored.shape.push(1);
    }
    let module = name.rsplit_once('.').map(|(module, _)| module);
    let offset = match module.is_some() && module == family.folder.plus_one {
        true => 1.0,
        false => 0.0,
    };
    tower_recipe(name, stored, offset)
}

/// The matrix of patches, whose columns are pixel by pixel.
fn linear_patches(name: String, stored: StoredTensor) -> Result<(u64, Recipe)> {
    let stored = stored.into_floats()?;
    let offset_bytes = stored.offset_bytes;
    let recipe = Recipe {
        name,
        shape: stored.shape.clone(),
        ty: TensorType::F32,
        origin: Origin::Stored(vec![Part::ChannelsFirst(stored)]),
    };
    Ok((offset_bytes, recipe))
}

/// The kernels of patches, a matrix for each frame.
fn frames(family: &Family, name: &str, mut stored: StoredTensor) -> Result<Vec<(u64, Recipe)>> {
    let [width, height, frames, channels, outputs] = stored.shape[..] else {
        return Err(Error::InvalidModelFile(format!(
            "tensor {name} has {} dimensions, not 5",
            stored.shape.len()
        )));
    };
    if frames != family.tower.frames as u64 {
        return Err(Error::UnsupportedModel(format!(
            "a vision tower with patches of {frames} frames"
        )));
    }
    stored.shape = vec![width.saturating_mul(height), frames, channels, outputs];
    let stored = stored.into_floats()?;
    let frame = |frame: usize| {
        let part = Part::Frame(stored.clone(), frame);
        let name = match frame {
            0 => name.to_owned(),
            frame => format!("{name}.{frame}"),
        };
        let recipe = Recipe {
            name,
            shape: part.shape(),
            ty: TensorType::F32,
            origin: Origin::Stored(vec![part]),
        };
        (stored.offset_bytes, recipe)
    };
    Ok((0..family.tower.frames).map(frame).collect())
}

/// The metadata of the `mmproj` file. Members that are left out have the defaults of transformers. `deepstack` has the
/// layers whose outputs become values for the text model.
fn metadata(family: &Family, folder: &FolderJson, deepstack: &[u32]) -> Result<Metadata> {
    let (kind, vision) = (&family.folder, &folder.vision);
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", ARCHITECTURE);
    metadata.insert("clip.has_vision_encoder", true);
    metadata.insert("clip.projector_type", family.projector);
    let activation = vision.str("hidden_act")?;
    let is_known = activation.is_none_or(|it| kind.activations.contains(&it));
    vision.require("hidden_act", is_known)?;
    if let Some(flag) = kind.activation_flag {
        metadata.insert(flag, true);
    }
    let frames = vision.size("temporal_patch_size")?;
    let has_frames = frames.is_none_or(|frames| frames as usize == family.tower.frames);
    vision.require("temporal_patch_size", has_frames)?;
    let width = folder.text.needed("hidden_size")?;
    metadata.insert("clip.vision.projection_dim", width);
    for (member, key, default) in kind.sizes.iter().copied().flatten() {
        let size = vision.size(member)?.unwrap_or(*default);
        metadata.insert(format!("clip.vision.{key}"), size);
    }
    let eps = vision.number("layer_norm_eps")?.unwrap_or(1e-6);
    metadata.insert("clip.vision.attention.layer_norm_epsilon", eps as f32);
    for (key, default) in [("image_mean", kind.mean), ("image_std", kind.std)] {
        let values = match &folder.preprocessor {
            Some(preprocessor) => preprocessor.numbers(key)?,
            None => None,
        };
        let values = values.unwrap_or_else(|| default.to_vec());
        metadata.insert(format!("clip.vision.{key}"), values);
    }
    if let Some(last) = deepstack.last() {
        // The loader refuses more layers than it has bounds for.
        let count = last.saturating_add(1).min(1 << 16);
        let flags: Vec<bool> = (0..count).map(|it| deepstack.contains(&it)).collect();
        metadata.insert("clip.vision.is_deepstack_layers", flags);
    }
    (kind.add)(folder, &mut metadata)?;
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(json: &str) -> ConfigJson {
        ConfigJson::parse(json.as_bytes()).unwrap()
    }

    fn family(model_type: &str) -> &'static Family {
        let config = json(&format!(r#"{{"model_type": "{model_type}"}}"#));
        find_by_config(&config).unwrap().unwrap()
    }

    /// The metadata of a folder whose `config.json` has these members.
    fn metadata_of(config: &str, preprocessor: Option<&str>) -> Metadata {
        let config = json(config);
        let family = find_by_config(&config).unwrap().unwrap();
        let folder = FolderJson::new(&family.folder, config, preprocessor.map(json));
        metadata(family, &folder.unwrap(), &[]).unwrap()
    }

    #[test]
    fn tensors_of_towers_get_the_names_of_mmproj_files() {
        for (model_type, name, expected) in [
            (
                "gemma3",
                "vision_tower.vision_model.embeddings.patch_embedding.bias",
                "v.patch_embd.bias",
            ),
            (
                "gemma3",
                "model.vision_tower.vision_model.encoder.layers.11.mlp.fc2.weight",
                "v.blk.11.ffn_down.weight",
            ),
            (
                "smolvlm",
                "model.vision_model.encoder.layers.0.self_attn.out_proj.weight",
                "v.blk.0.attn_out.weight",
            ),
            (
                "idefics3",
                "model.connector.modality_projection.proj.weight",
                "mm.model.fc.weight",
            ),
            (
                "gemma3",
                "multi_modal_projector.mm_input_projection_weight",
                "mm.input_projection.weight",
            ),
            (
                "gemma3",
                "multi_modal_projector.mm_soft_emb_norm.weight",
                "mm.soft_emb_norm.weight",
            ),
            (
                "qwen2_vl",
                "visual.blocks.3.mlp.fc1.bias",
                "v.blk.3.ffn_up.bias",
            ),
            (
                "qwen2_5_vl",
                "model.visual.merger.mlp.2.weight",
                "mm.2.weight",
            ),
            (
                "qwen3_vl",
                "model.visual.deepstack_merger_list.1.norm.bias",
                "v.deepstack.7.norm.bias",
            ),
            ("qwen3_5", "model.visual.merger.norm.bias", "v.post_ln.bias"),
            (
                "lfm2_vl",
                "model.vision_tower.vision_model.embeddings.patch_embedding.weight",
                "v.patch_embd.weight",
            ),
            (
                "lfm2_vl",
                "model.multi_modal_projector.linear_2.bias",
                "mm.2.bias",
            ),
            (
                "gemma4",
                "model.vision_tower.encoder.layers.3.self_attn.q_proj.linear.weight",
                "v.blk.3.attn_q.weight",
            ),
            (
                "gemma4",
                "model.vision_tower.encoder.layers.3.self_attn.q_proj.input_max",
                "v.blk.3.attn_q.input_max",
            ),
            (
                "gemma4",
                "model.vision_tower.patch_embedder.position_embedding_table",
                "v.position_embd.weight",
            ),
        ] {
            let family = family(model_type);
            let part = tower_part(family, name).unwrap();
            let found = tower_name(family, part, &[5, 7]);
            assert_eq!(found.as_deref(), Some(expected));
        }
        for part in [
            "encoder.layers.0.1.fc",
            "encoder.norm.weight",
            "weight",
            "",
            "deepstack_merger_list.2.norm.bias",
            "deepstack_merger_list.-1.norm.bias",
        ] {
            for model_type in ["gemma3", "qwen3_vl"] {
                assert_eq!(tower_name(family(model_type), part, &[5, 7]), None);
            }
        }
        for name in ["model.layers.0.mlp.up_proj.weight", "lm_head.weight"] {
            assert_eq!(tower_part(family("gemma3"), name), None, "{name}");
        }
    }

    #[test]
    fn sparse_configurations_get_the_defaults_of_the_family() {
        let config = r#"{"model_type": "gemma3", "mm_tokens_per_image": 256, "text_config":
            {"hidden_size": 2560, "num_hidden_layers": 34, "model_type": "gemma3_text"}, "vision_config":
            {"hidden_size": 1152, "image_size": 896, "patch_size": 14, "num_attention_heads": 16}}"#;
        let text = (family("gemma3").folder.text)(&json(config)).unwrap();
        assert_eq!(text.size("num_attention_heads").unwrap(), Some(8));
        assert_eq!(text.size("num_hidden_layers").unwrap(), Some(34));
        assert_eq!(text.bool("tie_word_embeddings").unwrap(), Some(true));
        let metadata = metadata_of(config, None);
        let size = |key: &str| metadata.u32(&format!("clip.vision.{key}")).unwrap();
        assert_eq!(size("projector.scale_factor"), Some(4));
        assert_eq!(size("projection_dim"), Some(2560));
        assert_eq!(size("feed_forward_length"), Some(3072));
        for (model_type, sizes) in [
            ("qwen2_vl", [1280, 5120, 32, 14]),
            ("qwen2_5_vl", [3584, 3420, 32, 14]),
            ("qwen3_vl", [1152, 4304, 27, 16]),
        ] {
            let config = format!(
                r#"{{"model_type": "{model_type}", "hidden_size": 2048, "vision_config": {{}}}}"#
            );
            let metadata = metadata_of(&config, None);
            let size = |key: &str| metadata.u32(&format!("clip.vision.{key}")).unwrap();
            let keys = [
                "embedding_length",
                "feed_forward_length",
                "block_count",
                "patch_size",
            ];
            assert_eq!(keys.map(size), sizes.map(Some));
            let pattern = (model_type == "qwen2_5_vl").then_some(8);
            assert_eq!(size("n_wa_pattern"), pattern);
            let image = (model_type == "qwen3_vl").then_some(768);
            assert_eq!(size("image_size"), image);
        }
    }

    #[test]
    fn bounds_of_pixels_have_two_names() {
        for preprocessor in [
            r#"{"min_pixels": 3136, "max_pixels": 12845056}"#,
            r#"{"size": {"shortest_edge": 3136, "longest_edge": 12845056}}"#,
        ] {
            let config = r#"{"model_type": "qwen2_vl", "hidden_size": 64, "vision_config": {}}"#;
            let metadata = metadata_of(config, Some(preprocessor));
            let size = |key: &str| metadata.u32(&format!("clip.vision.image_{key}")).unwrap();
            assert_eq!(size("min_pixels"), Some(3136));
            assert_eq!(size("max_pixels"), Some(12_845_056));
            let mean = metadata.f32s("clip.vision.image_mean").unwrap().unwrap();
            assert_eq!(mean, [0.481_454_66, 0.457_827_5, 0.408_210_73]);
        }
    }
}
