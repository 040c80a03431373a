//! Fields of single vendors (specification 4.3 to 4.6, 9.6): vLLM, llama.cpp, Fireworks.

use serde_json::json;

use super::sampling::tokenizer;
use super::*;
use crate::api::fields::{KeptTokens, PromptPart, PromptTokens, TruncationSide};
use crate::grammar::{GrammarSource, Whitespace};

#[test]
fn what_ends_a_choice_and_when() {
    let length = ok(r#""stop_token_ids":[7,8.0],"min_tokens":3,"max_tokens":3"#).length;
    assert_eq!(
        (&length.stop_token_ids[..], length.min_tokens),
        (&[7, 8][..], 3)
    );
    // The default of max_tokens counts, too.
    assert_eq!(ok(r#""min_tokens":16"#).length.min_tokens, 16);
    let context = profile("mistralrs");
    assert_eq!(
        ok_with(r#""min_tokens":999"#, &context).length.min_tokens,
        999
    );
    let ids = vec!["1"; 1025].join(",");
    fails(OutOfRange, &format!(r#""stop_token_ids":[{ids}]"#));
}

#[test]
fn restrictions_are_read() {
    let restrictions = ok(r#""allowed_token_ids":[1,2],"bad_words":["a b"," c"]"#).restrictions;
    assert_eq!(restrictions.allowed_token_ids, Some(vec![1, 2]));
    assert_eq!(restrictions.bad_words, ["a b", " c"]);
    fails(InvalidValue, r#""allowed_token_ids":[]"#);
    fails(InvalidValue, r#""bad_words":[""]"#);
    let words = vec![r#""a""#; 1025].join(",");
    fails(OutOfRange, &format!(r#""bad_words":[{words}]"#));
}

#[test]
fn texts_of_fields_are_bounded() {
    for (bytes, is_accepted) in [(32 << 10, true), (33 << 10, false)] {
        let texts = format!(r#""{}","{}""#, "a".repeat(bytes), "b".repeat(bytes));
        let pairs = format!(
            r#"["{}",1],["{}",false]"#,
            "a".repeat(bytes),
            "b".repeat(bytes)
        );
        for members in [
            format!(r#""bad_words":[{texts}]"#),
            format!(r#""dry_sequence_breakers":[{texts}]"#),
            format!(r#""logit_bias":[{pairs}]"#),
        ] {
            match is_accepted {
                true => drop(ok(&members)),
                false => fails(OutOfRange, &members),
            }
        }
    }
}

#[test]
fn prompts_are_cut_and_completed_as_asked() {
    let read = |members: &str| ok(members).prompt_tokens;
    let all = PromptTokens {
        add_special: true,
        kept: KeptTokens::All,
    };
    assert_eq!(read(""), all);
    let cut = read(r#""add_special_tokens":false,"truncate_prompt_tokens":7"#);
    assert!(!cut.add_special);
    assert_eq!(cut.kept, KeptTokens::AtMost(7, TruncationSide::Left));
    assert_eq!(
        read(r#""truncate_prompt_tokens":-1,"truncation_side":"right""#).kept,
        KeptTokens::Fitting(TruncationSide::Right)
    );
}

#[test]
fn prompts_and_ids_are_listed_as_asked() {
    let logprobs = ok(r#""prompt_logprobs":2,"return_token_ids":true"#).logprobs;
    assert_eq!((logprobs.prompt, logprobs.token_ids), (Some(2), true));
    assert_eq!((logprobs.top, logprobs.tokens_as_ids), (None, false));
}

/// The source of the constraint, its field, and whether it is a schema.
fn source(members: &str) -> (GrammarSource, &'static str, bool) {
    match ok(members).constraint {
        Constraint::Grammar {
            source,
            param,
            is_schema,
        } => (source, param, is_schema),
        other => panic!("{members}: {other:?}"),
    }
}

#[test]
fn structured_outputs_in_every_form() {
    let schema = json!({"type": "integer"});
    let spaced = |whitespace| GrammarSource::SpacedJsonSchema {
        schema: schema.clone(),
        whitespace,
    };
    for (kind, value, expected, is_schema) in [
        ("json", schema.clone(), spaced(Whitespace::Limited), true),
        (
            "json",
            json!(schema.to_string()),
            spaced(Whitespace::Limited),
            true,
        ),
        (
            "regex",
            json!("a+"),
            GrammarSource::Regex("a+".into()),
            false,
        ),
        (
            "choice",
            json!(["a", "b"]),
            GrammarSource::Regex("a|b".into()),
            false,
        ),
        (
            "grammar",
            json!("start: \"a\""),
            GrammarSource::Lark("start: \"a\"".into()),
            false,
        ),
        (
            "grammar",
            json!("root ::= \"a\""),
            GrammarSource::Gbnf("root ::= \"a\"".into()),
            false,
        ),
    ] {
        let new = source(
            &format!(r#""structured_outputs":{{"{kind}":{value},"regex2":null}}"#)
                .replace(r#","regex2":null"#, ""),
        );
        assert_eq!(new, (expected.clone(), "structured_outputs", is_schema));
        let (old, param, _) = source(&format!(r#""guided_{kind}":{value}"#));
        assert_eq!((old, param), (expected, &*format!("guided_{kind}")));
    }
    let (compact, ..) =
        source(r#""structured_outputs":{"json":{"type":"integer"},"disable_any_whitespace":true}"#);
    assert_eq!(compact, spaced(Whitespace::None));
    let pattern = Whitespace::Pattern(" ?".into());
    let (own, ..) =
        source(r#""structured_outputs":{"json":{"type":"integer"},"whitespace_pattern":" ?"}"#);
    assert_eq!(own, spaced(pattern.clone()));
    let (own, ..) = source(
        r#""guided_json":{"type":"integer"},"guided_whitespace_pattern":" ?","guided_decoding_backend":"x""#,
    );
    assert_eq!(own, spaced(pattern));
    let (object, ..) = source(r#""structured_outputs":{"json_object":true}"#);
    let is_object = |source| matches!(source, GrammarSource::SpacedJsonSchema { schema, .. } if schema == json!({"type": "object"}));
    assert!(is_object(object));
    for nothing in ["{}", r#"{"json_object":false}"#, r#"{"json":null}"#] {
        let plan = ok(&format!(r#""structured_outputs":{nothing}"#));
        assert_eq!(plan.constraint, Constraint::None);
    }
}

#[test]
fn wrong_structured_outputs() {
    for members in [
        r#""structured_outputs":{"regex":"a","choice":["a"]}"#,
        r#""structured_outputs":{"choice":[]}"#,
        r#""structured_outputs":{"jsn":{}}"#,
        r#""guided_choice":[]"#,
    ] {
        fails(InvalidValue, members);
    }
    fails(InvalidSchema, r#""guided_json":"{""#);
    fails(InvalidSchema, r#""structured_outputs":{"json":"3"}"#);
    fails(
        UnsupportedParameter,
        r#""structured_outputs":{"structural_tag":"{}"}"#,
    );
    // Objects are closed unless a switch opens them.
    ok(r#""structured_outputs":{"json":{},"disable_additional_properties":true}"#);
    ok(
        r#""structured_outputs":{"json":{},"disable_additional_properties":false,"disable_fallback":true}"#,
    );
    for (later, members) in [
        (
            "structured_outputs",
            r#""structured_outputs":{"regex":"a"},"grammar":{"type":"regex","value":"a"}"#,
        ),
        (
            "guided_regex",
            r#""structured_outputs":{"regex":"a"},"guided_regex":"b""#,
        ),
        (
            "guided_choice",
            r#""guided_regex":"a","guided_choice":["b"]"#,
        ),
        (
            "guided_json",
            r#""response_format":{"type":"json_object"},"guided_json":{}"#,
        ),
    ] {
        fails_at(ConflictingParameters, later, members);
    }
    let forced = r#""guided_regex":"a","tool_choice":"required","tools":[{"type":"function","function":{"name":"f"}}]"#;
    fails_at(ConflictingParameters, "tool_choice", forced);
}

/// `guidance` sends its grammar in the form of each version of vLLM.
#[test]
fn the_same_constraint_may_be_given_in_several_forms() {
    let twice =
        r#""structured_outputs":{"grammar":"start: \"a\""},"guided_grammar":"start: \"a\"""#;
    let once = r#""structured_outputs":{"grammar":"start: \"a\""}"#;
    assert_eq!(ok(twice).constraint, ok(once).constraint);
}

#[test]
fn n_predict_is_max_tokens_or_the_context() {
    let length = |members: &str| {
        let length = ok(members).length;
        let max_tokens = length.max_tokens.map(|given| given.tokens);
        (max_tokens, length.fills_context)
    };
    assert_eq!(length(r#""n_predict":7"#), (Some(7), false));
    assert_eq!(length(r#""n_predict":-1"#), (None, true));
    assert_eq!(length(r#""n_predict":7,"max_tokens":7"#), (Some(7), false));
    assert_eq!(
        ok(r#""n_predict":-1,"min_tokens":99"#).length.min_tokens,
        99
    );
    for members in [
        r#""n_predict":7,"max_tokens":8"#,
        r#""n_predict":-1,"max_tokens":8"#,
        r#""n_predict":7,"max_completion_tokens":8"#,
    ] {
        fails_at(ConflictingParameters, "n_predict", members);
    }
}

#[test]
fn a_name_in_logit_bias_may_be_a_text() {
    let biases = |members: &str| {
        let sampling = ok(members).sampling;
        let params = sampling.params(&SamplingDefaults::default(), &tokenizer());
        params.unwrap().logit_bias
    };
    let mut by_name = biases(r#""logit_bias":{"a":1.5,"7":2}"#);
    let mut as_pairs = biases(r#""logit_bias":[["a",1.5],[7,2]]"#);
    by_name.sort_by_key(|(id, _)| *id);
    as_pairs.sort_by_key(|(id, _)| *id);
    assert!(by_name.len() >= 2);
    assert_eq!(by_name, as_pairs);
    for members in [r#""logit_bias":{"-":1}"#, r#""logit_bias":{" 1":1}"#] {
        ok(members);
    }
    fails_at(InvalidValue, "logit_bias", r#""logit_bias":{"":1}"#);
}

#[test]
fn repeat_penalty_is_repetition_penalty() {
    let penalty = |members: &str| {
        let params = ok(members)
            .sampling
            .params(&SamplingDefaults::default(), &tokenizer());
        params.unwrap().repetition_penalty
    };
    assert_eq!(penalty(r#""repeat_penalty":1.5"#), 1.5);
    assert_eq!(
        penalty(r#""repeat_penalty":1.5,"repetition_penalty":1.5"#),
        1.5
    );
    fails_at(
        ConflictingParameters,
        "repeat_penalty",
        r#""repeat_penalty":1.5,"repetition_penalty":1.25"#,
    );
}

#[test]
fn biases_as_pairs() {
    let tokenizer = tokenizer();
    let ids = |text: &str| tokenizer.encode(text, false).unwrap();
    let sampling =
        ok(r#""logit_bias":[[7,1.5],["z",-2],[7,1],[8,false],["q",false],[9,0]]"#).sampling;
    let params = sampling
        .params(&SamplingDefaults::default(), &tokenizer)
        .unwrap();
    let mut expected = vec![(7, 2.5)];
    expected.extend(ids("z").into_iter().map(|id| (id, -2.0)));
    assert_eq!(params.logit_bias, expected);
    assert_eq!(
        sampling.banned(&tokenizer).unwrap(),
        [vec![8], ids("q")].concat()
    );
    fails(InvalidValue, r#""logit_bias":[["",1]]"#);
    let many = vec!["[1,1]"; 1025].join(",");
    fails(OutOfRange, &format!(r#""logit_bias":[{many}]"#));
    assert!(sampling.check_vocabulary(8).is_err() && sampling.check_vocabulary(10).is_ok());
}

#[test]
fn llama_cpps_constraints() {
    let schema = json!({"type": "integer"});
    let expected = GrammarSource::JsonSchema(schema.clone());
    assert_eq!(
        source(&format!(r#""json_schema":{schema}"#)),
        (expected, "json_schema", true)
    );
    let text = "root ::= [a-z]+";
    let expected = GrammarSource::Gbnf(text.to_owned());
    assert_eq!(
        source(&format!(r#""grammar":"{text}""#)),
        (expected, "grammar", false)
    );
    let both = r#""grammar":"root ::= [a]","json_schema":{}"#;
    fails_at(ConflictingParameters, "json_schema", both);
}

#[test]
fn mixed_prompts_need_their_switch() {
    let mixed = profile("llamacpp");
    let prompts = |prompt: &str| {
        let body = format!(r#"{{"model":"m","prompt":{prompt}}}"#);
        parse_body(body.as_bytes(), &mixed).map(|(plan, _)| plan.prompts)
    };
    let text = |text: &str| PromptPart::Text(text.to_owned());
    let id = PromptPart::Token;
    let parts = |parts: Vec<PromptPart>| Prompt::Mixed(parts);
    let whole = |text: &str| Prompt::Text(text.to_owned());
    for (prompt, expected) in [
        (r#"[1,"a",2]"#, vec![parts(vec![id(1), text("a"), id(2)])]),
        (
            r#"["a","b",2]"#,
            vec![parts(vec![text("a"), text("b"), id(2)])],
        ),
        (r#"["a","b"]"#, vec![whole("a"), whole("b")]),
        ("[1,2]", vec![Prompt::Tokens(vec![1, 2])]),
        (
            r#"["a",[1,2]]"#,
            vec![whole("a"), Prompt::Tokens(vec![1, 2])],
        ),
        (
            r#"[[1,"a"],"b",["c"]]"#,
            vec![
                parts(vec![id(1), text("a")]),
                whole("b"),
                parts(vec![text("c")]),
            ],
        ),
    ] {
        assert_eq!(prompts(prompt).unwrap(), expected, "{prompt}");
    }
    for wrong in [
        r#"[1,[2]]"#,
        r#"[[1],2]"#,
        r#"["a",null]"#,
        "[[[1]]]",
        "[[]]",
        "[]",
    ] {
        is_fault(prompts(wrong), InvalidValue, "prompt", wrong);
    }
    let many = format!("[{}]", vec![r#""a""#; 129].join(","));
    is_fault(prompts(&many), OutOfRange, "prompt", &many);
    let long = format!(r#"[{},1]"#, vec![r#""a""#; 129].join(","));
    assert_eq!(prompts(&long).unwrap().len(), 1);
    let body = br#"{"model":"m","prompt":["a",1]}"#;
    is_fault(
        parse_body(body, &Switches::default()),
        InvalidValue,
        "prompt",
        "mixed",
    );
}

#[test]
fn what_changes_nothing_is_accepted() {
    for name in crate::api::fields::vendors::VendorFields::NAMES {
        for value in ["1", "true", r#""x""#, "{}", "[]"] {
            for vendor in ["openai", "fireworks"] {
                ok_with(&format!(r#""{name}":{value}"#), &profile(vendor));
            }
        }
    }
    for members in [
        r#""use_beam_search":false,"length_penalty":1"#,
        r#""xtc_probability":0,"xtc_threshold":0.1"#,
        r#""xtc_threshold":0.6"#,
        r#""dynatemp_range":0,"dynatemp_exponent":3"#,
        r#""dynatemp_exponent":1.0"#,
        r#""mirostat":0,"mirostat_tau":5,"mirostat_eta":0.1"#,
        r#""repeat_last_n":-1,"repeat_penalty":1.5"#,
        r#""repeat_last_n":64,"repeat_penalty":1"#,
        r#""dry_penalty_last_n":64,"dry_multiplier":0"#,
        r#""samplers":[],"top_n_sigma":-1,"min_keep":0,"n_probs":0,"t_max_predict_ms":-1"#,
        r#""post_sampling_probs":false,"lora":[],"response_fields":[],"sampling_mask":false"#,
    ] {
        ok(members);
    }
}

#[test]
fn what_would_change_the_answer_is_refused() {
    for members in [
        r#""use_beam_search":true"#,
        r#""length_penalty":0.5"#,
        r#""xtc_probability":0.5"#,
        r#""xtc_threshold":0.1"#,
        r#""xtc_threshold":0.1,"xtc_probability":0.5"#,
        r#""dynatemp_range":0.5"#,
        r#""dynatemp_exponent":2"#,
        r#""mirostat":2"#,
        r#""repeat_last_n":64,"repeat_penalty":1.5"#,
        r#""dry_penalty_last_n":64,"dry_multiplier":1"#,
        r#""samplers":["top_k"]"#,
        r#""top_n_sigma":1"#,
        r#""n_probs":3"#,
        r#""safe_tokenization":true"#,
        r#""prompt_embeds":"x""#,
        r#""logits_processors":["x"]"#,
        r#""use_beam_search":"no""#,
    ] {
        let param = members.split('"').nth(1).unwrap();
        let param = match members {
            r#""xtc_threshold":0.1,"xtc_probability":0.5"# => "xtc_probability",
            _ => param,
        };
        fails_at(UnsupportedParameter, param, members);
        fails_with(UnsupportedParameter, param, members, &profile("openai"));
    }
}

#[test]
fn fireworks_fields_are_read() {
    let plan = ok(r#""typical_p":0.5,"raw_output":true,"perf_metrics_in_response":true"#);
    let params = plan
        .sampling
        .params(&SamplingDefaults::default(), &tokenizer())
        .unwrap();
    assert_eq!(params.typical_p, 0.5);
    assert!(plan.raw_output && plan.perf_metrics);
    let echo = |members: &str| {
        let plan = ok(members);
        (plan.echo, plan.echo_last)
    };
    assert_eq!(echo(""), (false, None));
    assert_eq!(echo(r#""echo":true"#), (true, None));
    assert_eq!(echo(r#""echo_last":3"#), (true, Some(3)));
    assert_eq!(echo(r#""echo":false,"echo_last":0"#), (false, Some(0)));
    fails_at(
        ConflictingParameters,
        "echo_last",
        r#""echo":true,"echo_last":3"#,
    );
}

/// The names in the vendor's client.
#[test]
fn the_profile_fireworks_knows_its_vendors_fields() {
    let known: Vec<&str> = known_fields().collect();
    for name in [
        "context_length_exceeded_behavior",
        "echo",
        "echo_last",
        "frequency_penalty",
        "ignore_eos",
        "images",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "metadata",
        "min_p",
        "mirostat_lr",
        "mirostat_target",
        "n",
        "perf_metrics_in_response",
        "prediction",
        "presence_penalty",
        "prompt",
        "prompt_cache_isolation_key",
        "prompt_cache_max_len",
        "raw_output",
        "reasoning_effort",
        "reasoning_history",
        "repetition_penalty",
        "response_format",
        "return_token_ids",
        "safe_tokenization",
        "sampling_mask",
        "seed",
        "service_tier",
        "speculation",
        "stop",
        "stream",
        "stream_options",
        "temperature",
        "thinking",
        "top_k",
        "top_logprobs",
        "top_p",
        "typical_p",
        "user",
    ] {
        assert!(known.contains(&name), "{name}");
    }
}

#[test]
fn a_grammar_as_response_format() {
    let text = "root ::= [a-z]";
    let format = json!({"type": "grammar", "grammar": text});
    let expected = GrammarSource::Gbnf(text.to_owned());
    let found = source(&format!(r#""response_format":{format}"#));
    assert_eq!(found, (expected, "response_format", false));
    fails(
        MissingRequiredParameter,
        r#""response_format":{"type":"grammar"}"#,
    );
    fails(
        InvalidType,
        r#""response_format":{"type":"grammar","grammar":{}}"#,
    );
}
