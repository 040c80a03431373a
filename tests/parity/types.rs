//! A model whose matrices use all tensor types, compared with the same model in F32.

use inpage::{
    model::LoadOptions,
    ops::kv_memory::KvFormat,
    tensor_types::TensorType,
    weights::{BytesSource, Gguf, GgufWriter, Metadata},
};
use pollster::block_on;

use crate::fixture::{Compute, Feed, computes, load, sequence};

/// The number of layers that, with the two matrices outside of layers, have a matrix for each type.
fn layer_count() -> usize {
    (TensorType::ALL.len() - 2).div_ceil(7)
}

/// Names and sizes of the matrices.
fn matrices() -> Vec<(String, [u64; 2])> {
    let mut matrices = vec![
        ("token_embd".to_string(), [256, 61]),
        ("output".to_string(), [256, 61]),
    ];
    for layer in 0..layer_count() {
        let block = [
            ("attn_q", [256, 256]),
            ("attn_k", [256, 128]),
            ("attn_v", [256, 128]),
            ("attn_output", [256, 256]),
            ("ffn_gate", [256, 256]),
            ("ffn_up", [256, 256]),
            ("ffn_down", [256, 256]),
        ];
        matrices.extend(block.map(|(name, shape)| (format!("blk.{layer}.{name}"), shape)));
    }
    matrices
}

/// Random file blocks whose largest weight is between 0.02 and 0.2.
fn blocks(ty: TensorType, count: usize, seed: &mut u64) -> Vec<u8> {
    let mut byte = || {
        *seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (*seed >> 56) as u8
    };
    let mut all = Vec::new();
    while all.len() < count * ty.block_bytes() {
        let mut block: Vec<u8> = (0..ty.block_bytes()).map(|_| byte()).collect();
        if ty == TensorType::NVFP4 {
            // All four scales are rarely as small as this.
            block[..4].iter_mut().for_each(|scale| *scale &= 15);
        }
        let mut values = vec![0.0; ty.block_len()];
        ty.dequantize(&block, &mut values);
        let largest = values
            .iter()
            .fold(0.0f32, |largest, value| largest.max(value.abs()));
        if values.iter().all(|value| value.is_finite()) && (0.02..0.2).contains(&largest) {
            all.extend(block);
        }
    }
    all
}

/// A model with a type per matrix, and the same model in F32.
fn files() -> [Vec<u8>; 2] {
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", "llama");
    for (key, value) in [
        ("embedding_length", 256u32),
        ("block_count", layer_count() as u32),
        ("feed_forward_length", 256),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
        ("context_length", 128),
    ] {
        metadata.insert(format!("llama.{key}"), value);
    }
    metadata.insert("llama.attention.layer_norm_rms_epsilon", 1e-5f32);
    let mut seed = 7;
    let mut tensors = Vec::new();
    let types = TensorType::ALL.iter().cycle();
    for ((name, shape), &ty) in matrices().into_iter().zip(types) {
        let elements = (shape[0] * shape[1]) as usize;
        let bytes = blocks(ty, elements / ty.block_len(), &mut seed);
        tensors.push((format!("{name}.weight"), shape.to_vec(), ty, bytes));
    }
    let norms = ["attn_norm", "ffn_norm"];
    let norms = norms.iter();
    let norms = norms.flat_map(|norm| (0..layer_count()).map(move |i| format!("blk.{i}.{norm}")));
    for norm in norms.chain(["output_norm".into()]) {
        let bytes = 1f32.to_le_bytes().repeat(256);
        tensors.push((format!("{norm}.weight"), vec![256], TensorType::F32, bytes));
    }
    [false, true].map(|only_f32| {
        let mut writer = GgufWriter::new(metadata.clone()).unwrap();
        for (name, shape, ty, _) in &tensors {
            let ty = if only_f32 { TensorType::F32 } else { *ty };
            writer.tensor(name, shape, ty).unwrap();
        }
        let mut data = writer.start(Vec::new()).unwrap();
        for (_, _, ty, bytes) in &tensors {
            if only_f32 {
                let mut values = vec![0.0; bytes.len() / ty.block_bytes() * ty.block_len()];
                ty.dequantize(bytes, &mut values);
                let bytes: Vec<u8> = values
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect();
                data.write(&bytes).unwrap();
            } else {
                data.write(bytes).unwrap();
            }
        }
        data.finish().unwrap()
    })
}

/// The last logits after a prompt, which uses tiles, and after a single token.
fn logits(compute: &Compute, file: &[u8]) -> Vec<f32> {
    let source = BytesSource(file);
    let gguf = block_on(Gguf::read(&source)).expect("a GGUF");
    let options = LoadOptions {
        context_tokens: Some(128),
        kv_format: KvFormat::F32,
        ..LoadOptions::default()
    };
    let model = load(compute.clone(), &gguf, &source, options, |_, _| ());
    let mut model = block_on(model).expect("a model that runs");
    let mut kv = sequence(&model);
    let prompt: Vec<u32> = (0..17).map(|i| i * 7 % 61).collect();
    let mut logits = block_on(model.feed(&mut kv, &prompt)).unwrap();
    logits.extend(block_on(model.feed(&mut kv, &[5])).unwrap());
    logits
}

#[test]
fn all_types_mix_in_one_file() {
    assert!(matrices().len() >= TensorType::ALL.len());
    let [mixed, floats] = files();
    let mut wanted: Option<Vec<f32>> = None;
    for (device, compute) in computes() {
        let found = logits(&compute, &mixed);
        // The CPU reads the same weights from either file.
        let wanted = wanted.get_or_insert_with(|| {
            let wanted = logits(&compute, &floats);
            assert_eq!(found, wanted, "on the {device}");
            wanted
        });
        assert!(wanted.iter().any(|logit| logit.abs() > 0.1));
        for (found, wanted) in found.iter().zip(wanted.iter()) {
            assert!(
                (found - wanted).abs() <= 0.002,
                "{found}, not {wanted}, on the {device}"
            );
        }
    }
}
