//! Pictures of any size: the tiny random models in `pictures` against what `transformers` computes from the same weights
//! (`scripts/references/vision_grids.py`): rows of pictures, logits after prompts with several of them, and tokens after these.

use std::{
    path::{Path, PathBuf},
    rc::Rc,
};

use inpage::{
    engine::{
        CausalModel, Chooser, Row, RowSampler, SequenceMemory,
        generation::{Content, Embeddings, Prompt, Span},
    },
    model::{LoadOptions, Transformer},
    ops::kv_memory::KvFormat,
    pictures::{Part, Picture},
    runtime::start_vision,
    sample::{Sampler, SamplingParams},
    weights::{FileSource, Gguf},
};
use pollster::block_on;
use serde_json::Value;

use crate::{
    fixture::{Compute, all_computes, floats, ids, json, load, npy},
    references::assert_parity,
};

const TOLERANCE: f32 = 0.02;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/pictures")
}

fn open(name: &str) -> (Gguf, FileSource) {
    let source = FileSource::open(folder().join(name)).expect("a model");
    (block_on(Gguf::read(&source)).expect("a GGUF"), source)
}

fn model(compute: &Compute, name: &str) -> Transformer {
    let (gguf, source) = open(&format!("{name}.gguf"));
    let options = LoadOptions {
        context_tokens: Some(256),
        kv_format: KvFormat::F32,
        takes_embeddings: true,
        ..LoadOptions::default()
    };
    let model = load(compute.clone(), &gguf, &source, options, |_, _| ());
    let mut model = block_on(model).expect("a model that runs");
    if WITH_TOWERS.contains(&name) {
        let (gguf, source) = open(&format!("mmproj-{name}.gguf"));
        block_on(start_vision(&mut model, &gguf, &source, |_| ())).expect("a tower that runs");
    }
    model
}

/// Gradients with noise, as the script makes them.
fn picture(width: usize, height: usize) -> Picture {
    let mut rgb = Vec::new();
    for y in 0..height {
        for x in 0..width {
            for channel in 0..3 {
                let noise = (x * 73 + y * 151 + channel * 199).pow(2) % 97;
                rgb.push(((x * 5 + y * 3 + channel * 40 + noise) % 256) as u8);
            }
        }
    }
    Picture { width, height, rgb }
}

/// The pictures of a reference as the tower takes them, each with its number of rows.
fn pictures(model: &Transformer, reference: &Value) -> Vec<(Picture, usize)> {
    let Some(vision) = model.vision() else {
        return Vec::new();
    };
    let format = vision.config().format();
    let sizes = reference["pictures"].as_array().unwrap();
    let counts = ids(&reference["counts"]);
    let pictures = sizes.iter().zip(counts).map(|(size, count)| {
        let size = ids(size);
        let whole = picture(size[0] as usize, size[1] as usize);
        match &format.parts(&whole)[..] {
            [Part::Pixels(pixels, rows)] => {
                assert_eq!(*rows, count as usize);
                (pixels.clone(), *rows)
            }
            other => panic!("{} parts", other.len()),
        }
    });
    pictures.collect()
}

fn prompt(model: &Transformer, reference: &Value) -> Prompt {
    let pictures = pictures(model, reference);
    let items = reference["prompt"].as_array().unwrap();
    Prompt::new(items.iter().map(|item| match item.as_array() {
        None => Span::Tokens(vec![item.as_u64().unwrap() as u32]),
        Some(index) => {
            let index = index[0].as_u64().unwrap() as usize;
            let (pixels, rows) = pictures[index].clone();
            Span::Embeddings(Rc::new(Embeddings {
                key: index as u128,
                positions: rows,
                content: Content::Pixels(pixels),
            }))
        }
    }))
}

/// A half of the pages of a model, out of order.
fn memory(model: &Transformer, half: u32) -> SequenceMemory {
    let pages = model.limits().page_count as u32;
    SequenceMemory::new((0..pages).rev().filter(|page| page % 2 == half).collect())
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

const NAMES: [&str; 2] = ["qwen3vl", "qwen2vl"];
/// The other models are compared without pictures.
const WITH_TOWERS: [&str; 1] = ["qwen3vl"];

#[test]
fn pictures_of_any_size_become_the_rows_of_the_reference() {
    for (device, compute) in all_computes() {
        for name in WITH_TOWERS {
            let reference = json(&folder().join(format!("{name}.json")));
            let expected = npy(&folder().join(format!("{name}.npy")));
            let mut model = model(&compute, name);
            let mut rows = Vec::new();
            for (pixels, _) in pictures(&model, &reference) {
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
fn prompts_with_pictures_meet_their_references() {
    for (device, compute) in all_computes() {
        for name in NAMES {
            let reference = json(&folder().join(format!("{name}.json")));
            let expected = floats(&reference["logits"]);
            let mut model = model(&compute, name);
            let prompt = prompt(&model, &reference);
            // Whole, in parts that begin and end within pictures, and one by one.
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
fn tokens_after_pictures_meet_their_references() {
    for (device, compute) in all_computes() {
        for name in NAMES {
            let what = format!("{name} on the {device}");
            let reference = json(&folder().join(format!("{name}.json")));
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
        for name in NAMES {
            let what = format!("{name} on the {device}");
            let reference = json(&folder().join(format!("{name}.json")));
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

#[test]
fn a_projector_of_another_model_is_refused() {
    let compute = Compute::reference();
    let mut model = model(&compute, "qwen3vl");
    let (mut gguf, source) = open("mmproj-qwen3vl.gguf");
    gguf.metadata.insert("clip.vision.projection_dim", 128u32);
    let error = block_on(start_vision(&mut model, &gguf, &source, |_| ())).unwrap_err();
    assert!(error.to_string().contains("another model"), "{error}");
    let (mut gguf, source) = open("mmproj-qwen3vl.gguf");
    gguf.metadata
        .insert("clip.vision.is_deepstack_layers", vec![true, false]);
    let error = block_on(start_vision(&mut model, &gguf, &source, |_| ())).unwrap_err();
    assert!(
        error.to_string().contains("2 of the model take some"),
        "{error}"
    );
}
