//! Images in prompts: rows in place of embeddings, the rows of a vision tower, and the tokens that follow an image,
//! against the references of the shared models.

use std::path::Path;
use std::rc::Rc;

use inpage::{
    engine::{
        CausalModel, Chooser, Row, SequenceMemory,
        generation::{Content, Embeddings, Prompt, Span},
    },
    images::Image,
    model::{LoadOptions, Transformer},
    runtime::start_vision,
    weights::{FileSource, Gguf},
};
use pollster::block_on;

use crate::{
    fixture::{Compute, Feed, all_computes, ids, json, load, npy, sequence},
    references::assert_parity,
    shared_models,
};

fn open(path: &Path) -> (Gguf, FileSource) {
    let source = FileSource::open(path).expect("a model");
    (block_on(Gguf::read(&source)).expect("a GGUF"), source)
}

fn model(compute: &Compute, path: &Path) -> Transformer {
    let (gguf, source) = open(path);
    let options = LoadOptions {
        context_tokens: Some(512),
        takes_embeddings: true,
        ..LoadOptions::default()
    };
    block_on(load(compute.clone(), &gguf, &source, options, |_, _| ())).expect("a model that runs")
}

/// The logits after a prompt, fed in parts of at most `part` positions.
fn logits(model: &mut Transformer, prompt: &Prompt, part: usize) -> Vec<f32> {
    let mut memory: SequenceMemory = sequence(model);
    let last = (prompt.len() - 1) / part * part;
    for start in (0..last).step_by(part) {
        block_on(model.prefill(&mut memory, prompt.input(start..start + part))).unwrap();
    }
    let mut rows = [Row {
        memory: &mut memory,
        input: prompt.input(last..prompt.len()),
    }];
    let output = block_on(model.step(&mut rows, Chooser::Host)).unwrap();
    output.into_logits().unwrap().remove(0)
}

#[test]
fn rows_stand_in_for_embeddings() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let path = folder.join("tiny/llama3-F16.gguf");
    let (gguf, source) = open(&path);
    let table = gguf.tensor("token_embd.weight").unwrap();
    let dim = table.shape[0] as usize;
    let table = block_on(table.read_f32(&source)).unwrap();
    let tokens: Vec<u32> = (0..300u32).map(|i| (i * 37 + 5) % 7000).collect();
    let rows = |ids: &[u32]| {
        let rows = ids.iter().flat_map(|id| {
            let start = *id as usize * dim;
            table[start..start + dim].to_vec()
        });
        Span::Embeddings(Rc::new(Embeddings {
            key: 1,
            positions: ids.len(),
            content: Content::Rows(rows.collect()),
        }))
    };
    let text = |ids: &[u32]| Span::Tokens(ids.to_vec());
    for (device, compute) in all_computes() {
        let mut model = model(&compute, &path);
        let expected = logits(&mut model, &tokens.clone().into(), 512);
        let mut memory = sequence(&model);
        let plain = block_on(model.feed(&mut memory, &tokens)).unwrap();
        assert_eq!(plain, expected, "{device}");
        for (at, prompt) in [
            (
                "inside, across the steps of a long prompt",
                vec![
                    text(&tokens[..3]),
                    rows(&tokens[3..290]),
                    text(&tokens[290..]),
                ],
            ),
            (
                "several, at the beginning and at the end",
                vec![
                    rows(&tokens[..1]),
                    text(&tokens[1..150]),
                    rows(&tokens[150..160]),
                    rows(&tokens[160..200]),
                    text(&tokens[200..290]),
                    rows(&tokens[290..]),
                ],
            ),
        ] {
            let prompt = Prompt::new(prompt);
            // To the last bit: the kernels after the first one are the same.
            assert!(
                logits(&mut model, &prompt, 512) == expected,
                "{device}: {at}"
            );
            let again = logits(&mut model, &prompt, 512);
            assert!(again == expected, "{device}: {at}, a second time");
        }
        // The tokens chosen after rows are in the table again.
        let prompt = Prompt::new([rows(&tokens)]);
        let mut memory = sequence(&model);
        let mut greedy = |model: &mut Transformer, prompt: &Prompt| {
            memory.len_tokens = 0;
            let mut rows = [Row {
                memory: &mut memory,
                input: prompt.input(0..prompt.len()),
            }];
            let output = block_on(model.step(&mut rows, Chooser::Greedy { steps: 5 })).unwrap();
            let chosen = output.into_chosen().unwrap().remove(0);
            chosen
                .into_iter()
                .map(|it| it.unwrap().id)
                .collect::<Vec<_>>()
        };
        let of_rows = greedy(&mut model, &prompt);
        assert_eq!(
            of_rows,
            greedy(&mut model, &tokens.clone().into()),
            "{device}"
        );
    }
}

/// The image of the reference.
fn pixels(folder: &Path) -> Image {
    Image {
        width: 128,
        height: 128,
        rgb: std::fs::read(folder.join("smolvlm/img_128x128_rgb8.bin")).unwrap(),
    }
}

#[test]
fn an_image_becomes_the_rows_and_the_tokens_of_the_reference() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let folder = folder.join("tiny");
    let reference = json(&folder.join("smolvlm/ref.json"));
    let (tokens, greedy) = (ids(&reference["ids"]), ids(&reference["greedy_next"]));
    let features = npy(&folder.join("smolvlm/ref_image_features.npy"));
    let features = &features[features.len() - 16 * 256..];
    let first = tokens.iter().position(|id| *id == 7939).unwrap();
    for (device, compute) in all_computes() {
        let mut model = model(&compute, &folder.join("smolvlm-F16.gguf"));
        let (gguf, source) = open(&folder.join("mmproj-smolvlm-F16.gguf"));
        block_on(start_vision(&mut model, &gguf, &source, |_| ())).unwrap();
        let image = |key| {
            Span::Embeddings(Rc::new(Embeddings {
                key,
                positions: 16,
                content: Content::Pixels(pixels(&folder)),
            }))
        };
        let vision = model.vision_mut().unwrap();
        let rows = block_on(vision.encode(&pixels(&folder))).unwrap();
        assert_parity(&format!("features on {device}"), &rows, features, 0.02);
        let prompt = Prompt::new([
            Span::Tokens(tokens[..first].to_vec()),
            image(1),
            Span::Tokens(tokens[first + 16..].to_vec()),
        ]);
        for part in [512, 7] {
            let logits = logits(&mut model, &prompt, part);
            let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b]));
            assert_eq!(
                best,
                greedy.last().map(|id| *id as usize),
                "{device}, {part}"
            );
        }
    }
}
