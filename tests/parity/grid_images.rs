//! Images of any size: the tiny random models in `images` against what `transformers` computes from the same weights
//! (`scripts/references/vision_grids.py`): rows of images, logits after prompts with several of them, and tokens after these.

use std::rc::Rc;

use inpage::{
    Error,
    engine::{
        CausalModel, Chooser, Row, RowSampler, SequenceMemory,
        generation::{Content, Embeddings, Prompt, Span},
    },
    images::{Image, Part},
    model::{Checkpoint, LoadOptions, Quantize, Transformer},
    ops::kv_memory::KvFormat,
    runtime::start_vision,
    sample::{Sampler, SamplingParams},
    weights::Gguf,
};
use pollster::block_on;
use serde_json::{Value, json};

use crate::{
    fixture::{Compute, all_computes, floats, ids, image, load, npy_of},
    image_files::ImageFiles,
    image_folders::Folder,
    references::assert_parity,
};

const TOLERANCE: f32 = 0.02;

fn options() -> LoadOptions {
    LoadOptions {
        context_tokens: Some(256),
        kv_format: KvFormat::F32,
        takes_embeddings: true,
        quantize: Quantize::None,
        ..LoadOptions::default()
    }
}

fn model(compute: &Compute, name: &str) -> Transformer {
    altered(compute, name, |_| ()).expect("a tower that runs")
}

/// A model whose tower's file was changed.
fn altered(
    compute: &Compute,
    name: &str,
    alter: impl FnOnce(&mut Gguf),
) -> Result<Transformer, Error> {
    let [(gguf, source), (mut tower, tower_source)] = ImageFiles::of(name).ggufs();
    let model = load(compute.clone(), &gguf, &source, options(), |_, _| ());
    let mut model = block_on(model).expect("a model that runs");
    alter(&mut tower);
    block_on(start_vision(&mut model, &tower, &tower_source, |_| ()))?;
    Ok(model)
}

/// The images of a reference as the tower takes them, each with its number of rows.
fn images(model: &Transformer, reference: &Value) -> Vec<(Image, usize)> {
    let Some(vision) = model.vision() else {
        return Vec::new();
    };
    let format = vision.config().format();
    let sizes = reference["images"].as_array().unwrap();
    let counts = ids(&reference["counts"]);
    let images = sizes.iter().zip(counts).map(|(size, count)| {
        let size = ids(size);
        let whole = image(size[0] as usize, size[1] as usize);
        match &format.parts(&whole)[..] {
            [Part::Pixels(pixels, rows)] => {
                assert_eq!(*rows, count as usize);
                (pixels.clone(), *rows)
            }
            other => panic!("{} parts", other.len()),
        }
    });
    images.collect()
}

fn prompt(model: &Transformer, reference: &Value) -> Prompt {
    let images = images(model, reference);
    let items = reference["prompt"].as_array().unwrap();
    Prompt::new(items.iter().map(|item| match item.as_array() {
        None => Span::Tokens(vec![item.as_u64().unwrap() as u32]),
        Some(index) => {
            let index = index[0].as_u64().unwrap() as usize;
            let (pixels, rows) = images[index].clone();
            Span::Embeddings(Rc::new(Embeddings {
                key: index as u128,
                positions: rows,
                content: Content::Pixels(pixels),
            }))
        }
    }))
}

/// A half of the pages of a model, out of order, and a state of its recurrent layers.
fn memory(model: &Transformer, half: u32) -> SequenceMemory {
    let limits = model.limits();
    let pages = (0..limits.page_count as u32).rev();
    SequenceMemory {
        state: (limits.state_slots > 0).then_some(1 + half),
        ..SequenceMemory::new(pages.filter(|page| page % 2 == half).collect())
    }
}

/// The logits after a prompt, fed in parts of at most `part` positions.
fn fed(
    model: &mut Transformer,
    memory: &mut SequenceMemory,
    prompt: &Prompt,
    part: usize,
) -> Vec<f32> {
    let last = (prompt.len() - 1) / part * part;
    for start in (memory.len_tokens..last).step_by(part) {
        block_on(model.prefill(memory, prompt.input(start..start + part))).unwrap();
    }
    let begin = memory.len_tokens;
    let mut rows = [Row {
        memory,
        input: prompt.input(begin..prompt.len()),
    }];
    let output = block_on(model.step(&mut rows, Chooser::Host)).unwrap();
    output.into_logits().unwrap().remove(0)
}

/// The logits after one token more of each sequence.
fn followed(
    model: &mut Transformer,
    rows: &mut [(&mut SequenceMemory, &Prompt, u32)],
) -> Vec<Vec<f32>> {
    let rows = rows.iter_mut().map(|(memory, prompt, token)| Row {
        memory,
        input: prompt.after(std::slice::from_ref(token)),
    });
    let mut rows: Vec<Row> = rows.collect();
    let output = block_on(model.step(&mut rows, Chooser::Host)).unwrap();
    output.into_logits().unwrap()
}

fn best(logits: &[f32]) -> u32 {
    let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
    best.unwrap() as u32
}

fn reference(name: &str) -> Value {
    ImageFiles::of(name).json("reference.json")
}

#[test]
fn images_of_any_size_become_the_rows_of_the_reference() {
    for (device, compute) in all_computes() {
        for name in &ImageFiles::names(true) {
            let reference = reference(name);
            let expected = npy_of(ImageFiles::of(name).bytes("rows.npy"));
            let mut model = model(&compute, name);
            let mut rows = Vec::new();
            for (pixels, _) in images(&model, &reference) {
                rows.extend(block_on(model.vision_mut().unwrap().encode(&pixels)).unwrap());
            }
            assert_parity(
                &format!("{name} on the {device}"),
                &rows,
                &expected,
                TOLERANCE,
            );
        }
    }
}

#[test]
fn prompts_with_images_meet_their_references() {
    for (device, compute) in all_computes() {
        for name in &ImageFiles::names(true) {
            let reference = reference(name);
            let expected = floats(&reference["logits"]);
            let mut model = model(&compute, name);
            let prompt = prompt(&model, &reference);
            // Whole, in parts that begin and end within images, and one by one.
            for part in [512, 64, 7, 1] {
                let mut memory = memory(&model, 0);
                let logits = fed(&mut model, &mut memory, &prompt, part);
                let what = format!("{name} on the {device}, {part} at a time");
                assert_parity(&what, &logits, &expected, TOLERANCE);
            }
        }
    }
}

#[test]
fn tokens_after_images_meet_their_references() {
    for (device, compute) in all_computes() {
        for name in &ImageFiles::names(true) {
            let what = format!("{name} on the {device}");
            let reference = reference(name);
            let greedy = ids(&reference["greedy"]);
            let expected = floats(&reference["greedy_logits"]);
            let mut model = model(&compute, name);
            let prompt = prompt(&model, &reference);

            // One by one.
            let mut one = memory(&model, 0);
            let mut logits = fed(&mut model, &mut one, &prompt, 512);
            for token in &greedy {
                assert_eq!(best(&logits), *token, "{what}");
                logits = followed(&mut model, &mut [(&mut one, &prompt, *token)]).remove(0);
            }
            assert_parity(&what, &logits, &expected, TOLERANCE);

            // Chosen and fed by the device, in two calls.
            let mut ahead = memory(&model, 0);
            let mut chosen = Vec::new();
            for steps in [2, greedy.len() - 2] {
                let last = chosen.last().copied();
                let input = match &last {
                    Some(last) => prompt.after(std::slice::from_ref(last)),
                    None => prompt.input(0..prompt.len()),
                };
                let mut rows = [Row {
                    memory: &mut ahead,
                    input,
                }];
                let output = block_on(model.step(&mut rows, Chooser::Greedy { steps })).unwrap();
                let tokens = output.into_chosen().unwrap().remove(0);
                chosen.extend(tokens.into_iter().map(|it| it.unwrap().id));
            }
            assert_eq!(chosen, greedy, "{what}");
            let last = *greedy.last().unwrap();
            let logits = followed(&mut model, &mut [(&mut ahead, &prompt, last)]).remove(0);
            assert_parity(&what, &logits, &expected, TOLERANCE);
        }
    }
}

/// Sequences beside each other have offsets of their own, and steps that sample keep them.
#[test]
fn batches_keep_the_positions_of_each_sequence() {
    for (device, compute) in all_computes() {
        for name in &ImageFiles::names(true) {
            let what = format!("{name} on the {device}");
            let reference = reference(name);
            let greedy = ids(&reference["greedy"]);
            let expected = floats(&reference["greedy_logits"]);
            let mut model = model(&compute, name);
            let prompt = prompt(&model, &reference);
            let text = Prompt::from((0..70).map(|id| id * 3 % 250).collect::<Vec<u32>>());
            let mut alone = memory(&model, 1);
            fed(&mut model, &mut alone, &text, 512);
            let mut plain = Vec::new();
            for token in &greedy {
                plain = followed(&mut model, &mut [(&mut alone, &text, *token)]).remove(0);
            }

            let (mut first, mut second) = (memory(&model, 0), memory(&model, 1));
            fed(&mut model, &mut first, &prompt, 512);
            fed(&mut model, &mut second, &text, 512);
            let mut both = Vec::new();
            for token in &greedy {
                let mut rows = [(&mut first, &prompt, *token), (&mut second, &text, *token)];
                both = followed(&mut model, &mut rows);
            }
            assert_parity(&what, &both[0], &expected, TOLERANCE);
            assert_parity(&what, &both[1], &plain, TOLERANCE);

            let params = SamplingParams {
                temperature: 0.0,
                ..SamplingParams::default()
            };
            block_on(model.choose_on_device()).unwrap();
            if !model.samples(&params, None) {
                continue;
            }
            let mut sampled = memory(&model, 0);
            fed(&mut model, &mut sampled, &prompt, 512);
            let mut sampler = Sampler::new(&params, 0, prompt.ids());
            let mut rows = [Row {
                memory: &mut sampled,
                input: prompt.after(&greedy[..1]),
            }];
            let chooser = Chooser::Samplers {
                steps: greedy.len() - 1,
                samplers: vec![RowSampler {
                    sampler: &mut sampler,
                    score: None,
                }],
                masks: Box::new(Vec::new),
            };
            let output = block_on(model.step(&mut rows, chooser)).unwrap();
            let chosen = output.into_chosen().unwrap().remove(0);
            let chosen: Vec<u32> = chosen.into_iter().map(|it| it.unwrap().id).collect();
            assert_eq!(chosen, greedy[1..], "{what}");
        }
    }
}

/// The folder of a model.
fn folder_of(name: &str) -> Folder {
    Folder::of(&ImageFiles::of(name))
}

/// Text model and tower of one folder, against the references of the files.
#[test]
fn folders_with_towers_meet_the_references() {
    for name in &ImageFiles::names(true) {
        let files = folder_of(name);
        let text = block_on(Checkpoint::open(&files, &options())).expect("a text model");
        let tower = block_on(Checkpoint::open_tower(&files)).unwrap();
        let tower = tower.expect("a tower");
        let reference = reference(name);
        for (device, compute) in all_computes() {
            let model = load(compute, &text.gguf, &text.source, options(), |_, _| ());
            let mut model = block_on(model).expect("a model that runs");
            let started = start_vision(&mut model, &tower.gguf, &tower.source, |_| ());
            block_on(started).expect("a tower that runs");
            let prompt = prompt(&model, &reference);
            let mut memory = memory(&model, 0);
            let logits = fed(&mut model, &mut memory, &prompt, 512);
            let what = format!("the folder of {name} on the {device}");
            assert_parity(&what, &logits, &floats(&reference["logits"]), TOLERANCE);
        }
    }
}

#[test]
fn folders_of_other_towers_are_refused() {
    for (name, key, value, wanted) in [
        (
            "qwen25vl",
            "fullatt_block_indexes",
            json!([1, 2]),
            "fullatt_block_indexes [1,2]",
        ),
        ("qwen25vl", "hidden_act", json!("gelu"), "hidden_act"),
        (
            "qwen25vl",
            "temporal_patch_size",
            json!(1),
            "temporal_patch_size 1",
        ),
        (
            "qwen3vl",
            "deepstack_visual_indexes",
            json!([2, 0]),
            "deepstack_visual_indexes [2,0]",
        ),
        (
            "qwen3vl",
            "deepstack_visual_indexes",
            json!([0]),
            "deepstack_merger_list.1",
        ),
        ("qwen2vl", "hidden_act", json!("gelu"), "hidden_act"),
    ] {
        let mut files = folder_of(name);
        files.change("config.json", |config| {
            config["vision_config"][key] = value;
        });
        let error = block_on(Checkpoint::open_tower(&files)).err();
        let error = error.unwrap_or_else(|| panic!("{name} with another {key}"));
        assert!(error.to_string().contains(wanted), "{name}: {error}");
    }
}

/// Says why a tower is refused whose file was changed.
fn refusal(name: &str, alter: impl FnOnce(&mut Gguf)) -> String {
    match altered(&Compute::reference(), name, alter) {
        Ok(_) => panic!("the altered tower of {name} runs"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_projector_of_another_model_is_refused() {
    let error = refusal("qwen3vl", |gguf| {
        gguf.metadata.insert("clip.vision.projection_dim", 128u32);
    });
    assert!(error.contains("another model"), "{error}");
    let error = refusal("qwen3vl", |gguf| {
        let key = "clip.vision.is_deepstack_layers";
        gguf.metadata.insert(key, vec![true, false]);
    });
    assert!(error.contains("2 of the model take some"), "{error}");
}

/// One square high, in windows of one square and of three: the most sequences that a step of patches can have.
#[test]
fn narrow_images_have_many_windows() {
    for window in [8u32, 24] {
        let rows = all_computes().into_iter().map(|(device, compute)| {
            let mut model = altered(&compute, "qwen25vl", |gguf| {
                gguf.metadata.insert("clip.vision.window_size", window);
                gguf.metadata
                    .insert("clip.vision.image_max_pixels", 64 * 64u32);
            });
            let vision = model.as_mut().unwrap().vision_mut().unwrap();
            let rows = block_on(vision.encode(&image(64 * 8, 8))).unwrap();
            assert_eq!(rows.len(), 64 * 64);
            (device, rows)
        });
        let rows: Vec<_> = rows.collect();
        for (device, other) in &rows[1..] {
            let what = format!("windows of {window} pixels on the {device}");
            assert_parity(&what, other, &rows[0].1, TOLERANCE);
        }
    }
}

#[test]
fn towers_with_wrong_metadata_are_refused() {
    for (key, value, wanted) in [
        ("attention.head_count", 0, "attention.head_count is 0"),
        ("attention.head_count", 5, "5 heads"),
        ("patch_size", 0, "patch_size is 0"),
        ("patch_size", 1 << 20, "more pixels than supported"),
        ("spatial_merge_size", 9, "more pixels than supported"),
        ("spatial_merge_size", 4, "mm.0.weight has shape"),
        ("block_count", 1 << 20, "1048576 layers"),
        ("block_count", 3, "blk.3."),
        ("feed_forward_length", 64, "ffn_gate.weight has shape"),
        ("window_size", 0, "window_size is 0"),
        ("window_size", 7, "less than the 8 pixels of a row"),
        ("window_size", 1 << 30, "window_size is 1073741824"),
        ("n_wa_pattern", 1 << 30, "n_wa_pattern is 1073741824"),
    ] {
        let error = refusal("qwen25vl", |gguf| {
            let key = format!("clip.vision.{key}");
            gguf.metadata.insert(key, value as u32);
        });
        assert!(error.contains(wanted), "{key} {value}: {error}");
    }
    let error = refusal("qwen25vl", |gguf| {
        gguf.metadata.insert("clip.use_gelu", true);
    });
    assert!(error.contains("are both set"), "{error}");
    // The file does not say which layers have windows.
    let error = refusal("qwen2vl", |gguf| {
        let projector = "qwen2.5vl_merger";
        gguf.metadata.insert("clip.projector_type", projector);
    });
    assert!(error.contains("n_wa_pattern is missing"), "{error}");
}

#[test]
fn towers_with_missing_or_unknown_tensors_are_refused() {
    for (name, tensor, renamed, wanted) in [
        (
            "qwen25vl",
            "v.blk.1.ffn_gate.weight",
            "a",
            "ffn_up.weight has shape",
        ),
        ("qwen25vl", "v.blk.1.ffn_gate.bias", "blk.a", "\"blk.a\""),
        (
            "qwen25vl",
            "v.blk.2.ln1.weight",
            "a",
            "blk.2.attn_norm.weight is missing",
        ),
        (
            "qwen25vl",
            "v.patch_embd.weight.1",
            "a",
            "patch_embd_1.weight is missing",
        ),
        ("qwen25vl", "mm.2.weight", "a", "mm.2.weight is missing"),
        (
            "qwen2vl",
            "v.blk.0.ffn_up.weight",
            "a",
            "blk.0.ffn_up.weight is missing",
        ),
        (
            "qwen2vl",
            "v.post_ln.bias",
            "a",
            "output_norm.bias is missing",
        ),
        (
            "qwen2vl",
            "mm.2.bias",
            "v.position_embd.weight",
            "\"position_embd.weight\"",
        ),
    ] {
        let error = refusal(name, |gguf| {
            let found = gguf.tensors.iter_mut().find(|it| it.name == tensor);
            found.expect("the tensor").name = renamed.to_owned();
        });
        assert!(error.contains(wanted), "{tensor}: {error}");
    }
}
