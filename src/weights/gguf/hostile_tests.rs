//! Damaged and hostile headers: each is rejected with an error that says what is wrong.

use super::{
    contents::{ALIGNMENT_KEY, MAGIC},
    *,
};
use crate::weights::BytesSource;
use crate::{Error, Result, tensor_types::TensorType};
use proptest::prelude::*;

/// Ids of metadata value types.
const U32: u32 = 4;
const BOOL: u32 = 7;
const STRING: u32 = 8;
const ARRAY: u32 = 9;
/// Ids of tensor types.
const F32: u32 = 0;
const Q8_0: u32 = 8;

const HUGE: u64 = 1 << 60;

/// A file under construction, with no check at all.
struct File(Vec<u8>);

impl File {
    fn new(tensor_count: u64, entry_count: u64) -> File {
        File(MAGIC.to_vec())
            .u32(3)
            .u64(tensor_count)
            .u64(entry_count)
    }

    fn u32(mut self, value: u32) -> File {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(mut self, value: u64) -> File {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> File {
        self.0.extend(bytes);
        self
    }

    fn string(self, text: &str) -> File {
        self.u64(text.len() as u64).bytes(text.as_bytes())
    }

    fn tensor(self, name: &str, shape: &[u64], type_id: u32, offset_bytes: u64) -> File {
        let file = self.string(name).u32(shape.len() as u32);
        let file = shape.iter().fold(file, |file, &dim| file.u64(dim));
        file.u32(type_id).u64(offset_bytes)
    }

    /// Pads to the default alignment, then appends tensor data.
    fn data(mut self, size_bytes: usize) -> File {
        let start = self.0.len().next_multiple_of(32);
        self.0.resize(start + size_bytes, 0);
        self
    }

    fn read(&self) -> Result<Gguf> {
        pollster::block_on(Gguf::read(&BytesSource(&self.0)))
    }

    #[track_caller]
    fn is_invalid(&self, offence: &str) {
        match self.read() {
            Err(Error::InvalidModelFile(what)) if what.contains(offence) => {}
            other => panic!("{other:?} does not say {offence:?}"),
        }
    }

    #[track_caller]
    fn is_unsupported(&self, offence: &str) {
        match self.read() {
            Err(Error::UnsupportedModel(what)) if what.contains(offence) => {}
            other => panic!("{other:?} does not say {offence:?}"),
        }
    }
}

/// A valid file with one tensor of this entry and 4 KiB of data.
fn with_tensor(name: &str, shape: &[u64], type_id: u32, offset_bytes: u64) -> File {
    File::new(1, 0)
        .tensor(name, shape, type_id, offset_bytes)
        .data(4096)
}

/// A file whose only metadata entry has the key `key` and this encoded value.
fn with_value(value: File) -> File {
    File::new(0, 1).string("key").bytes(&value.0)
}

fn raw() -> File {
    File(Vec::new())
}

#[test]
fn valid_files_are_read() {
    let gguf = with_tensor("w", &[32, 4], Q8_0, 32).read().unwrap();
    assert_eq!(gguf.tensor("w").unwrap().size_bytes, 4 * 34);
    let gguf = File::new(0, 0).read().unwrap();
    assert!(gguf.metadata.is_empty() && gguf.tensors.is_empty());
    let mut version_2 = with_tensor("w", &[4], F32, 0);
    version_2.0[4] = 2;
    assert_eq!(version_2.read().unwrap().version, 2);
    // The data of the last tensor may end exactly with the file.
    let whole = with_tensor("w", &[1024], F32, 0);
    assert_eq!(whole.read().unwrap().tensors[0].size_bytes, 4096);
}

#[test]
fn magic_and_version() {
    raw().is_invalid("the file ends");
    raw().bytes(b"GG").is_invalid("the file ends");
    raw()
        .bytes(b"<!DOCTYPE html>")
        .is_invalid("starts with \"<!DO\", not \"GGUF\"");
    let with_version = |version| raw().bytes(b"GGUF").u32(version).u64(0).u64(0);
    for version in [0, 1, 4, 0xFFFF_FFFF] {
        with_version(version).is_unsupported(&format!("version {version};"));
    }
    with_version(3u32.swap_bytes()).is_unsupported("big-endian GGUF file (version 3)");
}

#[test]
fn counts_beyond_the_file() {
    for count in [HUGE, u64::MAX, 1 << 32, 100] {
        File::new(count, 0)
            .data(256)
            .is_invalid(&format!("{count} tensors"));
        File::new(0, count)
            .data(256)
            .is_invalid(&format!("{count} metadata entries"));
    }
    // The file is large enough, but the count is absurd.
    File::new(100_000, 0)
        .data(4 << 20)
        .is_invalid("the limit is 65536");
}

#[test]
fn strings_beyond_the_file() {
    for len in [HUGE, u64::MAX, 1000] {
        let offence = format!("a string of {len} bytes");
        File::new(0, 1).u64(len).data(64).is_invalid(&offence);
        with_value(raw().u32(STRING).u64(len)).is_invalid(&offence);
        File::new(1, 0).u64(len).data(64).is_invalid(&offence);
    }
    File::new(0, 1)
        .u64(HUGE)
        .data(64)
        .is_invalid("the name of metadata entry 0");
    with_value(raw().u32(STRING).u64(HUGE)).is_invalid("metadata key \"key\"");
    // Within the file, but longer than a name may be.
    File::new(0, 1)
        .u64(70_000)
        .data(80_000)
        .is_invalid("a string of 70000 bytes; the limit is 65535");
    with_value(raw().u32(STRING).u64(2).bytes(&[0xC3, 0x28])).is_invalid("is not UTF-8");
}

#[test]
fn arrays() {
    for count in [HUGE, u64::MAX, 1000] {
        for element_type in [U32, BOOL, STRING] {
            with_value(raw().u32(ARRAY).u32(element_type).u64(count))
                .is_invalid(&format!("an array of {count} elements"));
        }
    }
    with_value(
        raw()
            .u32(ARRAY)
            .u32(BOOL)
            .u64(5_000_000)
            .bytes(&vec![0; 5_000_000]),
    )
    .is_invalid("an array of 5000000 elements; the limit");
    with_value(raw().u32(ARRAY).u32(ARRAY).u64(1).u32(U32).u64(1).u32(7))
        .is_unsupported("metadata key \"key\": an array of arrays");
    with_value(raw().u32(ARRAY).u32(99).u64(1)).is_invalid("unknown value type 99");
    with_value(raw().u32(ARRAY).u32(BOOL).u64(2).bytes(&[1, 3])).is_invalid("a bool of value 3");
    // The second string is cut.
    with_value(
        raw()
            .u32(ARRAY)
            .u32(STRING)
            .u64(2)
            .string("abcdefgh")
            .u64(9),
    )
    .is_invalid("a string of 9 bytes");
}

#[test]
fn values() {
    with_value(raw().u32(13).u64(0)).is_invalid("metadata key \"key\": unknown value type 13");
    with_value(raw().u32(BOOL).bytes(&[2])).is_invalid("a bool of value 2");
    with_value(raw().u32(U32).bytes(&[1, 2])).is_invalid("the file ends: 4 bytes are needed");
    File::new(0, 2)
        .string("twice")
        .u32(U32)
        .u32(1)
        .string("twice")
        .u32(U32)
        .u32(1)
        .is_invalid("metadata key \"twice\" occurs twice");
}

#[test]
fn alignment_must_be_a_power_of_two() {
    for alignment in [0, 3, 48, 1 << 21, u32::MAX] {
        File::new(0, 1)
            .string(ALIGNMENT_KEY)
            .u32(U32)
            .u32(alignment)
            .is_invalid(&format!("general.alignment is {alignment}"));
    }
    File::new(0, 1)
        .string(ALIGNMENT_KEY)
        .u32(STRING)
        .string("32")
        .is_invalid("\"general.alignment\" must be a u32, not string");
    // Valid by itself, but it moves the data past the end.
    File::new(1, 1)
        .string(ALIGNMENT_KEY)
        .u32(U32)
        .u32(1 << 20)
        .tensor("w", &[1], F32, 0)
        .data(64)
        .is_invalid("past the end");
}

#[test]
fn shapes() {
    with_tensor("w", &[], F32, 0).is_invalid("0 dimensions");
    with_tensor("w", &[1; 5], F32, 0).is_invalid("\"w\" has 5 dimensions");
    let mut many = File::new(1, 0).string("w").u32(u32::MAX);
    many = many.data(4096);
    many.is_invalid("4294967295 dimensions");
    with_tensor("w", &[32, 0], F32, 0).is_invalid("a dimension of zero");
    with_tensor("w", &[33], Q8_0, 0).is_invalid("not whole blocks of 32");
    // Whole blocks in all, but not per row.
    with_tensor("w", &[16, 2], Q8_0, 0).is_invalid("not whole blocks of 32");
    for shape in [
        &[1 << 32, 1 << 32][..],
        &[1 << 16; 4],
        &[u64::MAX],
        &[1 << 62],
        &[2, u64::MAX / 2 + 2],
    ] {
        with_tensor("w", shape, F32, 0).is_invalid("larger than 2^64 bytes");
    }
}

#[test]
fn types() {
    with_tensor("w", &[256], 9, 0).is_unsupported("\"w\" has the tensor type Q8_1 (ggml type 9)");
    for (id, name) in [
        (15, "Q8_K"),
        (24, "I8"),
        (25, "I16"),
        (26, "I32"),
        (28, "F64"),
        (31, "Q4_0_4_4"),
    ] {
        let what = format!("has the tensor type {name} (ggml type {id})");
        with_tensor("w", &[256], id, 0).is_unsupported(&what);
    }
    with_tensor("w", &[256], 4, 0).is_unsupported("Q4_2 (ggml type 4)");
    with_tensor("w", &[256], 36, 0).is_unsupported("(ggml type 36); of BitNet, files of TQ2_0");
    with_tensor("w", &[256], 999, 0).is_unsupported("unknown (ggml type 999)");
    with_tensor("w", &[256], u32::MAX, 0).is_unsupported("unknown (ggml type 4294967295)");
}

#[test]
fn offsets() {
    with_tensor("w", &[4], F32, 4).is_invalid("\"w\" at data offset 4 is not aligned to 32 bytes");
    for offset_bytes in [4096, 1 << 40, HUGE, !31] {
        with_tensor("w", &[4], F32, offset_bytes).is_invalid("takes 16 bytes, past the end");
    }
    with_tensor("w", &[1025], F32, 0).is_invalid("takes 4100 bytes, past the end");
    with_tensor("w", &[1 << 50], F32, 0).is_invalid("past the end");
}

#[test]
fn overlaps() {
    let two = |first: u64, second: u64| {
        File::new(2, 0)
            .tensor("a", &[32], F32, first)
            .tensor("b", &[32], F32, second)
            .data(4096)
    };
    two(0, 128).read().unwrap();
    two(128, 0).read().unwrap();
    two(0, 96).is_invalid("tensors \"a\" and \"b\" overlap");
    two(96, 0).is_invalid("tensors \"b\" and \"a\" overlap");
    two(64, 64).is_invalid("overlap");
}

#[test]
fn names() {
    File::new(2, 0)
        .tensor("w", &[8], F32, 0)
        .tensor("w", &[8], F32, 32)
        .data(64)
        .is_invalid("two tensors are named \"w\"");
    with_tensor("", &[8], F32, 0).is_invalid("tensor 0: its name is empty");
    // Names from a hostile file are escaped and cut.
    let name = format!("\u{1b}[2J{}", "x".repeat(60_000));
    let error = with_tensor(&name, &[0], F32, 0)
        .read()
        .unwrap_err()
        .to_string();
    assert!(error.len() < 300 && !error.contains('\u{1b}'), "{error}");
}

/// A small file with values of several types and tensors of all types that can be written.
fn sample() -> Vec<u8> {
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", "llama");
    metadata.insert("general.alignment", 64u32);
    metadata.insert("llama.block_count", 2u32);
    metadata.insert(
        "tokenizer.ggml.tokens",
        vec!["a".to_owned(), "ü".to_owned()],
    );
    metadata.insert("tokenizer.ggml.scores", vec![0.0f32, -1.0]);
    metadata.insert("tokenizer.ggml.add_bos_token", true);
    metadata.insert("bools", vec![true, false]);
    let mut writer = GgufWriter::new(metadata).unwrap();
    let values: Vec<f32> = (0..512).map(|i| i as f32).collect();
    for (index, ty) in TensorType::quantizable().enumerate() {
        writer
            .tensor(format!("blk.{index}"), &[256, 2], ty)
            .unwrap();
    }
    let mut data = writer.start(Vec::new()).unwrap();
    while let Some(tensor) = data.current() {
        let ty = tensor.ty;
        data.write(&ty.quantize(&values)).unwrap();
    }
    data.finish().unwrap()
}

/// Checks the invariants of [`Gguf`].
fn check_invariants(gguf: &Gguf, file_bytes: u64) {
    for (index, tensor) in gguf.tensors.iter().enumerate() {
        assert!(tensor.offset_bytes + tensor.size_bytes <= file_bytes);
        assert_eq!(gguf.tensor(&tensor.name), Some(&gguf.tensors[index]));
        assert_eq!(tensor.row_bytes() * tensor.row_count(), tensor.size_bytes);
        assert!(tensor.element_count() > 0);
    }
}

#[test]
fn every_truncation_is_rejected() {
    let file = sample();
    let whole = File(file.clone()).read().unwrap();
    let data_end = whole
        .tensors
        .iter()
        .map(|t| t.offset_bytes + t.size_bytes)
        .max()
        .unwrap();
    for len in 0..data_end as usize {
        let cut = File(file[..len].to_vec()).read();
        assert!(
            matches!(cut, Err(Error::InvalidModelFile(_))),
            "{len}: {cut:?}"
        );
    }
}

#[test]
fn every_single_bit_flip_causes_no_panic() {
    let file = sample();
    let header_bytes = File(file.clone()).read().unwrap().tensors[0].offset_bytes as usize;
    let mut refused = 0;
    for bit in 0..header_bytes * 8 {
        let mut flipped = file.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match File(flipped).read() {
            Ok(gguf) => check_invariants(&gguf, file.len() as u64),
            Err(Error::InvalidModelFile(_) | Error::UnsupportedModel(_)) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(
        refused > header_bytes * 2,
        "only {refused} flips were refused"
    );
}

proptest! {
    #[test]
    fn random_damage_causes_no_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut file = sample();
        for (index, byte) in damage {
            let index = index.index(file.len());
            file[index] = byte;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        let file_bytes = file.len() as u64;
        match File(file).read() {
            Ok(gguf) => check_invariants(&gguf, file_bytes),
            Err(Error::InvalidModelFile(_) | Error::UnsupportedModel(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn noise_causes_no_panic(noise in prop::collection::vec(any::<u8>(), 0..600)) {
        let file = raw().bytes(b"GGUF").u32(3).bytes(&noise);
        prop_assert!(file.read().is_err() || noise.len() >= 16);
    }
}
