//! Reports on the headers of the small models in `tests/parity/models`, with expected numbers computed by
//! hand, and refusals of damaged ones.

use std::path::{Path, PathBuf};

use super::inspect::*;
use super::{Checkpoint, LoadOptions, Quantize, check_budget, refusal};
use crate::{
    Error,
    device::ComputeDevice,
    ops::kv_memory::KvFormat,
    runtime::{Tuning, start},
    weights::{BytesSource, Gguf, GgufWriter, LocalFiles},
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/models")
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(format!("{name}.gguf"))).unwrap()
}

fn header(file: &[u8]) -> Gguf {
    pollster::block_on(Gguf::read(&BytesSource(file))).unwrap()
}

fn report(name: &str, options: LoadOptions) -> ModelReport {
    inspect(&header(&file(name)), options)
}

fn tensor_type(ty: &'static str, tensors: usize, elements: u64, bytes: u64) -> TensorTypeReport {
    TensorTypeReport {
        ty,
        tensors,
        elements,
        bytes,
    }
}

fn rope(base: f32) -> RopeReport {
    RopeReport {
        base,
        local_base: None,
        dims: 16,
        unrotated_layers: 0,
        scaling: "none",
        factor: None,
        original_tokens: None,
    }
}

/// Two layers of 64 x (64 + 2 * 32) + 64 x 64 + 3 * 64 x 128 elements, two tables of 64 x 320, five
/// norms of 64. On a device each matrix has a word for the scales that it lacks.
#[test]
fn a_small_llama_is_reported_as_in_its_header() {
    let options = LoadOptions {
        context_tokens: Some(100),
        kv_pool_tokens: Some(100),
        ..LoadOptions::default()
    };
    let mut report = report("llama", options);
    let memory = report.memory.as_mut().unwrap();
    let scratch_bytes = memory.scratch_bytes;
    // Six buffers of 256 rows of each width, and little else.
    let room = 6 * 4 * 256 * (64 + 64 + 32 + 128 + 128);
    assert!((room..room * 2).contains(&scratch_bytes), "{scratch_bytes}");
    let expected = ModelReport {
        name: Some("llama".into()),
        architecture: Some("llama".into()),
        parameters: 115_008,
        loaded_bytes: 230_656,
        tensor_types: vec![
            tensor_type("F16", 16, 114_688, 229_376),
            tensor_type("F32", 5, 320, 1280),
        ],
        hyperparameters: Some(Hyperparameters {
            context_tokens: 128,
            layers: 2,
            recurrent_layers: 0,
            dim: 64,
            ffn_dim: 128,
            heads: 4,
            kv_heads: 2,
            head_dim: 16,
            vocab: 320,
            rope: Some(rope(10_000.0)),
            windows: Vec::new(),
            experts: None,
        }),
        memory: Some(MemoryReport {
            context_tokens: 100,
            kv_format: KvFormat::F16,
            // Two pages of 64 tokens, each with 32 elements of K and 32 of V of two bytes.
            kv_pool_tokens: 128,
            weight_bytes: 229_376 + 16 * 4 + 1280,
            kv_bytes: 2 * 128 * 64 * 2,
            state_bytes: 0,
            scratch_bytes,
            total_bytes: 230_720 + 32_768 + scratch_bytes,
            largest_buffer: BufferReport {
                name: "token_embd.weight".into(),
                bytes: 64 * 320 * 2,
            },
        }),
    };
    assert_eq!(report, expected);
}

/// Two layers of 64 x (128 + 2 * 64) + 128 x 64 + 8 * 3 * 64 x 32 elements and a table of 64 x 320 in
/// blocks of 34 bytes; in f32 the router of 64 x 8, norms of 64 and of heads of 32.
#[test]
fn a_small_mixture_of_experts_is_reported_as_in_its_header() {
    let options = |kv_format| LoadOptions {
        context_tokens: Some(128),
        kv_pool_tokens: Some(1),
        kv_format,
        ..LoadOptions::default()
    };
    let small = report("qwen3moe-Q8_0", options(KvFormat::Q8_0));
    assert_eq!(small.parameters, 169_408);
    let types = [
        tensor_type("Q8_0", 15, 167_936, 178_432),
        tensor_type("F32", 11, 1472, 5888),
    ];
    assert_eq!(small.tensor_types, types);
    let sizes = small.hyperparameters.unwrap();
    assert_eq!(sizes.experts, Some(ExpertsReport { count: 8, used: 2 }));
    assert_eq!((sizes.ffn_dim, sizes.head_dim, sizes.kv_heads), (32, 32, 2));
    let memory = small.memory.unwrap();
    // The matrices' bits unchanged; the routers have one word instead of scales.
    assert_eq!(memory.weight_bytes, 178_432 + 5888 + 2 * 4);
    // 64 elements of K and 64 of V of a token: two blocks of 36 bytes each.
    assert_eq!(memory.kv_bytes, 2 * 128 * 2 * 2 * 36);
    let largest = BufferReport {
        name: "token_embd.weight".into(),
        bytes: 64 * 320,
    };
    assert_eq!(memory.largest_buffer, largest);
    let exact = report("qwen3moe-Q8_0", options(KvFormat::F32));
    let largest = BufferReport {
        name: "KV cache of a layer".into(),
        bytes: 128 * 128 * 4,
    };
    assert_eq!(exact.memory.unwrap().largest_buffer, largest);
}

/// Two layers of 64 x (128 + 2 * 64) + 128 x 64 + 3 * 64 x 128 elements in two files, a table of 64 x 320
/// that is also the output matrix, five norms of 64 and four of 32.
#[test]
fn a_folder_is_reported_in_the_types_it_is_converted_to() {
    let files = LocalFiles::at(folder().join("qwen3-hf")).unwrap();
    let norms = tensor_type("F32", 9, 448, 1792);
    // A matrix of plain numbers has a word for the scales that it lacks.
    for (quantize, types, lacking_bytes) in [
        ("none", vec![tensor_type("BF16", 15, 118_784, 237_568)], 60),
        ("q8_0", vec![tensor_type("Q8_0", 15, 118_784, 126_208)], 0),
        (
            "q4_0",
            vec![
                tensor_type("Q4_0", 14, 98_304, 55_296),
                tensor_type("Q8_0", 1, 20_480, 21_760),
            ],
            0,
        ),
    ] {
        let options = LoadOptions {
            quantize: Quantize::from_name(quantize).unwrap(),
            ..LoadOptions::default()
        };
        let Checkpoint { gguf, .. } =
            pollster::block_on(Checkpoint::open(&files, &options)).unwrap();
        let report = inspect(&gguf, options);
        assert_eq!(report.architecture.as_deref(), Some("qwen3"));
        assert_eq!(report.parameters, 119_232);
        let bytes: u64 = types.iter().map(|it| it.bytes).sum();
        assert_eq!(report.loaded_bytes, bytes + norms.bytes, "{quantize}");
        let weight_bytes = report.memory.unwrap().weight_bytes;
        assert_eq!(
            weight_bytes,
            report.loaded_bytes + lacking_bytes,
            "{quantize}"
        );
        assert_eq!(report.tensor_types, [types, vec![norms.clone()]].concat());
        assert_eq!(refusal(&gguf, options, u64::MAX), None);
    }
}

#[test]
fn windows_and_rotations_are_reported() {
    let sizes = |name: &str| {
        let report = report(name, LoadOptions::default());
        report.hyperparameters.unwrap()
    };
    // Five of six layers are local.
    let gemma3 = sizes("gemma3");
    let window = WindowReport {
        tokens: 24,
        layers: 5,
    };
    assert_eq!(gemma3.windows, [window]);
    let rope_of_gemma3 = RopeReport {
        local_base: Some(10_000.0),
        ..rope(1_000_000.0)
    };
    assert_eq!(gemma3.rope, Some(rope_of_gemma3));
    assert_eq!(sizes("gpt2").rope, None);
    // Every fourth layer, of four.
    assert_eq!(sizes("smollm3-Q8_0").rope.unwrap().unrotated_layers, 1);
    let scaled = |name: &str| {
        let rope = sizes(name).rope.unwrap();
        (rope.scaling, rope.factor, rope.original_tokens)
    };
    assert_eq!(scaled("llama-yarn-Q8_0"), ("yarn", Some(4.0), Some(32)));
    assert_eq!(scaled("phi3-longrope-long"), ("longrope", None, Some(64)));
    assert_eq!(scaled("llama-llama3-Q8_0"), ("llama3", None, None));
    assert_eq!(scaled("gemma3-linear-Q8_0"), ("linear", Some(8.0), None));
}

#[test]
fn each_sequence_has_pages_of_its_own() {
    let gguf = header(&file("llama"));
    for (context, sequences, tokens) in [(100, 1, 128), (100, 3, 384), (64, 5, 320), (999, 2, 256)]
    {
        let options = LoadOptions {
            context_tokens: Some(context),
            ..LoadOptions::default()
        };
        let memory = inspect(&gguf, for_sequences(&gguf, options, sequences)).memory;
        assert_eq!(memory.unwrap().kv_pool_tokens, tokens);
    }
}

#[test]
fn every_architecture_runs_and_needs_about_the_size_of_its_file() {
    let mut checked = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "gguf") {
            continue;
        }
        let gguf = header(&std::fs::read(&path).unwrap());
        let options = LoadOptions::default();
        assert_eq!(refusal(&gguf, options, u64::MAX), None, "{path:?}");
        let memory = inspect(&gguf, options).memory.unwrap();
        let bytes: u64 = gguf.tensors.iter().map(|tensor| tensor.size_bytes).sum();
        let weights = memory.weight_bytes;
        // Norms and biases become f32.
        assert!(
            (bytes..bytes * 11 / 10).contains(&weights),
            "{path:?}: {weights} for {bytes}"
        );
        checked += 1;
    }
    assert!(checked >= 14, "{checked}");
}

#[track_caller]
fn is_refused(file: &[u8], options: LoadOptions, said: &str) -> ModelReport {
    let gguf = header(file);
    let refused = refusal(&gguf, options, u64::MAX).expect("a refusal");
    assert!(refused.to_string().contains(said), "{refused}");
    let source = BytesSource(file);
    let device = ComputeDevice::reference();
    let loaded = start(&device, Tuning::Best, &gguf, &source, options, |_, _| ());
    let error = pollster::block_on(loaded).err().expect("an error");
    assert_eq!(refused, error);
    inspect(&gguf, options)
}

/// The file with the first `from` after `after` replaced by as many bytes.
fn replaced(mut file: Vec<u8>, after: &str, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let find = |text: &str, start: usize| {
        let mut windows = file[start..].windows(text.len());
        start
            + windows
                .position(|window| window == text.as_bytes())
                .unwrap()
    };
    let at = find(from, find(after, 0) + after.len());
    file[at..at + to.len()].copy_from_slice(to.as_bytes());
    file
}

#[test]
fn a_model_that_cannot_run_is_refused_with_the_error_of_a_load() {
    let options = LoadOptions::default();
    let unknown = replaced(file("llama"), "general.architecture", "llama", "mamba");
    let report = is_refused(
        &unknown,
        options,
        "architecture \"mamba\"; this build runs llama,",
    );
    assert_eq!(report.architecture.as_deref(), Some("mamba"));
    assert_eq!((report.hyperparameters, report.memory), (None, None));
    assert_eq!(report.parameters, 115_008);

    let lacking = replaced(
        file("llama"),
        "general.architecture",
        // A zero byte of its length precedes the name of the tensor itself.
        "\0blk.1.ffn_up",
        "\0blk.1.ffn_xx",
    );
    let report = is_refused(&lacking, options, "tensor blk.1.ffn_up.weight is missing");
    assert!(report.memory.is_some());

    let q8_0 = LoadOptions {
        kv_format: KvFormat::Q8_0,
        ..options
    };
    let report = is_refused(&file("llama"), q8_0, "of blocks of 32");
    assert!(report.hyperparameters.is_some() && report.memory.is_none());
}

#[test]
fn a_buffer_that_a_kernel_cannot_see_is_refused() {
    let gguf = header(&file("llama"));
    let options = LoadOptions {
        context_tokens: Some(128),
        kv_pool_tokens: Some(128),
        ..LoadOptions::default()
    };
    let largest = inspect(&gguf, options).memory.unwrap().largest_buffer.bytes;
    assert_eq!(refusal(&gguf, options, largest), None);
    let refused = refusal(&gguf, options, largest - 1).unwrap();
    assert!(matches!(refused, Error::UnsupportedModel(_)), "{refused}");
    let many = LoadOptions {
        kv_pool_tokens: Some(4096),
        ..options
    };
    let refused = refusal(&gguf, many, largest).unwrap();
    assert!(matches!(refused, Error::OutOfMemory(_)), "{refused}");
}

#[test]
fn a_model_that_exceeds_its_memory_budget_is_refused_with_what_fits() {
    let file = file("llama");
    let gguf = header(&file);
    let need = inspect(&gguf, LoadOptions::default()).memory.unwrap();
    let budget = |memory_budget_bytes| LoadOptions {
        memory_budget_bytes: Some(memory_budget_bytes),
        ..LoadOptions::default()
    };
    assert_eq!(refusal(&gguf, budget(need.total_bytes), u64::MAX), None);
    let mebibytes = |bytes: u64| format!("{:.1} MiB", bytes as f64 / 1048576.0);
    is_refused(
        &file,
        budget(need.total_bytes - 1),
        &format!("the model needs {} of memory", mebibytes(need.total_bytes)),
    );
    // The suggested options fit, and a longer context does not.
    let allowed = need.total_bytes - need.kv_bytes / 2;
    let error = refusal(&gguf, budget(allowed), u64::MAX)
        .unwrap()
        .to_string();
    let (_, suggested) = error.split_once("contextTokens: ").expect("a suggestion");
    let tokens: usize = suggested.split_once(',').unwrap().0.parse().unwrap();
    let with_context = |tokens| LoadOptions {
        context_tokens: Some(tokens),
        kv_pool_tokens: Some(tokens),
        ..budget(allowed)
    };
    assert_eq!(
        refusal(&gguf, with_context(tokens), u64::MAX),
        None,
        "{error}"
    );
    if tokens < need.context_tokens {
        assert!(refusal(&gguf, with_context(tokens + 64), u64::MAX).is_some());
    }
    is_refused(&file, budget(need.weight_bytes / 2), "a smaller model");
    // The smaller of the budget and the device's memory counts.
    for (allowed, device_bytes, reason) in [
        (u64::MAX, need.total_bytes - 1, "the CPU device can address"),
        (
            need.total_bytes - 1,
            need.total_bytes,
            "memoryBudgetBytes allows",
        ),
    ] {
        let refused = check_budget(&gguf, budget(allowed), Some(device_bytes));
        let message = refused.unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
    }
    let fitting = check_budget(&gguf, budget(need.total_bytes), Some(need.total_bytes));
    assert_eq!(fitting, Ok(()));
}

/// Q, K and V in one tensor cannot be normalized separately. That is reported before any tensor is read.
#[test]
fn a_joined_tensor_whose_parts_are_normalized_is_refused() {
    let olmo2 = header(&file("olmo2"));
    let mut writer = GgufWriter::new(olmo2.metadata.clone()).unwrap();
    for tensor in &olmo2.tensors {
        let (name, shape) = match tensor.name.as_str() {
            "blk.0.attn_k.weight" | "blk.0.attn_v.weight" => continue,
            "blk.0.attn_q.weight" => ("blk.0.attn_qkv.weight", &[64, 128][..]),
            name => (name, &tensor.shape[..]),
        };
        writer.tensor(name, shape, tensor.ty).unwrap();
    }
    let mut data = writer.start(Vec::new()).unwrap();
    while let Some(tensor) = data.current() {
        let zeros = vec![0; tensor.size_bytes as usize];
        data.write(&zeros).unwrap();
    }
    let file = data.finish().unwrap();
    let said = "tensor blk.0.attn_qkv.weight, whose queries and keys are normalized separately";
    is_refused(&file, LoadOptions::default(), said);
}
