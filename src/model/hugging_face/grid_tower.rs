//! What the folders of Qwen2-VL and its successors have in place of what `tower` reads: members of the configuration,
//! names of tensors, kernels of patches.

use super::recipes::tower_recipe;
use crate::{
    Error, Result,
    model::{
        architectures::DEEPSTACK_LAYERS,
        config::{ConfigJson, MergerFamily, json::missing, vision::ARCHITECTURE},
    },
    tensor_types::TensorType,
    weights::{
        Metadata,
        converted::{Origin, Part, Recipe},
        safetensors::StoredTensor,
    },
};

/// Modules of the tower and the projector, as in `tower`.
pub const MODULES: &[(&str, &str)] = &[
    ("patch_embed.proj", "v.patch_embd"),
    ("pos_embed", "v.position_embd"),
    ("blocks.*.norm1", "v.blk.*.ln1"),
    ("blocks.*.norm2", "v.blk.*.ln2"),
    ("blocks.*.attn.qkv", "v.blk.*.attn_qkv"),
    ("blocks.*.attn.proj", "v.blk.*.attn_out"),
    ("blocks.*.mlp.gate_proj", "v.blk.*.ffn_gate"),
    ("blocks.*.mlp.up_proj", "v.blk.*.ffn_up"),
    ("blocks.*.mlp.down_proj", "v.blk.*.ffn_down"),
    ("blocks.*.mlp.fc1", "v.blk.*.ffn_up"),
    ("blocks.*.mlp.fc2", "v.blk.*.ffn_down"),
    ("blocks.*.mlp.linear_fc1", "v.blk.*.ffn_up"),
    ("blocks.*.mlp.linear_fc2", "v.blk.*.ffn_down"),
    ("merger.ln_q", "v.post_ln"),
    ("merger.norm", "v.post_ln"),
    ("merger.mlp.0", "mm.0"),
    ("merger.mlp.2", "mm.2"),
    ("merger.linear_fc1", "mm.0"),
    ("merger.linear_fc2", "mm.2"),
    ("deepstack_merger_list.*.norm", "v.deepstack.*.norm"),
    ("deepstack_merger_list.*.linear_fc1", "v.deepstack.*.fc1"),
    ("deepstack_merger_list.*.linear_fc2", "v.deepstack.*.fc2"),
];
/// Member of a tower's configuration: the layers whose outputs become values for the text model.
const DEEPSTACK: &str = "deepstack_visual_indexes";
/// Most numbers in a list of layers.
const MAX_LISTED: usize = 256;
/// Frames that become a patch. A picture is both.
const FRAMES: u32 = 2;
/// Means and deviations of the channels in the processors of Qwen2-VL and Qwen2.5-VL.
const CLIP_MEAN: [f32; 3] = [0.481_454_66, 0.457_827_5, 0.408_210_73];
const CLIP_STD: [f32; 3] = [0.268_629_54, 0.261_302_6, 0.275_777_1];

/// The configuration of the text model alone. Earlier folders have it beside that of the tower, not in an object.
pub fn text(family: MergerFamily, config: &ConfigJson) -> Result<ConfigJson> {
    let mut text = match config.object("text_config")? {
        Some(text) => text,
        None => config.clone(),
    };
    if let Some(tied) = config.bool("tie_word_embeddings")? {
        text.set("tie_word_embeddings", tied);
    }
    let (model_type, eps, base) = match family {
        MergerFamily::Qwen2 => ("qwen2_vl_text", 1e-5, 1e6),
        MergerFamily::Qwen25 => ("qwen2_5_vl_text", 1e-5, 1e6),
        MergerFamily::Qwen3 => ("qwen3_vl_text", 1e-6, 5e6),
    };
    text.set("model_type", model_type);
    text.add("rms_norm_eps", eps);
    if text.get("rope_parameters").is_none() {
        text.add("rope_theta", base);
    }
    if family == MergerFamily::Qwen3 {
        text.set(DEEPSTACK_LAYERS, deepstack(config)?.len());
    }
    Ok(text)
}

/// The layers whose outputs become values for the text model, in the order of their projectors.
fn deepstack(config: &ConfigJson) -> Result<Vec<u32>> {
    let vision = vision(config)?;
    layers(&vision, DEEPSTACK, &[8, 16, 24])
}

fn vision(config: &ConfigJson) -> Result<ConfigJson> {
    config
        .object("vision_config")?
        .ok_or_else(|| missing("vision_config"))
}

/// Numbers of layers, in ascending order.
fn layers(vision: &ConfigJson, key: &str, default: &[u32]) -> Result<Vec<u32>> {
    let Some(numbers) = vision.numbers(key)? else {
        return Ok(default.to_vec());
    };
    let layers: Vec<u32> = numbers.iter().map(|it| *it as u32).collect();
    let are_layers = layers.iter().zip(&numbers).all(|(a, b)| *a as f32 == *b);
    let are_few = layers.len() <= MAX_LISTED;
    vision.require(
        key,
        are_few && are_layers && layers.is_sorted_by(|a, b| a < b),
    )?;
    Ok(layers)
}

/// How a tensor becomes one of the `mmproj` file, or two, and where it is. `name` is that of `tower`.
pub fn recipes(
    config: &ConfigJson,
    name: String,
    mut stored: StoredTensor,
) -> Result<Vec<(u64, Recipe)>> {
    if name == "v.patch_embd.weight" {
        return kernels(&name, stored);
    }
    let Some((at, part)) = name
        .strip_prefix("v.deepstack.")
        .and_then(|rest| rest.split_once('.'))
    else {
        return Ok(vec![tower_recipe(name, stored)?]);
    };
    let layers = deepstack(config)?;
    let layer = at.parse::<usize>().ok().and_then(|at| layers.get(at));
    let layer = layer.ok_or_else(|| {
        let name: String = std::mem::take(&mut stored.name).chars().take(80).collect();
        Error::UnsupportedModel(format!(
            "a vision tower with a tensor {name:?} and {DEEPSTACK} {layers:?}"
        ))
    })?;
    let name = format!("v.deepstack.{layer}.{part}");
    Ok(vec![tower_recipe(name, stored)?])
}

/// The kernels of each frame as a matrix.
fn kernels(name: &str, mut stored: StoredTensor) -> Result<Vec<(u64, Recipe)>> {
    let [width, height, frames, channels, outputs] = stored.shape[..] else {
        return Err(Error::InvalidModelFile(format!(
            "tensor {name} has {} dimensions, not 5",
            stored.shape.len()
        )));
    };
    if frames != u64::from(FRAMES) {
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
    Ok((0..FRAMES as usize).map(frame).collect())
}

/// The metadata of the `mmproj` file. Members that are left out have the defaults of transformers.
pub fn metadata(
    family: MergerFamily,
    vision: &ConfigJson,
    text: &ConfigJson,
    preprocessor: Option<&ConfigJson>,
) -> Result<Metadata> {
    let size = |key: &str, default: u32| Ok::<u32, Error>(vision.size(key)?.unwrap_or(default));
    let patch = size("patch_size", family_patch(family))?;
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", ARCHITECTURE);
    metadata.insert("clip.has_vision_encoder", true);
    metadata.insert("clip.projector_type", family.projector());
    let frames = size("temporal_patch_size", FRAMES)?;
    vision.require("temporal_patch_size", frames == FRAMES)?;
    let activation = vision.str("hidden_act")?;
    let (activations, flag): (&[&str], _) = match family {
        MergerFamily::Qwen2 => (&["quick_gelu"], None),
        MergerFamily::Qwen25 => (&["silu"], Some("clip.use_silu")),
        MergerFamily::Qwen3 => (&["gelu_pytorch_tanh", "gelu_new"], Some("clip.use_gelu")),
    };
    let is_known = activation.is_none_or(|it| activations.contains(&it));
    vision.require("hidden_act", is_known)?;
    if let Some(flag) = flag {
        metadata.insert(flag, true);
    }
    let depth = size(
        "depth",
        if family == MergerFamily::Qwen3 {
            27
        } else {
            32
        },
    )?;
    let (dim, ffn_dim) = match family {
        MergerFamily::Qwen2 => {
            let dim = size("embed_dim", 1280)?;
            let ratio = vision.number("mlp_ratio")?.unwrap_or(4.0);
            (dim, (f64::from(dim) * ratio) as u32)
        }
        MergerFamily::Qwen25 => (size("hidden_size", 3584)?, size("intermediate_size", 3420)?),
        MergerFamily::Qwen3 => (size("hidden_size", 1152)?, size("intermediate_size", 4304)?),
    };
    for (key, value) in [
        ("projection_dim", text.needed("hidden_size")?),
        ("patch_size", patch),
        ("embedding_length", dim),
        ("feed_forward_length", ffn_dim),
        ("block_count", depth),
        ("attention.head_count", size("num_heads", 16)?),
        ("spatial_merge_size", size("spatial_merge_size", 2)?),
    ] {
        metadata.insert(format!("clip.vision.{key}"), value);
    }
    match family {
        MergerFamily::Qwen2 => {}
        MergerFamily::Qwen25 => {
            let period = period(vision, depth)?;
            metadata.insert("clip.vision.n_wa_pattern", period);
            metadata.insert("clip.vision.window_size", size("window_size", 112)?);
        }
        MergerFamily::Qwen3 => {
            let side = size("num_position_embeddings", 2304)?.isqrt();
            metadata.insert("clip.vision.image_size", side.saturating_mul(patch));
            let layers = layers(vision, DEEPSTACK, &[8, 16, 24])?;
            // The loader refuses more layers than it has bounds for.
            let count = layers
                .last()
                .map_or(0, |last| last.saturating_add(1))
                .min(1 << 16);
            let flags: Vec<bool> = (0..count).map(|layer| layers.contains(&layer)).collect();
            metadata.insert("clip.vision.is_deepstack_layers", flags);
        }
    }
    metadata.insert("clip.vision.attention.layer_norm_epsilon", 1e-6f32);
    add_pixels(&mut metadata, family, preprocessor)?;
    Ok(metadata)
}

fn family_patch(family: MergerFamily) -> u32 {
    match family {
        MergerFamily::Qwen2 | MergerFamily::Qwen25 => 14,
        MergerFamily::Qwen3 => 16,
    }
}

/// The last of so many layers attends to the whole picture; the configuration lists all of these.
fn period(vision: &ConfigJson, depth: u32) -> Result<u32> {
    let key = "fullatt_block_indexes";
    let whole = layers(vision, key, &[7, 15, 23, 31])?;
    let period = whole.first().map_or(0, |first| first.saturating_add(1));
    let expected = (1..=depth.checked_div(period).unwrap_or(0)).map(|n| n * period - 1);
    vision.require(key, period > 0 && expected.eq(whole.iter().copied()))?;
    Ok(period)
}

/// Channels and bounds of pixels.
fn add_pixels(
    metadata: &mut Metadata,
    family: MergerFamily,
    preprocessor: Option<&ConfigJson>,
) -> Result<()> {
    let [mean, std] = match family {
        MergerFamily::Qwen2 | MergerFamily::Qwen25 => [CLIP_MEAN, CLIP_STD],
        MergerFamily::Qwen3 => [[0.5; 3]; 2],
    };
    for (key, default) in [("image_mean", mean), ("image_std", std)] {
        let values = match preprocessor {
            Some(preprocessor) => preprocessor.numbers(key)?,
            None => None,
        };
        let values = values.unwrap_or_else(|| default.to_vec());
        metadata.insert(format!("clip.vision.{key}"), values);
    }
    let Some(preprocessor) = preprocessor else {
        return Ok(());
    };
    let sizes = preprocessor.object("size")?;
    // Earlier processors name the bounds themselves, later ones as sides, which they are not.
    for (key, member) in [
        ("min_pixels", "shortest_edge"),
        ("max_pixels", "longest_edge"),
    ] {
        let pixels = match (preprocessor.size(key)?, &sizes) {
            (Some(pixels), _) => Some(pixels),
            (None, Some(sizes)) => sizes.size(member)?,
            (None, None) => None,
        };
        if let Some(pixels) = pixels {
            // More than any tower takes; the loader has a bound of its own.
            let pixels = pixels.min(1 << 24);
            metadata.insert(format!("clip.vision.image_{key}"), pixels);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> ConfigJson {
        ConfigJson::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn sparse_configurations_get_the_defaults_of_the_family() {
        let vision = config("{}");
        let text = config(r#"{"hidden_size": 2048}"#);
        for (family, sizes) in [
            (MergerFamily::Qwen2, [1280, 5120, 32, 14]),
            (MergerFamily::Qwen25, [3584, 3420, 32, 14]),
            (MergerFamily::Qwen3, [1152, 4304, 27, 16]),
        ] {
            let metadata = metadata(family, &vision, &text, None).unwrap();
            let size = |key: &str| metadata.u32(&format!("clip.vision.{key}")).unwrap();
            let keys = [
                "embedding_length",
                "feed_forward_length",
                "block_count",
                "patch_size",
            ];
            assert_eq!(keys.map(size), sizes.map(Some));
            let pattern = (family == MergerFamily::Qwen25).then_some(8);
            assert_eq!(size("n_wa_pattern"), pattern);
            let image = (family == MergerFamily::Qwen3).then_some(768);
            assert_eq!(size("image_size"), image);
        }
    }

    #[test]
    fn layers_without_a_period_are_refused() {
        for (layers, depth, is_supported) in [
            ("[1, 3]", 4, true),
            ("[1, 3]", 5, true),
            ("[1]", 4, false),
            ("[1, 4]", 6, false),
            ("[3, 1]", 4, false),
            ("[]", 4, false),
            ("[0.5]", 1, false),
            ("[-1]", 1, false),
            ("[4294967295]", 4, false),
        ] {
            let vision = config(&format!(r#"{{"fullatt_block_indexes": {layers}}}"#));
            assert_eq!(period(&vision, depth).is_ok(), is_supported, "{layers}");
        }
    }

    #[test]
    fn bounds_of_pixels_have_two_names() {
        for json in [
            r#"{"min_pixels": 3136, "max_pixels": 12845056}"#,
            r#"{"size": {"shortest_edge": 3136, "longest_edge": 12845056}}"#,
        ] {
            let mut metadata = Metadata::new();
            add_pixels(&mut metadata, MergerFamily::Qwen2, Some(&config(json))).unwrap();
            let size = |key: &str| metadata.u32(&format!("clip.vision.image_{key}")).unwrap();
            assert_eq!(size("min_pixels"), Some(3136));
            assert_eq!(size("max_pixels"), Some(12_845_056));
            let mean = metadata.f32s("clip.vision.image_mean").unwrap().unwrap();
            assert_eq!(mean, CLIP_MEAN);
        }
    }
}
