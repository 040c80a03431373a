//! Specification 4.5: the sampling fields and the sampler's parameters.

use super::*;
use crate::api::switches::MirostatTargetUnit;
use crate::engine::generation::{DryParams, MirostatParams, SamplingParams};
use crate::text::Tokenizer;
use crate::weights::Metadata;

const PIECES: [&str; 6] = ["▁", "a", ":", "b:c", "▁\n", "e*"];

/// Three control tokens, one per byte from 3 on, and [`PIECES`] from 259 on.
pub(super) fn tokenizer() -> Tokenizer {
    const CONTROL: i32 = 3;
    const BYTE: i32 = 6;
    let mut tokens = vec![
        ("<unk>".to_owned(), 2),
        ("<s>".to_owned(), CONTROL),
        ("</s>".to_owned(), CONTROL),
    ];
    tokens.extend((0..=255_u8).map(|byte| (format!("<0x{byte:02X}>"), BYTE)));
    tokens.extend(PIECES.map(|piece| (piece.to_owned(), 1)));
    let (strings, types): (Vec<String>, Vec<i32>) = tokens.into_iter().unzip();
    let mut metadata = Metadata::new();
    metadata.insert("tokenizer.ggml.model", "llama");
    metadata.insert("tokenizer.ggml.scores", vec![-1.0_f32; strings.len()]);
    metadata.insert("tokenizer.ggml.tokens", strings);
    metadata.insert("tokenizer.ggml.token_type", types);
    Tokenizer::from_gguf(&metadata).unwrap()
}

/// The token of a byte.
fn byte(byte: u8) -> u32 {
    3 + u32::from(byte)
}

fn params(members: &str) -> SamplingParams {
    params_with(members, &SamplingDefaults::default())
}

#[track_caller]
fn params_with(members: &str, model: &SamplingDefaults) -> SamplingParams {
    ok(members).sampling.params(model, &tokenizer()).unwrap()
}

#[test]
fn the_defaults_are_the_samplers() {
    let expected = SamplingParams {
        seed: 1,
        ..SamplingParams::default()
    };
    assert_eq!(params(r#""seed":1"#), expected);
    let expected = SamplingParams {
        logit_bias: vec![(7, -1.5), (0, 100.0)],
        repetition_penalty: 1.5,
        frequency_penalty: -2.0,
        presence_penalty: 0.5,
        temperature: 0.25,
        top_k: Some(7),
        top_p: 0.5,
        min_p: 0.125,
        seed: -1,
        ..SamplingParams::default()
    };
    let members = r#""logit_bias":{"7":-1.5,"0":100,"9":0},"repetition_penalty":1.5,
        "frequency_penalty":-2,"presence_penalty":0.5,"temperature":0.25,"top_k":7,"top_p":0.5,
        "min_p":0.125,"seed":-1"#;
    assert_eq!(params(members), expected);
}

#[test]
fn top_k_is_off_at_minus_one_zero_and_null() {
    for (members, top_k) in [
        (r#""top_k":-1"#, None),
        (r#""top_k":0"#, None),
        (r#""top_k":null"#, None),
        (r#""top_k":1"#, Some(1)),
    ] {
        assert_eq!(params(members).top_k, top_k);
    }
    assert!(params(r#""top_k":1e30"#).top_k > Some(1 << 30));
}

#[test]
fn the_models_defaults_fill_absent_fields() {
    let model = SamplingDefaults {
        temperature: Some(0.5),
        top_p: Some(0.75),
        top_k: Some(40),
        min_p: Some(0.25),
        repetition_penalty: Some(1.25),
        max_tokens: None,
    };
    let filled = params_with(r#""seed":3"#, &model);
    let expected = SamplingParams {
        temperature: 0.5,
        top_p: 0.75,
        top_k: Some(40),
        min_p: 0.25,
        repetition_penalty: 1.25,
        seed: 3,
        ..SamplingParams::default()
    };
    assert_eq!(filled, expected);
    let members =
        r#""temperature":1,"top_p":1,"top_k":0,"min_p":0,"repetition_penalty":1,"seed":3"#;
    let neutral = SamplingParams {
        seed: 3,
        ..SamplingParams::default()
    };
    assert_eq!(params_with(members, &model), neutral);
}

#[test]
fn case_026_seeds() {
    for seed in [i64::MIN, -1, 0, i64::MAX] {
        let sampling = ok(&format!(r#""seed":{seed}"#)).sampling;
        assert_eq!(sampling.seed(), Ok(seed));
    }
    let sampling = ok("").sampling;
    assert_ne!(sampling.seed(), sampling.seed());
    assert_ne!(params("").seed, params("").seed);
}

#[test]
fn case_024_logit_bias_and_the_vocabulary() {
    let sampling = ok(r#""logit_bias":{"7":0,"3":1}"#).sampling;
    assert_eq!(sampling.check_vocabulary(8), Ok(()));
    // An id with a bias of 0 has to exist as well.
    let result = sampling.check_vocabulary(7);
    is_fault(result, OutOfRange, "logit_bias", "7 of 7");
    assert_eq!(ok("").sampling.check_vocabulary(0), Ok(()));
    let sampling = ok(r#""logit_bias":{"4294967295":1}"#).sampling;
    let result = sampling.check_vocabulary(300_000);
    is_fault(result, OutOfRange, "logit_bias", "the largest id");
}

#[test]
fn tiny_repetition_penalties_do_not_overflow() {
    for members in [
        r#""repetition_penalty":1e-300"#,
        r#""repetition_penalty":1e-45"#,
    ] {
        let penalty = params(members).repetition_penalty;
        assert!(penalty > 0.0 && (1e4 / penalty / SamplingParams::GREEDY_BELOW).is_finite());
    }
    assert_eq!(
        params(r#""repetition_penalty":0.01"#).repetition_penalty,
        0.01
    );
}

#[test]
fn mirostat_takes_a_perplexity_or_bits() {
    let mirostat = |members: &str, switches: &Switches| {
        let sampling = ok_with(members, switches).sampling;
        let params = sampling.params(&SamplingDefaults::default(), &tokenizer());
        params.unwrap().mirostat
    };
    let perplexity = Switches::default();
    let expected = |target_bits, learning_rate| {
        Some(MirostatParams {
            target_bits,
            learning_rate,
        })
    };
    let target = r#""mirostat_target":4"#;
    assert_eq!(mirostat(target, &perplexity), expected(2.0, 0.1));
    let one = r#""mirostat_target":1,"mirostat_lr":0.5"#;
    assert_eq!(mirostat(one, &perplexity), expected(0.0, 0.5));
    assert_eq!(mirostat(r#""mirostat_lr":0.5"#, &perplexity), None);
    let bits = Switches {
        mirostat_target_unit: MirostatTargetUnit::Bits,
        ..Switches::default()
    };
    assert_eq!(mirostat(target, &bits), expected(4.0, 0.1));
    let half = r#""mirostat_target":0.5"#;
    assert_eq!(mirostat(half, &bits), expected(0.5, 0.1));
    for target in ["0", "-1"] {
        let members = format!(r#""mirostat_target":{target}"#);
        fails_with(OutOfRange, "mirostat_target", &members, &bits);
    }
    let huge = mirostat(r#""mirostat_target":1e300,"mirostat_lr":1e-300"#, &bits).unwrap();
    assert!(huge.target_bits.is_finite() && huge.learning_rate > 0.0);
}

fn dry(members: &str) -> Option<DryParams> {
    params(members).dry
}

#[test]
fn dry_runs_only_with_a_multiplier() {
    assert_eq!(dry(r#""dry_base":3,"dry_allowed_length":0"#), None);
    assert_eq!(dry(r#""dry_multiplier":0,"dry_base":3"#), None);
    let params = dry(r#""dry_multiplier":0.75"#).unwrap();
    assert_eq!((params.multiplier, params.base), (0.75, 1.75));
    assert_eq!(params.allowed_length, 2);
    let params = dry(r#""dry_multiplier":2,"dry_base":3,"dry_allowed_length":0"#).unwrap();
    assert_eq!((params.base, params.allowed_length), (3.0, 0));
    // The other fields are validated anyway.
    all_fail(
        OutOfRange,
        &[r#""dry_base":0"#, r#""dry_allowed_length":-1"#],
    );
    all_fail(
        InvalidValue,
        &[
            r#""dry_sequence_breakers":[""]"#,
            r#""dry_sequence_breakers":["a",""]"#,
        ],
    );
}

#[test]
fn dry_numbers_stay_finite_and_above_zero() {
    for members in [
        r#""dry_multiplier":1e300,"dry_base":1e300"#,
        r#""dry_multiplier":1e-300"#,
    ] {
        let params = dry(members).unwrap();
        assert!(params.multiplier > 0.0 && params.multiplier.is_finite());
        assert!(params.base >= 1.0 && params.base.is_finite());
        for repeats in [0, 1, 48] {
            let penalty = params.multiplier * params.base.powi(repeats);
            assert!(!penalty.is_nan(), "{members}");
        }
    }
}

#[test]
fn dry_breakers_are_the_ids_that_contain_one() {
    let breakers = |json: &str| {
        let members = format!(r#""dry_multiplier":1,"dry_sequence_breakers":{json}"#);
        dry(&members).unwrap().breakers.to_vec()
    };
    let piece = |piece: &str| 259 + PIECES.iter().position(|p| *p == piece).unwrap() as u32;
    assert!(breakers("[]").is_empty());
    let colon = [byte(b':'), piece(":"), piece("b:c")];
    assert_eq!(breakers(r#"[":"]"#), colon);
    assert_eq!(breakers(r#"["b:","b:c"]"#), [piece("b:c")]);
    assert_eq!(
        breakers(r#"[":c","\n"]"#),
        [byte(b'\n'), piece("b:c"), piece("▁\n")]
    );
    // "▁" is a space, and a special token has its literal text.
    assert_eq!(breakers(r#"["s>"]"#), [1, 2]);
    assert_eq!(breakers(r#"[" \n"]"#), [piece("▁\n")]);
    let default = dry(r#""dry_multiplier":1"#).unwrap().breakers;
    let mut expected = vec![byte(b'\n'), byte(b'"'), byte(b'*'), byte(b':')];
    expected.extend([":", "b:c", "▁\n", "e*"].map(piece));
    expected.sort_unstable();
    assert_eq!(*default, expected);
    let null = breakers("null");
    assert_eq!(null, expected);
}

#[test]
fn a_breaker_over_several_tokens_acts_through_its_last() {
    let members = r#""dry_multiplier":1,"dry_sequence_breakers":["aé","a:"]"#;
    let breakers = dry(members).unwrap().breakers;
    let colon = 259 + 2;
    assert_eq!(*breakers, [byte(0xA9), colon]);
}

#[test]
fn the_bounds_of_mistralrs_are_open() {
    let open = profile("mistralrs");
    let members = r#""temperature":5,"frequency_penalty":-3,"presence_penalty":2.5,
        "repetition_penalty":9,"logit_bias":{"7":1000,"8":-1e300},"best_of":21"#;
    let plan = ok_with(members, &open);
    let params = plan
        .sampling
        .params(&SamplingDefaults::default(), &tokenizer());
    let params = params.unwrap();
    assert_eq!((params.temperature, params.repetition_penalty), (5.0, 9.0));
    assert_eq!(
        (params.frequency_penalty, params.presence_penalty),
        (-3.0, 2.5)
    );
    // Large enough to decide, small enough to keep logits finite.
    assert_eq!(params.logit_bias, [(7, 1000.0), (8, -1e6)]);
    assert_eq!(plan.best_of, 21);
    fails_with(OutOfRange, "temperature", r#""temperature":-1"#, &open);
    fails_with(
        OutOfRange,
        "repetition_penalty",
        r#""repetition_penalty":0"#,
        &open,
    );
}
