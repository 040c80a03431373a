//! Families of models that take images against the references that `scripts/references/vision.py` makes: the rows of
//! each image, the logits after a prompt with several, and how such a prompt may be divided. Files and folders.

use std::path::Path;
use std::rc::Rc;

use inpage::{
    Error,
    engine::{
        CausalModel, Chooser, Row,
        generation::{Content, Embeddings, Prompt, Span},
    },
    images::{Image, Part},
    model::{Checkpoint, LoadOptions, Quantize, Transformer},
    ops::kv_memory::KvFormat,
    runtime::{InspectionOptions, inspect, start_vision},
    weights::{ByteSource, Gguf, LocalFiles},
};
use pollster::block_on;
use serde_json::{Value, json};

use crate::{
    fixture::{Compute, all_computes, floats, image, load, sequence},
    image_files::{self, ImageFiles},
    image_folders::Folder,
    references::assert_parity,
};

fn options() -> LoadOptions {
    LoadOptions {
        context_tokens: Some(512),
        kv_format: KvFormat::F32,
        takes_embeddings: true,
        quantize: Quantize::None,
        ..LoadOptions::default()
    }
}

/// A text model with its tower.
fn model(compute: &Compute, name: &str) -> Transformer {
    let [text, tower] = ImageFiles::of(name).ggufs();
    started(compute, (&text.0, &text.1), (&tower.0, &tower.1))
}

fn started<S: ByteSource>(compute: &Compute, text: (&Gguf, &S), tower: (&Gguf, &S)) -> Transformer {
    let model = load(compute.clone(), text.0, text.1, options(), |_, _| ());
    let mut model = block_on(model).expect("a model that runs");
    block_on(start_vision(&mut model, tower.0, tower.1, |_| ())).expect("a tower");
    model
}

/// The folder of the model in the files.
fn folder(name: &str) -> Folder {
    Folder::of(&ImageFiles::of(name))
}

/// A reference, with pixels as the tower takes them.
struct Reference {
    /// Pixels of each part, how many rows they become, and those rows.
    parts: Vec<(Image, usize, Vec<f32>)>,
    prompt: Vec<i64>,
    last_logits: Vec<f32>,
}

impl Reference {
    fn of(name: &str, model: &Transformer) -> Reference {
        let json = ImageFiles::of(name).json("reference.json");
        let format = model.vision().unwrap().config().format();
        let list = |key: &str| json[key].as_array().unwrap().clone();
        let parts = list("images").into_iter().flat_map(|size| {
            let [width, height] = [0, 1].map(|at| size[at].as_u64().unwrap() as usize);
            format.parts(&image(width, height))
        });
        let pixels = parts.filter_map(|part| match part {
            Part::Pixels(pixels, rows) => Some((pixels, rows)),
            Part::Text(_) => None,
        });
        let pixels: Vec<(Image, usize)> = pixels.collect();
        let features = list("features");
        assert_eq!(pixels.len(), features.len());
        let parts = pixels.into_iter().zip(&features);
        let parts = parts.map(|((pixels, rows), features)| (pixels, rows, floats(features)));
        let prompt = list("prompt");
        Reference {
            parts: parts.collect(),
            prompt: prompt.iter().map(|id| id.as_i64().unwrap()).collect(),
            last_logits: floats(&json["last_logits"]),
        }
    }

    /// Negative ids are parts.
    fn prompt(&self) -> Prompt {
        let span = |&id: &i64| match usize::try_from(-id - 1) {
            Err(_) => Span::Tokens(vec![id as u32]),
            Ok(at) => {
                let (pixels, positions, _) = &self.parts[at];
                Span::Embeddings(Rc::new(Embeddings {
                    key: at as u128,
                    positions: *positions,
                    content: Content::Pixels(pixels.clone()),
                }))
            }
        };
        Prompt::new(self.prompt.iter().map(span))
    }
}

/// The logits after a prompt that is fed in parts with these ends.
fn logits(model: &mut Transformer, prompt: &Prompt, ends: &[usize]) -> Result<Vec<f32>, Error> {
    let mut memory = sequence(model);
    for &end in ends {
        let begin = memory.len_tokens;
        block_on(model.prefill(&mut memory, prompt.input(begin..end)))?;
    }
    let begin = memory.len_tokens;
    let mut rows = [Row {
        memory: &mut memory,
        input: prompt.input(begin..prompt.len()),
    }];
    let output = block_on(model.step(&mut rows, Chooser::Host))?;
    Ok(output.into_logits()?.remove(0))
}

#[test]
fn images_become_the_rows_and_the_logits_of_the_reference() {
    for name in &ImageFiles::names(false) {
        for (device, compute) in all_computes() {
            let mut model = model(&compute, name);
            let reference = Reference::of(name, &model);
            for (at, (pixels, rows, expected)) in reference.parts.iter().enumerate() {
                let found = block_on(model.vision_mut().unwrap().encode(pixels)).unwrap();
                assert_eq!(found.len(), rows * model.config().dim);
                let what = format!("{name}: rows of part {at} on {device}");
                assert_parity(&what, &found, expected, 0.02);
            }
            let found = logits(&mut model, &reference.prompt(), &[]).unwrap();
            let what = format!("{name}: logits on {device}");
            assert_parity(&what, &found, &reference.last_logits, 0.02);
        }
    }
}

/// Text model and tower of one folder, against the same references.
#[test]
fn folders_with_towers_meet_the_references() {
    for name in &ImageFiles::names(false) {
        let folder = folder(name);
        let text = block_on(Checkpoint::open(&folder, &options())).expect("a text model");
        let tower = block_on(Checkpoint::open_tower(&folder)).unwrap();
        let tower = tower.expect("a tower");
        for (device, compute) in all_computes() {
            let text = (&text.gguf, &text.source);
            let mut model = started(&compute, text, (&tower.gguf, &tower.source));
            let reference = Reference::of(name, &model);
            let found = logits(&mut model, &reference.prompt(), &[]).unwrap();
            let what = format!("{name}: logits of the folder on {device}");
            assert_parity(&what, &found, &reference.last_logits, 0.02);
        }
    }
}

/// A row would not see the first ones of its image in a shorter window.
#[test]
fn images_that_exceed_a_window_are_refused() {
    let [(mut gguf, source), tower] = ImageFiles::of("gemma3").ggufs();
    for (window, is_refused) in [(24u32, true), (25, false)] {
        let key = "gemma3.attention.sliding_window";
        gguf.metadata.insert(key, window);
        let model = load(Compute::reference(), &gguf, &source, options(), |_, _| ());
        let mut model = block_on(model).expect("a model that runs");
        let started = block_on(start_vision(&mut model, &tower.0, &tower.1, |_| ()));
        match started {
            Ok(()) => assert!(!is_refused),
            Err(error) => {
                assert!(is_refused, "{error}");
                assert!(matches!(error, Error::UnsupportedModel(_)), "{error}");
            }
        }
    }
}

/// To the last bit, and across the end of a page. All steps of an input of many tokens run the same kernels.
#[test]
fn a_prompt_may_be_divided_where_no_image_is() {
    for (device, compute) in all_computes() {
        let mut model = model(&compute, "gemma3");
        assert!(model.limits().whole_images);
        let prompt = Reference::of("gemma3", &model).prompt();
        let whole = logits(&mut model, &prompt, &[]).unwrap();
        // The images are at 50..75 and at 80..105.
        for ends in [&[30][..], &[50], &[50, 80], &[40, 75], &[110]] {
            let divided = logits(&mut model, &prompt, ends).unwrap();
            assert!(divided == whole, "{device}: {ends:?}");
        }
        for ends in [&[60][..], &[64], &[30, 90]] {
            let error = logits(&mut model, &prompt, ends).unwrap_err();
            assert!(matches!(error, Error::Internal(_)), "{device}: {ends:?}");
        }
        let mut memory = sequence(&model);
        let mut rows = [Row {
            memory: &mut memory,
            input: prompt.input(0..prompt.len()),
        }];
        let output = block_on(model.step(&mut rows, Chooser::Greedy { steps: 4 })).unwrap();
        let first = output.into_chosen().unwrap()[0][0].as_ref().unwrap().id;
        let best = (0..whole.len())
            .rev()
            .max_by(|a, b| whole[*a].total_cmp(&whole[*b]));
        assert_eq!(Some(first as usize), best, "{device}");
    }
}

/// The widths that a report names: that of the text model, and that of the models that its tower fits.
#[test]
fn an_inspection_tells_of_text_model_and_tower_of_a_folder() {
    // Models with a file for the tower.
    for name in ["gemma3", "idefics3"] {
        let folder = folder(name);
        let report = block_on(inspect(&folder, InspectionOptions::default())).unwrap();
        let model = report.model.expect("a text model").hyperparameters;
        let tower = report.projector.expect("a tower");
        let sizes = tower.hyperparameters.expect("a known family");
        assert_eq!(tower.kind.as_deref(), Some(name));
        assert_eq!(sizes.embedding_length, model.unwrap().dim);
        let stored: usize = folder.file("model.safetensors").len();
        assert_eq!(
            (report.file_bytes, report.container.files),
            (stored as u64, 1)
        );

        let alone = image_files::folder().join(format!("{name}.mmproj.gguf"));
        let alone = LocalFiles::at(alone).unwrap();
        let alone = block_on(inspect(&alone, InspectionOptions::default())).unwrap();
        assert!(alone.runs && alone.model.is_none() && alone.tokenizer.is_none());
        assert_eq!(alone.projector.unwrap().hyperparameters, Some(sizes));
    }
}

#[test]
fn a_tower_that_does_not_run_is_the_refusal_of_its_folder() {
    let folder = folder("gemma3");
    let path = "tests/parity/models/qwen3-hf/tokenizer.json";
    let tokenizer = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let mut config: Value = serde_json::from_slice(folder.file("config.json")).unwrap();
    config["vision_config"]["image_size"] = json!(15);
    let config = config.to_string().into_bytes();
    let folder = folder
        .with("tokenizer.json", tokenizer)
        .with("config.json", config);
    let report = block_on(inspect(&folder, InspectionOptions::default())).unwrap();
    let message = report.refusal.expect("a refusal").message;
    assert!(
        message.starts_with("projector:") || message.contains(": projector"),
        "{message}"
    );
}
