//! Folders in memory read as GGUF files, and folders that are refused.

use std::{cell::RefCell, collections::HashMap};

use pollster::block_on;
use serde_json::{Value, json};

use super::*;
use crate::{
    model::config::{ModelConfig, RopePairs, Window, embedding::Pooling},
    text::Tokenizer,
    weights::{ByteSource, BytesSource, FileSource},
};

/// A folder in memory.
#[derive(Clone)]
struct Folder(HashMap<String, Vec<u8>>);

impl ModelFiles for Folder {
    type Source = BytesSource<Vec<u8>>;

    fn gguf_name(&self) -> Option<String> {
        None
    }

    async fn open(&self, name: &str) -> Result<Option<Self::Source>> {
        Ok(self.0.get(name).cloned().map(BytesSource))
    }
}

/// A safetensors file of F32 tensors with rows of 32 elements. Each tensor has one value, and a shape with
/// the outermost dimension first.
fn safetensors(tensors: &[(&str, &[usize], f32)]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, shape, value) in tensors {
        let start = data.len();
        data.extend(value.to_le_bytes().repeat(shape.iter().product()));
        let entry = json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] });
        header.insert((*name).to_owned(), entry);
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

/// A config of the type with these changes.
fn config(model_type: &str, changes: Value) -> Value {
    let mut config = json!({
        "model_type": model_type,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 128,
        "rms_norm_eps": 1e-5,
    });
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

fn folder(config: Value, tensors: &[(&str, &[usize], f32)]) -> Folder {
    let files = [
        ("config.json", config.to_string().into_bytes()),
        ("model.safetensors", safetensors(tensors)),
    ];
    Folder(files.map(|(name, bytes)| (name.to_owned(), bytes)).into())
}

const EMBEDDINGS: (&str, &[usize], f32) = ("model.embed_tokens.weight", &[3, 32], 0.5);

fn configured(model_type: &str, changes: Value) -> Result<ModelConfig> {
    let folder = folder(config(model_type, changes), &[EMBEDDINGS]);
    architectures::read_config(&block_on(read(&folder, Quantize::None))?.0)
}

#[track_caller]
fn is_refused<T>(result: Result<T>, parts: &[&str]) {
    let error = result.map(|_| ()).unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "{error:?} does not say {part:?}");
    }
}

#[test]
fn configs_say_what_gguf_files_say() {
    let mistral = json!({ "sliding_window": 24, "rope_theta": 1e6, "num_key_value_heads": 1 });
    let mistral = configured("mistral", mistral).unwrap();
    assert_eq!(
        (mistral.architecture.as_str(), mistral.kv_heads),
        ("llama", 1)
    );
    assert!(
        mistral
            .layers
            .iter()
            .all(|layer| layer.window == Some(Window::Sliding(24)))
    );
    let rope = mistral.rope().unwrap();
    assert_eq!(rope.pairs, RopePairs::Halves);
    assert!(rope.base == 1e6 && rope.dims == 16);

    let newer =
        json!({ "rope_parameters": { "rope_type": "linear", "factor": 4.0, "rope_theta": 5e5 } });
    let newer = configured("llama", newer).unwrap();
    let rope = newer.rope().unwrap();
    assert_eq!(rope.base, 5e5);
    assert_eq!(
        rope.scaling,
        crate::model::config::Scaling::Linear { factor: 4.0 }
    );

    let gemma = json!({
        "head_dim": 16, "query_pre_attn_scalar": 64, "hidden_activation": "gelu_pytorch_tanh",
        "sliding_window": 24, "attn_logit_softcapping": 3.0,
    });
    let gemma = configured("gemma2", gemma).unwrap();
    assert_eq!(gemma.attention_scale, Some(0.125));
    assert_eq!(gemma.attention_soft_cap, Some(3.0));
    assert_eq!(gemma.layers[0].window, Some(Window::Sliding(24)));
    assert_eq!(gemma.layers[1].window, None);
}

#[test]
fn what_architectures_here_do_otherwise_is_refused_by_name() {
    for (model_type, changes, parts) in [
        (
            "mamba",
            json!({}),
            &["model_type \"mamba\"", "qwen3_moe"][..],
        ),
        (
            "gemma2",
            json!({ "hidden_act": "gelu_pytorch_tanh", "final_logit_softcapping": null }),
            &["without final_logit_softcapping"],
        ),
        (
            "gpt2",
            json!({ "scale_attn_by_inverse_layer_idx": true }),
            &["scale_attn_by_inverse_layer_idx"],
        ),
        (
            "gpt2",
            json!({ "activation_function": "gelu" }),
            &["hidden_act", "gelu"],
        ),
        (
            "llama",
            json!({ "hidden_act": "relu" }),
            &["hidden_act", "relu"],
        ),
        ("llama", json!({ "hidden_size": -1 }), &["hidden_size"]),
        (
            "llama",
            json!({ "rope_scaling": { "type": "dynamic", "factor": 2.0 } }),
            &["dynamic"],
        ),
        (
            "llama",
            json!({ "head_dim": u32::MAX, "rope_scaling": { "type": "llama3", "factor": 8.0 } }),
            &["heads of 4294967295 elements"],
        ),
        (
            "llama",
            json!({ "quantization_config": { "quant_method": "hqq" } }),
            &["\"hqq\""],
        ),
        (
            "qwen2",
            json!({ "use_sliding_window": true }),
            &["use_sliding_window"],
        ),
        (
            "smollm3",
            json!({ "no_rope_layers": [1, 0] }),
            &["no_rope_layers"],
        ),
        (
            "olmoe",
            json!({ "norm_topk_prob": true }),
            &["norm_topk_prob"],
        ),
        (
            "gemma3_text",
            json!({ "hidden_act": "gelu_pytorch_tanh", "layer_types": ["full_attention"] }),
            &["layer_types"],
        ),
    ] {
        is_refused(configured(model_type, changes), parts);
    }
}

#[test]
fn packings_that_cannot_be_read_are_refused_by_name() {
    for (changes, parts) in [
        (json!({ "bits": 3 }), &["gptq", "bits 3"][..]),
        (json!({ "checkpoint_format": "marlin" }), &["\"marlin\""]),
        (json!({ "is_marlin_format": true }), &["is_marlin_format"]),
        (json!({ "pack_dtype": "int64" }), &["\"int64\""]),
        (
            json!({ "dynamic": { "-:lm_head": {}, "model": { "bits": 8 } } }),
            &["dynamic"],
        ),
        (json!({ "group_size": 0 }), &["group_size 0"]),
        (json!({ "group_size": null }), &["group_size", "missing"]),
        (json!({ "bits": null }), &["bits", "missing"]),
        (
            json!({ "quant_method": "awq", "bits": 8 }),
            &["awq", "bits 8"],
        ),
        (
            json!({ "quant_method": "awq", "version": "gemv" }),
            &["version", "gemv"],
        ),
        (
            json!({ "quant_method": "awq", "checkpoint_format": "gemv_fast" }),
            &["checkpoint_format", "gemv_fast"],
        ),
        (
            json!({ "quant_method": "awq", "backend": "llm-awq" }),
            &["backend", "llm-awq"],
        ),
        (json!({ "quant_method": "bitsandbytes" }), &["bitsandbytes"]),
        (
            json!({ "quant_method": "compressed-tensors", "format": "pack-quantized" }),
            &["compressed-tensors"],
        ),
        (json!({ "quant_method": null }), &["some method"]),
    ] {
        let mut packing = json!({ "quant_method": "gptq", "bits": 4, "group_size": 32 });
        for (key, value) in changes.as_object().unwrap() {
            packing[key] = value.clone();
        }
        let changes = json!({ "quantization_config": packing });
        is_refused(configured("llama", changes), parts);
    }
    let packing = json!({ "quant_method": "gptq", "bits": 4, "group_size": -1 });
    let config = config("llama", json!({ "quantization_config": packing }));
    let name = "model.layers.0.self_attn.o_proj.qzeros";
    let folder = folder(config, &[EMBEDDINGS, (name, &[1, 4], 0.0)]);
    is_refused(
        block_on(read(&folder, Quantize::None)),
        &["o_proj.qweight is missing"],
    );
}

#[test]
fn scales_of_a_tensor_that_has_none_are_refused_by_name() {
    let quantization = json!({ "quant_method": "fp8", "weight_block_size": [128, 128] });
    let config = config("llama", json!({ "quantization_config": quantization }));
    let matrix = "model.layers.0.self_attn.o_proj.weight";
    let scales = "model.layers.0.self_attn.o_proj.weight_scale_inv";
    let tensors = [EMBEDDINGS, (matrix, &[32, 32], 0.5), (scales, &[1, 1], 2.0)];
    is_refused(
        block_on(read(&folder(config, &tensors), Quantize::None)),
        &["o_proj.weight", "F32", "o_proj.weight_scale_inv"],
    );
}

/// Weights whose scales are not applied would be wrong by orders of magnitude without a word.
#[test]
fn scales_without_a_matrix_of_their_own_are_refused_by_name() {
    let quantization = json!({ "quant_method": "fp8", "weight_block_size": [128, 128] });
    let config = config("llama", json!({ "quantization_config": quantization }));
    let matrix = "model.layers.0.self_attn.o_proj.weight";
    let [scales, others] = ["_scale_inv", "_scale"].map(|end| format!("{matrix}{end}"));
    let refused = |tensors: &[_], parts: &[&str]| {
        let read = block_on(read(&folder(config.clone(), tensors), Quantize::None));
        is_refused(read, parts);
    };
    refused(
        &[EMBEDDINGS, (&scales, &[1, 1], 2.0)],
        &[matrix, &scales, "is missing"],
    );
    let both = [(&*scales, &[1, 1][..], 2.0), (&others, &[1], 2.0)];
    refused(
        &[EMBEDDINGS, (matrix, &[32, 32], 0.5), both[0], both[1]],
        &[matrix, "also has", &others],
    );
}

/// GPT-2's keys have names of their own. Its checkpoints have masks, and no prefix before the names of the
/// body.
#[test]
fn gpt_2_is_read_without_its_masks() {
    let keys = json!({
        "model_type": "gpt2", "n_layer": 1, "n_positions": 16, "n_embd": 32, "n_head": 2,
        "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "n_inner": null,
    });
    let folder = folder(
        keys,
        &[
            ("wte.weight", &[3, 32], 0.5),
            ("h.0.attn.bias", &[1, 1, 16, 16], 1.0),
            ("h.0.attn.masked_bias", &[], 1.0),
            ("h.0.attn.c_attn.weight", &[32, 96], 0.5),
        ],
    );
    let (gguf, _) = block_on(read(&folder, Quantize::default())).unwrap();
    let config = architectures::read_config(&gguf).unwrap();
    assert_eq!((config.dim, config.ffn_dim, config.heads), (32, 128, 2));
    assert_eq!((config.context_tokens, config.norm_eps), (16, 1e-5));
    let tensors = gguf.tensors.iter();
    let tensors: Vec<_> = tensors.map(|it| (&*it.name, &it.shape[..])).collect();
    let expected = [
        ("token_embd.weight", &[32, 3][..]),
        ("blk.0.attn_qkv.weight", &[32, 96]),
    ];
    assert_eq!(tensors, expected);
}

#[test]
fn files_that_do_not_fit_the_folder_are_refused_by_name() {
    let read = |folder: &Folder| block_on(read(folder, Quantize::None));
    let whole = folder(config("llama", json!({})), &[EMBEDDINGS]);
    assert!(read(&whole).is_ok());
    let without = |name: &str| {
        let mut folder = whole.clone();
        folder.0.remove(name);
        folder
    };
    is_refused(read(&without("config.json")), &["config.json"]);
    is_refused(
        read(&without("model.safetensors")),
        &["\"model.safetensors\""],
    );
    let with_index = |map: Value| {
        let mut folder = whole.clone();
        let index = json!({ "weight_map": map }).to_string();
        folder
            .0
            .insert("model.safetensors.index.json".into(), index.into());
        folder
    };
    let name = EMBEDDINGS.0;
    assert!(read(&with_index(json!({ name: "model.safetensors" }))).is_ok());
    for (map, part) in [
        (
            json!({ name: "../model.safetensors" }),
            "../model.safetensors",
        ),
        (json!({ name: "model.bin" }), "model.bin"),
        (json!({ name: "other.safetensors" }), "other.safetensors"),
        (json!({ "lm_head.weight": "model.safetensors" }), name),
        (
            json!({ name: "model.safetensors", "lost": "model.safetensors" }),
            "\"lost\"",
        ),
    ] {
        is_refused(read(&with_index(map)), &[part]);
    }
    let untied = config("llama", json!({ "tie_word_embeddings": false }));
    is_refused(read(&folder(untied, &[EMBEDDINGS])), &["lm_head.weight"]);
}

#[test]
fn norms_of_gemma_grow_by_one_and_experts_are_stacked() {
    let element = |folder: &Folder, name: &str, row: u64| {
        let (gguf, source) = block_on(read(folder, Quantize::None)).unwrap();
        let tensor = gguf.tensor(name).unwrap();
        let mut bytes = [0; 4];
        block_on(source.read_at(tensor.offset_bytes + row * 128, &mut bytes)).unwrap();
        (f32::from_le_bytes(bytes), tensor.shape.clone())
    };
    let gelu = json!({ "hidden_act": "gelu_pytorch_tanh" });
    let gemma = folder(
        config("gemma2", gelu),
        &[EMBEDDINGS, ("model.norm.weight", &[32], 0.25)],
    );
    assert_eq!(element(&gemma, "output_norm.weight", 0).0, 1.25);
    assert_eq!(element(&gemma, "token_embd.weight", 0).0, 0.5);
    let experts = [
        EMBEDDINGS,
        ("model.layers.0.mlp.experts.1.up_proj.weight", &[2, 32], 1.0),
        ("model.layers.0.mlp.experts.0.up_proj.weight", &[2, 32], 7.0),
    ];
    let types = json!({ "norm_topk_prob": true });
    let of = |experts: &[_]| folder(config("qwen3_moe", types.clone()), experts);
    let whole = of(&experts);
    for (row, value) in [(1, 7.0), (2, 1.0)] {
        let expected = (value, vec![32, 2, 2]);
        assert_eq!(element(&whole, "blk.0.ffn_up_exps.weight", row), expected);
    }
    is_refused(
        block_on(read(&of(&experts[..2]), Quantize::None)),
        &["an expert", "ffn_up_exps"],
    );
}

/// The factors are those that a converter wrote for the same configuration.
#[test]
fn factors_of_llama_3_are_those_of_gguf_files() {
    let scaling = json!({
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    });
    let config = config("llama", json!({ "head_dim": 16, "rope_scaling": scaling }));
    let config = ConfigJson::parse(config.to_string().as_bytes()).unwrap();
    let [(name, factors)] = &rope::factors(&config).unwrap()[..] else {
        panic!("one tensor");
    };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/models");
    let file = FileSource::open(folder.join("llama-llama3-Q8_0.gguf")).unwrap();
    let gguf = block_on(Gguf::read(&file)).unwrap();
    let tensor = gguf.tensor(name).unwrap();
    let mut bytes = vec![0; tensor.size_bytes as usize];
    block_on(file.read_at(tensor.offset_bytes, &mut bytes)).unwrap();
    assert_eq!(tensor.element_count(), factors.len() as u64);
    for (written, factor) in bytes.chunks_exact(4).zip(factors) {
        let written = f32::from_le_bytes(written.try_into().unwrap());
        assert!((written / factor - 1.0).abs() < 1e-5, "{written}, {factor}");
    }
}

/// A BERT's folder with these modules, whose pooling is described by `pooling`.
fn sentence_transformer(modules: &[(&str, &str)], pooling: Value) -> Folder {
    let changes = json!({ "layer_norm_eps": 1e-12, "hidden_act": "gelu" });
    let words = ("embeddings.word_embeddings.weight", &[3, 32][..], 0.5);
    let mut folder = folder(config("bert", changes), &[words]);
    let modules = modules.iter().map(|(kind, path)| {
        json!({ "path": path, "type": format!("sentence_transformers.models.{kind}") })
    });
    let modules = Value::Array(modules.collect());
    for (name, value) in [
        ("modules.json", modules),
        ("1_Pooling/config.json", pooling),
    ] {
        folder
            .0
            .insert(name.to_owned(), value.to_string().into_bytes());
    }
    folder
}

fn embedding_of(modules: &[(&str, &str)], pooling: Value) -> Result<ModelConfig> {
    let folder = sentence_transformer(modules, pooling);
    architectures::read_config(&block_on(read(&folder, Quantize::None))?.0)
}

/// A folder that notes the files that were looked for in vain.
struct Watched(Folder, RefCell<Vec<String>>);

impl ModelFiles for Watched {
    type Source = BytesSource<Vec<u8>>;

    fn gguf_name(&self) -> Option<String> {
        None
    }

    async fn open(&self, name: &str) -> Result<Option<Self::Source>> {
        let found = self.0.open(name).await?;
        if found.is_none() {
            self.1.borrow_mut().push(name.to_owned());
        }
        Ok(found)
    }
}

#[test]
fn a_folder_of_sentence_transformers_is_not_asked_for_files_that_it_never_has() {
    let modules = [("Transformer", ""), ("Pooling", "1_Pooling")];
    let pooling = json!({ "pooling_mode_mean_tokens": true });
    let folder = Watched(
        sentence_transformer(&modules, pooling),
        RefCell::new(Vec::new()),
    );
    let (gguf, _) = block_on(read(&folder, Quantize::None)).unwrap();
    // It fails without the files of a tokenizer, after it has looked for all that it needs.
    assert!(block_on(Tokenizer::of(&folder, &gguf.metadata)).is_err());
    let missing = folder.1.take();
    let of_tokenizer = [
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
    ];
    assert_eq!(missing, of_tokenizer);
}

#[test]
fn poolings_of_sentence_transformers_are_read() {
    const BODY: [(&str, &str); 2] = [("Transformer", ""), ("Pooling", "1_Pooling")];
    for (mode, pooling) in [
        ("mean_tokens", Pooling::Mean),
        ("cls_token", Pooling::First),
        ("lasttoken", Pooling::Last),
    ] {
        let selected = json!({ (format!("pooling_mode_{mode}")): true });
        let embedding = embedding_of(&BODY, selected.clone())
            .unwrap()
            .embedding
            .unwrap();
        assert_eq!((embedding.pooling, embedding.normalizes), (pooling, false));
        let modules = [BODY[0], BODY[1], ("Normalize", "2_Normalize")];
        let embedding = embedding_of(&modules, selected).unwrap().embedding.unwrap();
        assert!(embedding.normalizes);
    }
    let mean = || json!({ "pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false });
    let max = json!({ "pooling_mode_max_tokens": true });
    is_refused(
        embedding_of(&BODY, max),
        &["1_Pooling/config.json", "max_tokens"],
    );
    let two = json!({ "pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true });
    is_refused(embedding_of(&BODY, two), &["side by side"]);
    is_refused(embedding_of(&BODY, json!({})), &["selects no pooling"]);
    let other = [BODY[0], BODY[1], ("LayerNorm", "2_LayerNorm")];
    is_refused(embedding_of(&other, mean()), &["modules.json", "LayerNorm"]);
    is_refused(embedding_of(&BODY[..1], mean()), &["no pooling"]);
    let elsewhere = [BODY[0], ("Pooling", "pool")];
    is_refused(
        embedding_of(&elsewhere, mean()),
        &["pool/config.json is missing"],
    );
}

#[test]
fn folders_of_modules_are_in_the_folder_of_the_model() {
    for path in [
        "",
        "..",
        "../1_Pooling",
        "/1_Pooling",
        "a:b",
        "a\\b",
        "%2e%2e",
    ] {
        let modules = [("Transformer", ""), ("Pooling", path)];
        is_refused(
            embedding_of(&modules, json!({})),
            &["modules.json", "no name of a folder"],
        );
    }
}

/// The modules of EmbeddingGemma.
const WITH_DENSE: [(&str, &str); 5] = [
    ("Transformer", ""),
    ("Pooling", "1_Pooling"),
    ("Dense", "2_Dense"),
    ("Dense", "3_Dense"),
    ("Normalize", "4_Normalize"),
];

/// The `config.json` of a dense layer.
fn layer(cols: usize, rows: usize) -> Value {
    json!({
        "in_features": cols, "out_features": rows, "bias": false,
        "activation_function": "torch.nn.modules.linear.Identity",
    })
}

/// A BERT's folder with `modules` and two dense layers, from 32 to 64 to 32.
fn with_dense(modules: &[(&str, &str)]) -> Folder {
    let mut folder = sentence_transformer(modules, json!({ "pooling_mode_mean_tokens": true }));
    for (path, cols, rows, value) in [("2_Dense", 32, 64, 2.0), ("3_Dense", 64, 32, 3.0)] {
        let config = layer(cols, rows).to_string().into_bytes();
        folder.0.insert(format!("{path}/config.json"), config);
        let matrix = safetensors(&[("linear.weight", &[rows, cols], value)]);
        folder.0.insert(format!("{path}/model.safetensors"), matrix);
    }
    folder
}

#[test]
fn dense_layers_follow_the_pooling() {
    let (gguf, source) = block_on(read(&with_dense(&WITH_DENSE), Quantize::None)).unwrap();
    let embedding = architectures::read_config(&gguf)
        .unwrap()
        .embedding
        .unwrap();
    assert_eq!(embedding.dense, [[32, 64], [64, 32]]);
    assert!(embedding.normalizes);
    for (name, shape, value) in [
        ("token_embd.weight", [32, 3], 0.5),
        ("dense_2.weight", [32, 64], 2.0),
        ("dense_3.weight", [64, 32], 3.0),
    ] {
        let tensor = gguf.tensor(name).unwrap();
        assert_eq!(tensor.shape, shape, "{name}");
        let mut last = [0; 4];
        let end = tensor.offset_bytes + tensor.size_bytes;
        block_on(source.read_at(end - 4, &mut last)).unwrap();
        assert_eq!(f32::from_le_bytes(last), value, "{name}");
    }
    let quantize = Quantize::from_name("q8_0").unwrap();
    let (gguf, _) = block_on(read(&with_dense(&WITH_DENSE), quantize)).unwrap();
    let dense = gguf.tensor("dense_3.weight").unwrap();
    assert_eq!(dense.ty, crate::tensor_types::TensorType::Q8_0);
}

#[test]
fn dense_layers_that_are_not_computed_are_refused_by_name() {
    for (change, parts) in [
        (
            json!({ "bias": true }),
            &["2_Dense/config.json", "bias"][..],
        ),
        (json!({ "bias": null }), &["2_Dense/config.json"]),
        (
            json!({ "activation_function": "torch.nn.modules.activation.Tanh" }),
            &["2_Dense/config.json", "activation.Tanh"],
        ),
        (
            json!({ "activation_function": null }),
            &["2_Dense/config.json", "activation_function"],
        ),
        (
            json!({ "module_input_name": "token_embeddings" }),
            &["module_input_name", "token_embeddings"],
        ),
        (
            json!({ "in_features": 64 }),
            &["2_Dense/model.safetensors", "linear.weight", "[64, 64]"],
        ),
        (
            json!({ "out_features": -1 }),
            &["2_Dense/config.json", "-1"],
        ),
    ] {
        let mut config = layer(32, 64);
        for (key, value) in change.as_object().unwrap() {
            config[key] = value.clone();
        }
        let mut folder = with_dense(&WITH_DENSE);
        let config = config.to_string().into_bytes();
        folder.0.insert("2_Dense/config.json".into(), config);
        is_refused(block_on(read(&folder, Quantize::None)), parts);
    }
    for member in ["bias", "activation_function", "in_features"] {
        let mut config = layer(32, 64);
        config.as_object_mut().unwrap().remove(member);
        let mut folder = with_dense(&WITH_DENSE);
        let config = config.to_string().into_bytes();
        folder.0.insert("2_Dense/config.json".into(), config);
        let read = block_on(read(&folder, Quantize::None));
        is_refused(read, &["2_Dense/config.json", member]);
    }
    // The places where a layer is not computed: a third one, and behind the normalization.
    let mut third = WITH_DENSE;
    third[4] = ("Dense", "4_Dense");
    let mut late = WITH_DENSE;
    late.swap(3, 4);
    for modules in [third, late] {
        let read = block_on(read(&with_dense(&modules), Quantize::None));
        is_refused(read, &["modules.json", "\"Dense\""]);
    }
}

#[test]
fn files_of_dense_layers_are_checked() {
    for name in ["3_Dense/config.json", "3_Dense/model.safetensors"] {
        let mut folder = with_dense(&WITH_DENSE);
        folder.0.remove(name);
        is_refused(block_on(read(&folder, Quantize::None)), &[name]);
    }
    let weight = ("linear.weight", &[32, 64][..], 1.0);
    for (tensors, parts) in [
        (&[][..], &["no tensor", "linear.weight"][..]),
        (&[weight, ("linear.bias", &[32][..], 1.0)], &["linear.bias"]),
        (&[("linear.weight", &[64, 32], 1.0)], &["[32, 64]"]),
        (&[("linear.weight", &[2048], 1.0)], &["[2048]"]),
    ] {
        let mut folder = with_dense(&WITH_DENSE);
        let file = "3_Dense/model.safetensors";
        folder.0.insert(file.into(), safetensors(tensors));
        let read = block_on(read(&folder, Quantize::None));
        is_refused(read, &[&[file], parts].concat());
    }
    let mut folder = with_dense(&WITH_DENSE);
    let file = "3_Dense/model.safetensors".to_owned();
    folder.0.insert(file.clone(), vec![255; 40]);
    is_refused(block_on(read(&folder, Quantize::None)), &[&file]);
}

/// The members of Nomic Embed 1.5, with these changes.
fn nomic(changes: Value) -> Value {
    let mut config = json!({
        "model_type": "nomic_bert", "n_embd": 32, "n_head": 2, "n_inner": 64, "n_layer": 1,
        "n_positions": 8192, "max_trained_positions": 2048, "layer_norm_epsilon": 1e-12,
        "activation_function": "swiglu", "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0,
        "qkv_proj_bias": false, "mlp_fc1_bias": false, "mlp_fc2_bias": false,
        "rotary_emb_interleaved": false, "rotary_emb_scale_base": null, "rotary_scaling_factor": null,
        "prenorm": false, "parallel_block": false, "causal": false, "use_rms_norm": false,
        "scale_attn_weights": true, "scale_attn_by_inverse_layer_idx": false,
    });
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

/// The GGUF names of the tensors and the configuration of a Nomic Embed.
fn read_nomic(config: Value) -> Result<(Vec<String>, ModelConfig)> {
    let layer = "encoder.layers.0.";
    let parts = [
        "attn.Wqkv",
        "attn.out_proj",
        "norm1",
        "mlp.fc11",
        "mlp.fc12",
        "mlp.fc2",
        "norm2",
    ];
    let names: Vec<String> = parts.map(|part| format!("{layer}{part}.weight")).into();
    let mut tensors = vec![
        ("embeddings.word_embeddings.weight", &[3, 32][..], 0.5),
        ("embeddings.token_type_embeddings.weight", &[2, 32], 0.5),
        ("emb_ln.bias", &[32], 0.5),
    ];
    tensors.extend(names.iter().map(|name| (&**name, &[32][..], 1.0)));
    let mut folder = folder(config, &tensors);
    let pooling = sentence_transformer(
        &WITH_DENSE[..2],
        json!({ "pooling_mode_mean_tokens": true }),
    );
    for name in ["modules.json", "1_Pooling/config.json"] {
        folder.0.insert(name.into(), pooling.0[name].clone());
    }
    let (gguf, _) = block_on(read(&folder, Quantize::None))?;
    let names = gguf.tensors.iter().map(|tensor| tensor.name.clone());
    Ok((names.collect(), architectures::read_config(&gguf)?))
}

#[test]
fn nomic_embed_is_read_by_its_own_names() {
    let (names, config) = read_nomic(nomic(json!({}))).unwrap();
    let expected = [
        "token_embd.weight",
        "token_types.weight",
        "token_embd_norm.bias",
        "blk.0.attn_qkv.weight",
        "blk.0.attn_output.weight",
        "blk.0.attn_output_norm.weight",
        "blk.0.ffn_up.weight",
        "blk.0.ffn_gate.weight",
        "blk.0.ffn_down.weight",
        "blk.0.layer_output_norm.weight",
    ];
    assert_eq!(names, expected);
    assert_eq!((config.dim, config.ffn_dim, config.heads), (32, 64, 2));
    assert_eq!((config.norm_eps, config.is_causal), (1e-12, false));
    let rope = config.rope().unwrap();
    assert_eq!(
        (rope.base, rope.dims, rope.pairs),
        (1000.0, 16, RopePairs::Halves)
    );
    // Longer inputs have other frequencies, with which the model was not trained.
    assert_eq!(config.context_tokens, 2048);
    let scaled = nomic(json!({ "rotary_scaling_factor": 2, "max_trained_positions": null }));
    assert_eq!(read_nomic(scaled).unwrap().1.context_tokens, 2048);
    let shorter = nomic(json!({ "max_trained_positions": 512 }));
    assert_eq!(read_nomic(shorter).unwrap().1.context_tokens, 512);
}

#[test]
fn other_kinds_of_nomic_bert_are_refused_by_name() {
    for change in [
        json!({ "activation_function": "gelu" }),
        json!({ "activation_function": null }),
        json!({ "causal": true }),
        json!({ "mlp_fc1_bias": true }),
        json!({ "mlp_fc2_bias": true }),
        json!({ "moe_every_n_layers": 2 }),
        json!({ "parallel_block": true }),
        json!({ "prenorm": true }),
        json!({ "qkv_proj_bias": true }),
        json!({ "qkv_proj_bias": null }),
        json!({ "rotary_emb_fraction": 0.5 }),
        json!({ "rotary_emb_fraction": null }),
        json!({ "rotary_emb_interleaved": true }),
        json!({ "rotary_emb_scale_base": 512 }),
        json!({ "scale_attn_by_inverse_layer_idx": true }),
        json!({ "scale_attn_weights": false }),
        json!({ "use_rms_norm": true }),
    ] {
        let key = change.as_object().unwrap().keys().next().unwrap();
        is_refused(read_nomic(nomic(change.clone())), &["nomic_bert", key]);
    }
}

#[test]
fn the_attention_of_a_folder_chooses_the_architecture() {
    let gemma = |changes: Value| {
        let mut members = json!({
            "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 512,
            "use_bidirectional_attention": true, "num_hidden_layers": 6, "_sliding_window_pattern": 6,
        });
        for (key, value) in changes.as_object().unwrap() {
            members[key] = value.clone();
        }
        let mut folder = folder(config("gemma3_text", members), &[EMBEDDINGS]);
        let dense = with_dense(&WITH_DENSE).0;
        let modules = dense
            .into_iter()
            .filter(|(name, _)| !folder.0.contains_key(name));
        let modules: Vec<_> = modules.collect();
        folder.0.extend(modules);
        architectures::read_config(&block_on(read(&folder, Quantize::None))?.0)
    };
    let encoder = gemma(json!({})).unwrap();
    assert_eq!(encoder.architecture, "gemma-embedding");
    assert!(!encoder.is_causal);
    // As in transformers: a token sees half of the window on each side.
    assert_eq!(
        (encoder.layers[0].window, encoder.layers[5].window),
        (Some(Window::Sliding(257)), None)
    );
    let causal = gemma(json!({ "use_bidirectional_attention": false })).unwrap();
    assert_eq!(causal.architecture, "gemma3");
    assert!(causal.is_causal && causal.layers[0].window == Some(Window::Sliding(512)));
    is_refused(
        gemma(json!({ "use_bidirectional_attention": "all" })),
        &["use_bidirectional_attention"],
    );
    is_refused(
        gemma(json!({ "_sliding_window_pattern": 4 })),
        &["_sliding_window_pattern"],
    );
    is_refused(
        gemma(json!({ "attn_logit_softcapping": 50.0 })),
        &["attn_logit_softcapping"],
    );
    is_refused(
        configured("llama", json!({ "use_bidirectional_attention": true })),
        &["llama", "use_bidirectional_attention"],
    );
}

#[test]
fn an_encoder_without_a_pooling_is_refused() {
    let words = ("embeddings.word_embeddings.weight", &[3, 32][..], 0.5);
    let folder = folder(config("bert", json!({ "layer_norm_eps": 1e-12 })), &[words]);
    let read = block_on(read(&folder, Quantize::None));
    let config = read.and_then(|(gguf, _)| architectures::read_config(&gguf));
    is_refused(config, &["modules.json"]);
}

/// Folders of recent models may hold what this build computes differently.
#[test]
fn members_of_recent_models_are_checked() {
    let refused = |model_type: &str, changes: Value, parts: &[&str]| {
        is_refused(configured(model_type, changes), parts);
    };
    let heads =
        json!({ "num_key_value_heads": 1, "num_local_experts": 2, "num_experts_per_tok": 1 });
    let with = |changes: Value| {
        let mut all = heads.clone();
        for (key, value) in changes.as_object().unwrap() {
            all[key] = value.clone();
        }
        all
    };
    refused(
        "gpt_oss",
        with(json!({ "swiglu_limit": 5.0 })),
        &["swiglu_limit"],
    );
    refused("lfm2", with(json!({ "conv_bias": true })), &["conv_bias"]);
    let wide = json!({ "block_ffn_dim_multiplier": 1e12 });
    refused("lfm2", with(wide), &["too wide"]);
    refused("lfm2", heads.clone(), &["layer_types is missing"]);
    refused(
        "qwen3_5_text",
        with(json!({ "attn_output_gate": false })),
        &["attn_output_gate"],
    );
    refused(
        "granitemoehybrid",
        with(json!({ "mamba_proj_bias": true })),
        &["mamba_proj_bias"],
    );
    refused("gemma4_text", heads.clone(), &["layer_types is missing"]);
    refused(
        "falcon_h1",
        with(json!({ "mamba_proj_bias": true })),
        &["mamba_proj_bias"],
    );
    let gated_later = json!({ "mamba_rms_norm": true, "mamba_norm_before_gate": true });
    refused("falcon_h1", with(gated_later), &["mamba_norm_before_gate"]);
    let other = json!({ "qk_rope_head_dim": 8, "topk_method": "noaux_tc" });
    refused("deepseek_v2", with(other), &["topk_method"]);
    refused(
        "qwen3_next",
        with(json!({ "norm_topk_prob": false })),
        &["norm_topk_prob"],
    );
    let online = json!({ "quant_method": "bitnet", "quantization_mode": "online" });
    refused(
        "bitnet",
        with(json!({ "quantization_config": online })),
        &["quantization_mode"],
    );
    // EuroBERT needs a pooling to make vectors.
    refused("eurobert", with(json!({})), &["no pooling"]);
    refused(
        "minicpm",
        with(json!({ "num_experts": 8 })),
        &["num_experts"],
    );
    // A convolution in a place where the configuration has attention.
    let kinds =
        json!({ "layer_types": ["conv", "full_attention"], "conv_L_cache": 3, "norm_eps": 1e-5 });
    let lfm2 = configured("lfm2", with(kinds)).unwrap();
    assert!(lfm2.layers[0].mixing.recurs() && lfm2.layers[1].mixing.attends());
    assert_eq!(lfm2.ffn_dim, 256);
    refused(
        "llama",
        json!({ "layer_types": ["conv", "full_attention"] }),
        &["layer_types"],
    );
}

/// The text model of a folder whose other parts are not read.
#[test]
fn the_configuration_of_a_text_model_may_be_nested() {
    let text = config("gpt_oss", json!({}));
    let outer = json!({ "model_type": "gpt_oss_vl", "text_config": text });
    is_refused(
        block_on(read(&folder(outer, &[EMBEDDINGS]), Quantize::None)),
        &["gpt_oss_vl"],
    );
    let text = config("ministral3", json!({ "tie_word_embeddings": true }));
    let outer = json!({ "model_type": "mistral3", "text_config": text });
    let embeddings = (
        "language_model.model.embed_tokens.weight",
        &[3, 32][..],
        0.5,
    );
    let tower = ("vision_tower.ln_pre.weight", &[32][..], 1.0);
    let (gguf, _) = block_on(read(&folder(outer, &[embeddings, tower]), Quantize::None)).unwrap();
    let names: Vec<&str> = gguf.tensors.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["token_embd.weight"]);
}

/// Embedding models of causal architectures are stored without the head and its prefix.
#[test]
fn bodies_without_their_prefix_have_the_same_names() {
    for (name, expected) in [
        (
            "layers.1.self_attn.q_norm.weight",
            "blk.1.attn_q_norm.weight",
        ),
        ("embed_tokens.weight", "token_embd.weight"),
        ("norm.weight", "output_norm.weight"),
    ] {
        assert_eq!(gguf_name("qwen3", name).unwrap().as_deref(), Some(expected));
    }
    assert!(gguf_name("qwen3", "layers.1.self_attn.x_proj.weight").is_err());
}
