//! Adapters in GGUF files: pairs, scales and files that are refused.

use crate::{
    tensor_types::TensorType,
    weights::{BytesSource, Gguf, GgufWriter, Metadata, MetadataValue, ModelFiles},
};

use super::adapter::{Adapter, AdapterFormat};
use crate::Result;

/// A GGUF file alone.
struct File(Vec<u8>);

impl ModelFiles for File {
    type Source = BytesSource<Vec<u8>>;

    fn gguf_name(&self) -> Option<String> {
        Some("adapter.gguf".into())
    }

    async fn open(&self, _name: &str) -> Result<Option<Self::Source>> {
        Ok(Some(BytesSource(self.0.clone())))
    }
}

/// Opens an adapter with these keys changed and tensors of zeros.
fn open(
    changes: &[(&str, MetadataValue)],
    tensors: &[(&str, &[u64])],
) -> Result<Adapter<BytesSource<Vec<u8>>>> {
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", "llama");
    metadata.insert("general.type", "adapter");
    metadata.insert("adapter.type", "lora");
    metadata.insert("adapter.lora.alpha", 8.0f32);
    for (key, value) in changes {
        metadata.insert(*key, value.clone());
    }
    let mut writer = GgufWriter::new(metadata).unwrap();
    for (name, shape) in tensors {
        writer.tensor(*name, shape, TensorType::F32).unwrap();
    }
    let mut data = writer.start(Vec::new()).unwrap();
    for (_, shape) in tensors {
        data.write(&vec![0; 4 * shape.iter().product::<u64>() as usize])
            .unwrap();
    }
    pollster::block_on(Adapter::open(&File(data.finish().unwrap())))
}

const A: (&str, &[u64]) = ("blk.0.attn_q.weight.lora_a", &[64, 4]);
const B: (&str, &[u64]) = ("blk.0.attn_q.weight.lora_b", &[4, 32]);

#[test]
fn pairs_and_scales_are_read() {
    for (alpha, scale) in [(8.0f32, 2.0), (0.0, 1.0)] {
        let adapter = open(&[("adapter.lora.alpha", alpha.into())], &[A, B]).unwrap();
        let [pair] = &adapter.pairs[..] else {
            panic!("{:?}", adapter.pairs);
        };
        assert_eq!(pair.target, "blk.0.attn_q.weight");
        assert_eq!((pair.cols(), pair.rank(), pair.rows()), (64, 4, 32));
        assert_eq!(pair.scale, scale);
        assert!(
            matches!(&adapter.format, AdapterFormat::Gguf { architecture } if architecture == "llama")
        );
    }
}

#[test]
fn everything_but_a_plain_adapter_is_refused_by_name() {
    let model: MetadataValue = "model".into();
    let alora: MetadataValue = 1u32.into();
    for (changes, tensors, part) in [
        (
            &[("general.type", model.clone())][..],
            &[A, B][..],
            "general.type",
        ),
        (&[("adapter.type", model)], &[A, B], "adapter.type"),
        (
            &[("adapter.alora.invocation_tokens", alora)],
            &[A, B],
            "alora",
        ),
        (&[("adapter.lora.alpha", f32::NAN.into())], &[A, B], "NaN"),
        (&[], &[], "without tensors"),
        (&[], &[A], "only one"),
        (
            &[],
            &[A, ("blk.0.attn_q.weight.lora_b", &[2, 32])],
            "ranks 4 and 2",
        ),
        (&[], &[A, B, ("blk.0.attn_norm.weight", &[64])], "attn_norm"),
        (&[], &[("x.lora_a", &[64]), B], "no matrix"),
        (
            &[],
            &[("x.lora_a", &[4, 4097]), ("x.lora_b", &[4097, 4])],
            "4097",
        ),
    ] {
        let error = open(changes, tensors).unwrap_err().to_string();
        assert!(
            error.contains(part) && error.contains("adapter.gguf"),
            "{error}"
        );
    }
}

#[test]
fn a_models_file_is_refused() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/models");
    let bytes = std::fs::read(folder.join("llama.gguf")).unwrap();
    assert!(pollster::block_on(Gguf::read(&BytesSource(&bytes[..]))).is_ok());
    let error = pollster::block_on(Adapter::open(&File(bytes))).unwrap_err();
    assert!(error.to_string().contains("general.type"), "{error}");
}
