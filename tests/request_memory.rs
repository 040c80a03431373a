//! A prompt of a million token ids uses memory in proportion to its ids, not to a tree of JSON values, and a resized image in
//! proportion to its old and its new size. A decode step changes what a model keeps of a sequence where it is. This is a
//! separate test program because it counts every allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use inpage::api::{Body, Handler, Request, Switches, SystemHost};
use inpage::device::{ComputeDevice, CpuOptions};
use inpage::engine::{CausalModel, Chooser, Input, Row, SequenceMemory};
use inpage::images::{Filter, Image, ImageFormat, ImageGeometry, ImageMarkup};
use inpage::model::{LoadOptions, inspect};
use inpage::ops::Variant;
use inpage::runtime::{Tuning, start};
use inpage::weights::{FileSource, Gguf};

/// The system allocator, which tracks the bytes in use and their maximum.
struct Counting;

static IN_USE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

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

/// Sends a prompt to an endpoint without models. Returns the error's code and the maximum number of
/// bytes that reading it used, without the body itself.
fn post(prompt: &str) -> (String, usize) {
    let body = format!(r#"{{"model":"m","prompt":{prompt}}}"#);
    let handler = Handler::new(Switches::default(), Rc::new(SystemHost));
    let request = Request {
        method: "POST".to_owned(),
        url: "/v1/completions".to_owned(),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: body.into_bytes(),
        ..Request::default()
    };
    let before = IN_USE_BYTES.load(Relaxed);
    PEAK_BYTES.store(before, Relaxed);
    // The request is dropped with the response.
    let response = pollster::block_on(handler.handle(request));
    let taken_bytes = PEAK_BYTES.load(Relaxed) - before;
    let Body::Full(bytes) = response.body else {
        panic!("an error has a complete body");
    };
    let answer: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let code = answer["error"]["code"].as_str().unwrap().to_owned();
    (code, taken_bytes)
}

/// Held by each test, so that nothing else allocates meanwhile.
static ALONE: Mutex<()> = Mutex::new(());

/// The most that a step of these models may take: less than what a layer keeps of all sequences.
const MOST_STEP_BYTES: usize = 512 << 10;

/// The bytes that a step of one token after another one takes, at most.
fn step_bytes(path: &Path, device: &ComputeDevice, variant: Variant) -> usize {
    let source = FileSource::open(path).unwrap();
    let gguf = pollster::block_on(Gguf::read(&source)).unwrap();
    let options = LoadOptions {
        context_tokens: Some(512),
        kv_pool_tokens: Some(64 * 512),
        ..LoadOptions::default()
    };
    let memory = inspect(&gguf, options).memory.unwrap();
    let tuning = Tuning::Fixed(variant);
    let loaded = start(device, tuning, &gguf, &source, options, |_, _| ());
    let (mut model, _) = pollster::block_on(loaded).unwrap();
    let layers = &model.config().layers;
    let kept = [
        (
            memory.kv_bytes,
            layers.iter().filter(|it| it.mixing.attends()).count(),
        ),
        (
            memory.state_bytes,
            layers.iter().filter(|it| it.mixing.recurs()).count(),
        ),
    ];
    for (bytes, layers) in kept.into_iter().filter(|(_, layers)| *layers > 0) {
        let of_layer = bytes as usize / layers;
        assert!(of_layer > MOST_STEP_BYTES, "{of_layer} bytes of a layer");
    }
    let mut memory = SequenceMemory {
        state: Some(0),
        ..SequenceMemory::new(vec![0])
    };
    let mut taken_bytes = 0;
    for id in [1, 2, 3].map(|id| [id]) {
        let before = IN_USE_BYTES.load(Relaxed);
        PEAK_BYTES.store(before, Relaxed);
        let mut rows = [Row {
            memory: &mut memory,
            input: Input::tokens(&id),
        }];
        pollster::block_on(model.step(&mut rows, Chooser::Host)).unwrap();
        taken_bytes = PEAK_BYTES.load(Relaxed) - before;
    }
    taken_bytes
}

/// States, keys and values, and the table of per-layer embeddings.
#[test]
fn a_decode_step_copies_nothing_that_a_model_keeps() {
    let _alone = ALONE.lock().unwrap();
    let models = std::env::var_os("INPAGE_MODELS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/models"),
        PathBuf::from,
    );
    let folder = models.join("2026");
    if !folder.is_dir() {
        println!("skipped: no {}", folder.display());
        return;
    }
    for name in ["qwen35-F16", "granite4-F16", "gemma4-F16"] {
        let path = folder.join(format!("{name}.gguf"));
        for (device, variant) in [
            (ComputeDevice::reference(), Variant::PORTABLE),
            (ComputeDevice::cpu(CpuOptions::default()), Variant::CPU),
        ] {
            let taken_bytes = step_bytes(&path, &device, variant);
            assert!(taken_bytes < MOST_STEP_BYTES, "{name}: {taken_bytes} bytes");
        }
    }
}

#[test]
fn long_narrow_images_use_memory_in_proportion_to_their_pixels() {
    let _alone = ALONE.lock().unwrap();
    let tiles = ImageGeometry::Tiles {
        size: 512,
        longest_edge: 2048,
        rows: 64,
    };
    let stretched = ImageGeometry::Stretched {
        size: 896,
        rows: 256,
    };
    for (geometry, filter) in [(tiles, Filter::Lanczos), (stretched, Filter::Bilinear)] {
        let format = ImageFormat {
            markup: const { &ImageMarkup::plain("<image>") },
            filter,
            geometry,
        };
        for [width, height] in [[1, 32_767], [32_767, 1]] {
            let cost_bytes = format.cost([width, height]).unwrap().bytes as usize;
            let image = Image {
                width,
                height,
                rgb: vec![7; 3 * width * height],
            };
            let before = IN_USE_BYTES.load(Relaxed);
            PEAK_BYTES.store(before, Relaxed);
            let parts = format.parts(&image);
            let taken_bytes = PEAK_BYTES.load(Relaxed) - before;
            // Beside the parts there are the image that is cut, and weights.
            let bound_bytes = 3 * cost_bytes + (4 << 20);
            assert!(
                taken_bytes <= bound_bytes,
                "{format:?}: {taken_bytes} bytes"
            );
            drop(parts);
        }
    }
}

#[test]
fn prompts_use_memory_in_proportion_to_their_ids() {
    let _alone = ALONE.lock().unwrap();
    const COUNT: usize = 1_000_000;
    let ids = vec!["7"; COUNT].join(",");
    // Four bytes per id in a vector that doubles; half as much again is in use while it grows.
    let bound_bytes = 3 * 4 * COUNT.next_power_of_two() / 2 + (1 << 20);
    for prompt in [format!("[{ids}]"), format!("[[{ids}]]")] {
        let (code, taken_bytes) = post(&prompt);
        assert_eq!(code, "model_not_found");
        assert!(taken_bytes <= bound_bytes, "{taken_bytes} bytes");
    }
    // Refused shapes are not kept: prompts beyond the limit, elements after a wrong one.
    for (element, code) in [("[7]", "out_of_range"), (r#""7""#, "out_of_range")] {
        let many = vec![element; COUNT / 4].join(",");
        let (given, taken_bytes) = post(&format!("[{many}]"));
        assert_eq!(given, code);
        assert!(taken_bytes < 1 << 20, "{taken_bytes} bytes");
    }
    let (code, taken_bytes) = post(&format!("[null,{ids}]"));
    assert_eq!(code, "invalid_type");
    assert!(taken_bytes < 1 << 20, "{taken_bytes} bytes");
}
