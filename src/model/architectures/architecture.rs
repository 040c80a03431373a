//! The declaration of an architecture. The default of every field is the value of a Llama, so a declaration
//! names only what differs.

use crate::{
    Result,
    model::config::{ConfigJson, Keys, ModelConfig, RopePairs},
    weights::{MetadataValue, converted::RowFactors},
};

/// A table of names: (name in `from`, name in GGUF files).
pub type Names = &'static [(&'static str, &'static str)];

/// A tensor of checkpoints that a table of [`Names`] cannot describe: its name does not end in `weight` or `bias`, it
/// becomes several tensors, or it becomes one that has another suffix.
#[derive(Debug)]
pub struct Parameter {
    /// Name in checkpoints. The first `*` is the layer, a second one the expert.
    pub from: &'static str,
    /// The tensors of GGUF files that are made of it.
    pub to: &'static [(&'static str, Form)],
}

/// The conversion of a checkpoint's tensor to one of a GGUF file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    /// Its elements, with a number added to each.
    Plus(f32),
    /// The columns of the matrix as rows; of each matrix, if there are several.
    Transposed,
    /// The first half (0) or the second half (1) of the columns as rows; of each matrix, if there are several.
    TransposedHalf(u64),
    /// `-exp(x)` of each element.
    NegatedExp,
    /// The first half (0) or the second half (1) of the rows, of each expert if it has experts.
    HalfRows(u64),
    /// Its rows from this one on.
    RowsFrom(u64),
    /// Every second element of its rows, from this one on.
    Alternate(usize),
    /// The rows of MXFP4 blocks, whose exponents are in the tensor that is called `scales` where this one is called
    /// `blocks`; every second row from the given one on.
    Mxfp4(Option<u64>),
}

impl Form {
    /// The elements as they are.
    pub const SAME: Form = Form::Plus(0.0);
}

/// Takes metadata keys without the architecture, and their values.
pub type AddKey<'a> = &'a mut dyn FnMut(&str, MetadataValue);

/// The factors of the rows of a matrix, by the name of its part, that a configuration implies; `None`: there are none.
pub type RowFactorsOf = fn(&ConfigJson, &str) -> Result<Option<RowFactors>>;

/// The declaration of an architecture.
#[derive(Debug)]
pub struct Architecture {
    /// `general.architecture` of its GGUF files.
    pub name: &'static str,
    /// `model_type` in the `config.json` of its Hugging Face folders.
    pub model_types: &'static [&'static str],
    /// `model_type` of folders whose tokens attend to each other (`use_bidirectional_attention`).
    pub bidirectional_model_types: &'static [&'static str],
    /// Changes the configuration of a Llama to that of this architecture. Reads the metadata keys
    /// that Llama does not have.
    pub configure: fn(&Keys, &mut ModelConfig) -> Result<()>,
    /// Pairs of rotary embedding in its GGUF files.
    pub gguf_pairs: RopePairs,
    /// Pairs of rotary embedding in its Hugging Face checkpoints. If they differ, converters reorder
    /// the rows of queries and keys.
    pub checkpoint_pairs: RopePairs,
    /// Brings a `config.json` to the form of Llama's: renames and adds members, and refuses what this
    /// build computes differently.
    pub read_json: fn(&mut ConfigJson) -> Result<()>,
    /// Adds the keys that follow from several members of a `config.json`, or from a list.
    pub add_keys: fn(&ConfigJson, AddKey) -> Result<()>,
    /// Integer members of `config.json` that Llama does not have, and their metadata keys without the
    /// architecture.
    pub json_sizes: Names,
    /// The other numeric members, and their metadata keys without the architecture.
    pub json_numbers: Names,
    /// Modules of the checkpoint that Llama does not have or that mean something else there, and their
    /// GGUF names. `*` stands for the layer's number, a second `*` for the expert's.
    pub tensors: &'static [Names],
    /// Tensors of a checkpoint that tables of names cannot describe.
    pub parameters: fn(&ConfigJson) -> &'static [Parameter],
    /// Prefixes of tensors that are not part of the text model: towers, heads for further tokens.
    pub other_parts: &'static [&'static str],
    /// A prefix of all tensor names that some checkpoints have and some lack.
    pub optional_prefix: &'static str,
    /// The addend of the weights of norms. GGUF files hold the sum.
    pub norm_offset: f32,
    /// Factors of the rows of a layer's matrix, by the name of its part (`attn_q`), that follow from a `config.json`.
    /// GGUF files hold the products, so a PEFT adapter does not fit them.
    pub row_factors: Option<RowFactorsOf>,
    /// Whether checkpoints hold the matrices of layers as `[inputs, outputs]`.
    pub transposes_layers: bool,
}

impl Architecture {
    /// The defaults: a Llama (Touvron et al. 2023, <https://arxiv.org/abs/2302.13971>) in the row order of
    /// its Hugging Face checkpoints.
    pub const LLAMA_LIKE: Architecture = Architecture {
        name: "",
        model_types: &[],
        bidirectional_model_types: &[],
        configure: |_, _| Ok(()),
        gguf_pairs: RopePairs::Halves,
        checkpoint_pairs: RopePairs::Halves,
        read_json: |_| Ok(()),
        add_keys: |_, _| Ok(()),
        json_sizes: &[],
        json_numbers: &[],
        tensors: &[],
        parameters: |_| &[],
        other_parts: &[],
        optional_prefix: "",
        norm_offset: 0.0,
        row_factors: None,
        transposes_layers: false,
    };
}
