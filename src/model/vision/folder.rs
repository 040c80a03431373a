//! The declaration of a family's Hugging Face folders: members of `config.json`, and names of tensors. `hugging_face` makes an
//! `mmproj` file of them.

use crate::{
    Result,
    model::{
        architectures::Names,
        config::{ConfigJson, json::missing},
    },
    weights::Metadata,
};

/// Member of `vision_config`: the layers whose outputs become values for the text model.
pub const DEEPSTACK: &str = "deepstack_visual_indexes";
/// The maximum number of numbers in a list of layers.
const MAX_LISTED: usize = 256;

/// A count in `vision_config`: the member, its key without `clip.vision.`, and the value in `transformers` where it is
/// missing.
pub type Size = (&'static str, &'static str, u32);

/// The declaration of a family's Hugging Face folders.
#[derive(Debug)]
pub struct FolderKind {
    /// Values of `model_type`.
    pub model_types: &'static [&'static str],
    /// The configuration of the text model alone, with the defaults of the family.
    pub text: fn(&ConfigJson) -> Result<ConfigJson>,
    /// Counts of the tower.
    pub sizes: &'static [&'static [Size]],
    /// Values of `hidden_act` that this build computes as `activation_flag` says.
    pub activations: &'static [&'static str],
    /// The `clip` key that is true for these activations.
    pub activation_flag: Option<&'static str>,
    /// Mean of each channel, if there is no `preprocessor_config.json`.
    pub mean: [f32; 3],
    /// Deviation of each channel, if there is no `preprocessor_config.json`.
    pub std: [f32; 3],
    /// Layers in [`DEEPSTACK`], if the member is missing.
    pub deepstack: &'static [u32],
    /// Adds what only this family has.
    pub add: fn(&FolderJson, &mut Metadata) -> Result<()>,
    /// The prefix of the names of the tower's and the projector's tensors, after an optional `model.`.
    pub prefixes: &'static [&'static str],
    /// Modules, or whole names, after the prefix, and those in `mmproj` files. `*` is the layer's number.
    pub tensors: &'static [Names],
    /// Whether patches go through a matrix whose columns are pixel by pixel, not through a convolution, whose are channel by
    /// channel.
    pub has_linear_patches: bool,
    /// Beginnings of names, after the prefix, that rows of images do not need.
    pub ignored: &'static [&'static str],
    /// The module of the `mmproj` file whose checkpoint lacks the 1 that is added to its weights.
    pub plus_one: Option<&'static str>,
}

impl FolderKind {
    /// The values that most families have. The text model is nested, and pixels are from -1 to 1.
    pub const PLAIN: FolderKind = FolderKind {
        model_types: &[],
        text: nested_text,
        sizes: &[],
        activations: &["gelu_pytorch_tanh", "gelu_new"],
        activation_flag: Some("clip.use_gelu"),
        mean: [0.5; 3],
        std: [0.5; 3],
        deepstack: &[],
        add: |_, _| Ok(()),
        prefixes: &[],
        tensors: &[],
        has_linear_patches: false,
        ignored: &[],
        plus_one: None,
    };
}

/// The JSON files of a folder.
#[derive(Debug)]
pub struct FolderJson {
    /// `config.json`.
    pub config: ConfigJson,
    /// `vision_config`.
    pub vision: ConfigJson,
    /// The configuration of the text model alone.
    pub text: ConfigJson,
    /// `preprocessor_config.json`.
    pub preprocessor: Option<ConfigJson>,
}

impl FolderJson {
    /// The members of both files.
    ///
    /// # Errors
    /// [`crate::Error::InvalidModelFile`] for members that are missing or have the wrong type.
    pub fn new(
        kind: &FolderKind,
        config: ConfigJson,
        preprocessor: Option<ConfigJson>,
    ) -> Result<FolderJson> {
        Ok(FolderJson {
            vision: vision(&config)?,
            text: (kind.text)(&config)?,
            config,
            preprocessor,
        })
    }
}

/// The configuration of the text model alone, of folders that have it in an object.
pub fn nested_text(config: &ConfigJson) -> Result<ConfigJson> {
    let text = config.object("text_config")?;
    let mut text = text.ok_or_else(|| missing("text_config"))?;
    // Whether the output is tied is a property of the whole model, if it says so.
    if let Some(tied) = config.bool("tie_word_embeddings")? {
        text.set("tie_word_embeddings", tied);
    }
    if let Some(quantization) = config.get("quantization_config").cloned() {
        text.add("quantization_config", quantization);
    }
    Ok(text)
}

/// The member `vision_config`.
pub fn vision(config: &ConfigJson) -> Result<ConfigJson> {
    let vision = config.object("vision_config")?;
    vision.ok_or_else(|| missing("vision_config"))
}

/// Numbers of layers, in ascending order.
pub fn layers(vision: &ConfigJson, key: &str, default: &[u32]) -> Result<Vec<u32>> {
    let Some(numbers) = vision.numbers(key)? else {
        return Ok(default.to_vec());
    };
    let layers: Vec<u32> = numbers.iter().map(|it| *it as u32).collect();
    let are_layers = layers.iter().zip(&numbers).all(|(a, b)| *a as f32 == *b);
    let are_few = layers.len() <= MAX_LISTED;
    let are_sorted = layers.is_sorted_by(|a, b| a < b);
    vision.require(key, are_few && are_layers && are_sorted)?;
    Ok(layers)
}
