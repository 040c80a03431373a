//! Tensors beyond 4 GiB, where 32 bits are not enough for an offset, in a sparse file.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use inpage::{
    model::LoadOptions,
    weights::{FileSource, Gguf},
};
use pollster::block_on;

use crate::fixture::{Compute, Feed, load, sequence};

/// This tensor begins before 4 GiB and ends behind it; those after it lie beyond.
const STRADDLING: &str = "blk.1.ffn_gate.weight";

fn small_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/models/llama.gguf")
}

fn logits(path: &Path) -> Vec<f32> {
    let source = FileSource::open(path).unwrap();
    let gguf = block_on(Gguf::read(&source)).unwrap();
    let options = LoadOptions::default();
    let loaded = load(Compute::cpu(), &gguf, &source, options, |_, _| ());
    let mut model = block_on(loaded).unwrap();
    let mut memory = sequence(&model);
    block_on(model.feed(&mut memory, &[1, 2, 3])).unwrap()
}

/// The file of [`small_file`] with a hole in its data, so that [`STRADDLING`] begins 4 KiB before 4 GiB.
fn write_sparse(path: &Path) {
    let small = fs::read(small_file()).unwrap();
    let gguf = block_on(Gguf::read(&FileSource::open(small_file()).unwrap())).unwrap();
    let from = gguf.tensor(STRADDLING).unwrap().offset_bytes;
    let shift = (1u64 << 32) - 4096 - from;
    let (mut head, far) = {
        let (head, far) = small.split_at(from as usize);
        (head.to_vec(), far)
    };
    let moved = gguf.tensors.iter().filter(|it| it.offset_bytes >= from);
    for tensor in moved {
        // An entry of the header: name, rank, dimensions, type, offset.
        let mut name = (tensor.name.len() as u64).to_le_bytes().to_vec();
        name.extend(tensor.name.as_bytes());
        let found = head.windows(name.len()).position(|at| at == name);
        let at = found.unwrap() + name.len() + 4 + 8 * tensor.shape.len() + 4;
        let offset: &mut [u8] = &mut head[at..at + 8];
        let old = u64::from_le_bytes(offset.try_into().unwrap());
        offset.copy_from_slice(&(old + shift).to_le_bytes());
    }
    let mut file = File::create(path).unwrap();
    file.write_all(&head).unwrap();
    file.seek(SeekFrom::Start(from + shift)).unwrap();
    file.write_all(far).unwrap();
}

#[test]
fn tensors_beyond_4_gib_are_read() {
    let path = std::env::temp_dir().join(format!("inpage-far-{}.gguf", std::process::id()));
    write_sparse(&path);
    let gguf = block_on(Gguf::read(&FileSource::open(&path).unwrap())).unwrap();
    let offsets = gguf.tensors.iter().map(|it| it.offset_bytes);
    assert!(offsets.max().unwrap() > 1 << 32);
    let found = logits(&path);
    fs::remove_file(&path).unwrap();
    assert_eq!(found, logits(&small_file()));
}
