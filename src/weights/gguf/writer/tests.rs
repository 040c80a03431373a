//! The writer against the reader, and against misuse.

use super::*;
use crate::{
    tensor_types::TensorType,
    weights::{BytesSource, Gguf},
};

#[test]
fn what_is_written_reads_back() {
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", "llama");
    metadata.insert("a.u8", 255u8);
    metadata.insert("a.i8", -1i8);
    metadata.insert("a.u16", 65_535u16);
    metadata.insert("a.i16", -2i16);
    metadata.insert("a.u32", u32::MAX);
    metadata.insert("a.i32", i32::MIN);
    metadata.insert("a.u64", u64::MAX);
    metadata.insert("a.i64", i64::MIN);
    metadata.insert("a.f32", 1.5f32);
    metadata.insert("a.f64", 1e300f64);
    metadata.insert("a.bool", true);
    metadata.insert("b.u8", vec![1u8, 2]);
    metadata.insert("b.i8", vec![-1i8, 2]);
    metadata.insert("b.u16", vec![1u16, 2]);
    metadata.insert("b.i16", vec![-1i16, 2]);
    metadata.insert("b.u32", vec![1u32, 2]);
    metadata.insert("b.i32", vec![-1i32; 70_000]);
    metadata.insert("b.u64", vec![1u64, 2]);
    metadata.insert("b.i64", vec![-1i64, 2]);
    metadata.insert("b.f32", vec![0.5f32, f32::INFINITY]);
    metadata.insert("b.f64", vec![0.5f64]);
    metadata.insert("b.bool", vec![true, false]);
    metadata.insert("b.empty", Vec::<String>::new());
    // Longer than the reader's first chunk.
    let tokens: Vec<String> = (0..50_000).map(|i| format!("token ü {i}")).collect();
    metadata.insert("b.string", tokens);

    let mut writer = GgufWriter::new(metadata.clone()).unwrap();
    let values: Vec<f32> = (0..768).map(|i| i as f32 / 7.0 - 50.0).collect();
    let types: Vec<_> = TensorType::quantizable().collect();
    for (index, &ty) in types.iter().enumerate() {
        writer.tensor(format!("t{index}"), &[256, 3], ty).unwrap();
    }
    let mut data = writer.start(Vec::new()).unwrap();
    while let Some(tensor) = data.current() {
        let bytes = tensor.ty.quantize(&values);
        let (first, rest) = bytes.split_at(bytes.len() / 3);
        data.write(first).unwrap();
        data.write(rest).unwrap();
    }
    let file = data.finish().unwrap();

    let gguf = pollster::block_on(Gguf::read(&BytesSource(&file))).unwrap();
    assert_eq!(gguf.version, 3);
    assert_eq!(gguf.metadata, metadata);
    assert_eq!(gguf.alignment_bytes, 32);
    assert_eq!(gguf.tensors.len(), types.len());
    for (index, &ty) in types.iter().enumerate() {
        let tensor = gguf.tensor(&format!("t{index}")).unwrap();
        assert_eq!((tensor.ty, tensor.shape.as_slice()), (ty, &[256, 3][..]));
        assert_eq!(tensor.offset_bytes % 32, 0);
        let start = tensor.offset_bytes as usize;
        let bytes = &file[start..start + tensor.size_bytes as usize];
        assert_eq!(bytes, ty.quantize(&values));
        assert_eq!((tensor.element_count(), tensor.row_count()), (768, 3));
        assert_eq!(tensor.row_bytes() * 3, tensor.size_bytes);
    }
    assert!(gguf.tensor("t99").is_none());
}

#[test]
fn alignment_is_kept() {
    let mut metadata = Metadata::new();
    metadata.insert("general.alignment", 256u32);
    let mut writer = GgufWriter::new(metadata.clone()).unwrap();
    writer.tensor("a", &[3], TensorType::F32).unwrap();
    writer.tensor("b", &[3], TensorType::F32).unwrap();
    let mut data = writer.start(Vec::new()).unwrap();
    data.write(&[1; 12]).unwrap();
    data.write(&[2; 12]).unwrap();
    let file = data.finish().unwrap();
    let gguf = pollster::block_on(Gguf::read(&BytesSource(&file))).unwrap();
    assert_eq!(gguf.alignment_bytes, 256);
    let b = gguf.tensor("b").unwrap().offset_bytes;
    assert_eq!(b % 256, 0);
    assert_eq!(file[b as usize..][..12], [2; 12]);

    metadata.insert("general.alignment", 48u32);
    assert!(GgufWriter::new(metadata).is_err());
}

#[test]
fn misuse_is_refused() {
    let mut writer = GgufWriter::new(Metadata::new()).unwrap();
    writer.tensor("a", &[32], TensorType::Q4_0).unwrap();
    for (name, shape) in [
        ("a", &[32][..]),
        ("", &[32]),
        ("b", &[]),
        ("b", &[33]),
        ("b", &[32, 0]),
        ("b", &[32, 1, 1, 1, 1]),
        ("b", &[1 << 32, 1 << 32]),
    ] {
        let refused = writer.tensor(name, shape, TensorType::Q4_0);
        assert!(refused.is_err(), "{name} {shape:?}");
    }
    let mut data = writer.clone().start(Vec::new()).unwrap();
    assert!(data.write(&[0; 19]).is_err());
    data.write(&[0; 18]).unwrap();
    assert!(data.write(&[0]).is_err());
    data.finish().unwrap();
    let unfinished = writer.start(Vec::new()).unwrap().finish();
    assert!(
        unfinished
            .unwrap_err()
            .to_string()
            .contains("\"a\" with 0 of its 18")
    );
}
