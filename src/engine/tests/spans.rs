//! Prompts with embeddings are fed and cached like tokens, and distinguished by their content.

use super::super::prompt::{Content, Embeddings, Prompt, Span};
use super::fake_model::EMBEDDING_WIDTH;
use super::*;
use crate::images::Image;
use crate::sample::DryParams;
use crate::{Error, RequestFault};

/// An image whose content follows from its key.
pub(super) fn image(key: u128, positions: usize) -> Span {
    let values = 0..positions * EMBEDDING_WIDTH;
    Span::Embeddings(Rc::new(Embeddings {
        key,
        positions,
        content: Content::Rows(values.map(|i| (key as usize * 100 + i) as f32).collect()),
    }))
}

/// Same as [`image`], as pixels.
pub(super) fn pixels(key: u128, positions: usize) -> Span {
    let content = Content::Pixels(Image {
        width: 1,
        height: 1,
        rgb: vec![key as u8; 3],
    });
    Span::Embeddings(Rc::new(Embeddings {
        key: key + 1000,
        positions,
        content,
    }))
}

/// `before` tokens, an image of `positions`, `after` tokens.
fn prompt(before: usize, key: u128, positions: usize, after: usize) -> Prompt {
    let tokens = |count: usize| Span::Tokens((0..count as u32).map(|i| i * 7 % 50).collect());
    Prompt::new([tokens(before), image(key, positions), tokens(after)])
}

fn request(prompt: Prompt, candidates: u32) -> Generation {
    Generation {
        prompt,
        candidates,
        sampling: sampled(3),
        ..generation(0, 1, 12)
    }
}

fn bench(chunk: usize) -> Bench {
    let limits = EngineLimits {
        prefill_chunk_tokens: chunk,
        ..EngineLimits::default()
    };
    Bench::new(FakeModel::new(64, 64, 4), limits)
}

/// Runs a request; returns how many of its prompt's positions were cached.
#[track_caller]
fn run(bench: &mut Bench, request: &Generation) -> usize {
    let mut events = bench.submit_all(std::slice::from_ref(request));
    let found = bench.read_to_end(&mut events);
    assert_eq!(found, expected_all(std::slice::from_ref(request), 64));
    assert!(bench.all_memory_is_free());
    events[0][0].cached_prompt_tokens().get()
}

#[test]
fn embeddings_are_fed_in_their_places_however_the_prompt_is_cut() {
    for chunk in [4, 8, 512] {
        for (before, positions, after) in [(3, 7, 5), (0, 6, 1), (8, 8, 8), (5, 1, 0)] {
            for candidates in [1, 3] {
                let prompt = prompt(before, 1, positions, after);
                run(&mut bench(chunk), &request(prompt, candidates));
            }
        }
    }
}

/// Chunks, cached pages and prepared parts end before or after an image, and all tokens are fed by the same kind of step.
#[test]
fn images_are_not_divided_where_they_are_seen_whole() {
    let tokens = |count: usize| Span::Tokens((0..count as u32).map(|i| i * 7 % 50).collect());
    let prompt = |before: usize, positions: usize, between: usize, after: usize| {
        let [one, other] = [1, 2].map(|key| pixels(key, positions));
        Prompt::new([tokens(before), one, tokens(between), other, tokens(after)])
    };
    let model = || {
        let mut model = FakeModel::new(64, 64, 4);
        model.whole_images = true;
        model.few_tokens = 3;
        model
    };
    for chunk in [4, 8, 512] {
        let limits = EngineLimits {
            prefill_chunk_tokens: chunk,
            ..EngineLimits::default()
        };
        for sizes in [
            (3, 9, 2, 12),
            (4, 8, 1, 4),
            (0, 5, 1, 1),
            (1, 2, 7, 3),
            (5, 11, 9, 0),
        ] {
            let (before, positions, between, after) = sizes;
            let whole = prompt(before, positions, between, after);
            let alone = |prompt: &Prompt| {
                let request = request(prompt.clone(), 1);
                alone(model(), EngineLimits::default(), &[request])[0][0].clone()
            };
            let mut bench = Bench::new(model(), limits.clone());
            let shorter = whole.first(before + positions + 1);
            bench.handle.prepare({
                let whole = whole.clone();
                move || Some(whole)
            });
            for prompt in [&shorter, &whole, &whole] {
                let mut events = bench.submit(&request(prompt.clone(), 1));
                assert!(bench.settle().is_pending());
                let found = read_all(&mut events);
                assert_eq!(found, alone(prompt), "{sizes:?} in chunks of {chunk}");
            }
        }
    }
}

#[test]
fn the_content_decides() {
    let ids = |key| ids_of(&expected_events(&request(prompt(3, key, 7, 5), 1), 64));
    assert_eq!(ids(1), ids(1));
    assert_ne!(ids(1), ids(2));
}

#[test]
fn kept_pages_are_found_by_ids_and_content() {
    let mut bench = bench(512);
    let first = request(prompt(6, 1, 10, 9), 1);
    assert_eq!(run(&mut bench, &first), 0);
    assert_eq!(run(&mut bench, &first), 24);
    // The same text before and after another image: only the page before the image is reused.
    assert_eq!(run(&mut bench, &request(prompt(6, 2, 10, 9), 1)), 4);
    // The same image one position later.
    assert_eq!(run(&mut bench, &request(prompt(7, 1, 10, 9), 1)), 4);
    // The same beginning, another end.
    assert_eq!(run(&mut bench, &request(prompt(6, 1, 10, 20), 1)), 24);
}

/// Equal images are not a repetition, and no token takes their place.
#[test]
fn samplers_see_no_token_in_the_place_of_an_image() {
    let twice = Prompt::new([
        image(1, 6),
        Span::Tokens(vec![4, 5]),
        image(1, 6),
        Span::Tokens(vec![9]),
    ]);
    let mut ids = twice.ids().to_vec();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), twice.len(), "no position equals another");
    let mut request = request(twice, 2);
    request.sampling.repetition_penalty = 1.3;
    request.sampling.dry = Some(DryParams {
        multiplier: 2.0,
        base: 1.75,
        allowed_length: 1,
        breakers: [].into(),
    });
    run(&mut bench(8), &request);
}

#[test]
fn unsupported_embeddings_are_refused_by_name() {
    let bench = bench(8);
    let scored = Generation {
        prompt_scores: Some(1),
        ..request(prompt(3, 1, 2, 1), 1)
    };
    let fault = match bench.handle.submit(vec![scored]) {
        Err(Error::Request { fault, param, .. }) => (fault, param),
        other => panic!("{other:?}"),
    };
    let expected = (RequestFault::UnsupportedParameter, Some("prompt".into()));
    assert_eq!(fault, expected);
    let narrow = Span::Embeddings(Rc::new(Embeddings {
        key: 1,
        positions: 2,
        content: Content::Rows(vec![0.0; 3]),
    }));
    let narrow = request(Prompt::new([narrow, Span::Tokens(vec![1])]), 1);
    let submitted = bench.handle.submit(vec![narrow]);
    assert!(matches!(submitted, Err(Error::Internal(_))));
    assert_eq!(bench.handle.active_generations(), 0);
}

#[test]
fn a_model_of_text_takes_no_embeddings() {
    let mut model = FakeModel::new(64, 64, 4);
    model.takes_embeddings = false;
    let bench = Bench::new(model, EngineLimits::default());
    match bench.handle.submit(vec![request(prompt(3, 1, 2, 1), 1)]) {
        Err(Error::Request { fault, message, .. }) => {
            assert_eq!(fault, RequestFault::UnsupportedParameter);
            assert!(message.contains("embeddings"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.handle.active_generations(), 0);
}
