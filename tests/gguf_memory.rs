//! Reading a GGUF header allocates memory in proportion to the file's size, whatever counts it states.
//! This is a separate test program because it counts every allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use inpage::{
    tensor_types::TensorType,
    weights::{BytesSource, Gguf, GgufWriter, Metadata},
};

/// The system allocator, which tracks the bytes in use and their maximum.
struct Counting;

static IN_USE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Allows only one measurement at a time.
static MEASURING: Mutex<()> = Mutex::new(());

// SAFETY: forwards everything to `System`; the default `alloc_zeroed` and `realloc` call these two.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let in_use = IN_USE_BYTES.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK_BYTES.fetch_max(in_use, Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Reads the file and checks the memory used meanwhile. Returns whether the file was valid.
#[track_caller]
fn read_within_bounds(file: &[u8]) -> bool {
    let before = IN_USE_BYTES.load(Relaxed);
    PEAK_BYTES.store(before, Relaxed);
    let sound = pollster::block_on(Gguf::read(&BytesSource(file))).is_ok();
    let taken_bytes = PEAK_BYTES.load(Relaxed) - before;
    // The worst case is an array of empty strings: 8 bytes of the file become a String of 24 bytes in
    // a Vec that doubles, so 24 + 2 * 24 bytes are in use while it grows, plus the buffered file.
    let bound_bytes = 10 * file.len() + (16 << 10);
    assert!(
        taken_bytes <= bound_bytes,
        "{taken_bytes} bytes for a file of {}",
        file.len()
    );
    sound
}

fn sample() -> Vec<u8> {
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", "llama");
    metadata.insert("tokenizer.ggml.tokens", vec!["ab".to_owned(); 40]);
    metadata.insert("tokenizer.ggml.scores", vec![0.5f32; 40]);
    metadata.insert("tokenizer.ggml.token_type", vec![1i32; 40]);
    let mut writer = GgufWriter::new(metadata).unwrap();
    writer.tensor("w", &[32, 4], TensorType::Q8_0).unwrap();
    let mut data = writer.start(Vec::new()).unwrap();
    data.write(&[0; 136]).unwrap();
    data.finish().unwrap()
}

#[test]
fn damaged_files_use_no_more_memory_than_valid_ones() {
    let _alone = MEASURING.lock();
    let file = sample();
    assert!(read_within_bounds(&file));
    let mut refused = 0;
    for bit in 0..file.len() * 8 {
        let mut flipped = file.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        refused += usize::from(!read_within_bounds(&flipped));
    }
    assert!(refused > 1000, "only {refused} flips were refused");
    // All lengths up to the padding at the end.
    for len in 0..file.len() - 24 {
        assert!(!read_within_bounds(&file[..len]), "{len}");
    }
}

#[test]
fn a_count_just_within_the_file_is_the_worst_case() {
    let _alone = MEASURING.lock();
    for count in [100_000u64, 4_000_000] {
        // An array of `count` empty strings, complete and with the last one truncated.
        let mut file = b"GGUF\x03\0\0\0".to_vec();
        file.extend(0u64.to_le_bytes());
        file.extend(1u64.to_le_bytes());
        file.extend(1u64.to_le_bytes());
        file.extend(b"k");
        file.extend(9u32.to_le_bytes());
        file.extend(8u32.to_le_bytes());
        file.extend(count.to_le_bytes());
        file.resize(file.len() + 8 * count as usize, 0);
        assert!(read_within_bounds(&file));
        let last = file.len() - 8;
        file[last] = 1;
        assert!(!read_within_bounds(&file));
    }
}
