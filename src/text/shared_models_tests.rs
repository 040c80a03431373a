//! Tokenizer parity on the model files in `INPAGE_MODELS`, or else in `../shared/models` next to the
//! repository. Without them each test prints a note and passes.

use std::path::{Path, PathBuf};

use super::*;
use crate::weights::{FileSource, Gguf, Metadata};

fn models_dir(test: &str) -> Option<PathBuf> {
    let dir = std::env::var_os("INPAGE_MODELS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/models"),
        PathBuf::from,
    );
    if !dir.is_dir() {
        println!("skipped: {test}: no model files in {}", dir.display());
        return None;
    }
    Some(dir)
}

fn metadata(path: &Path) -> Metadata {
    let source = FileSource::open(path).unwrap();
    pollster::block_on(Gguf::read(&source)).unwrap().metadata
}

fn tokenizer(path: &Path) -> Tokenizer {
    Tokenizer::from_gguf(&metadata(path)).unwrap()
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn ids(value: &serde_json::Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn every_vocabulary_reproduces_its_vectors_and_decodes_to_the_text() {
    let Some(dir) = models_dir("every_vocabulary_reproduces_its_vectors_and_gives_the_text_back")
    else {
        return;
    };
    for name in ["gpt-2", "llama-bpe", "llama-spm", "qwen2", "phi-3"] {
        let path = dir.join(format!("vocab/ggml-vocab-{name}.gguf"));
        let read = |extension: &str| {
            let path = format!("{}.{extension}", path.display());
            std::fs::read_to_string(path).unwrap()
        };
        let (input, output) = (read("inp"), read("out"));
        let strings: Vec<&str> = input.split_terminator("\n__ggml_vocab_test__\n").collect();
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(strings.len(), lines.len(), "{name}");
        assert!(strings.len() > 40, "{name}");
        let tokenizer = tokenizer(&path);
        for (text, line) in strings.iter().zip(lines) {
            let expected: Vec<u32> = line
                .split_whitespace()
                .map(|id| id.parse().unwrap())
                .collect();
            let ids = tokenizer.encode(text, false).unwrap();
            assert_eq!(ids, expected, "{name}: {text:?}");
            assert_eq!(tokenizer.decode(&ids, true), *text, "{name}");
            let pause: Pause = &|| Box::pin(std::future::ready(()));
            let sliced = tokenizer.encode_slices_of(1, text, Special::None, pause);
            let sliced = pollster::block_on(sliced).unwrap();
            assert_eq!(sliced, expected, "{name}, in slices: {text:?}");
        }
        let text = strings.join("\n").repeat(200);
        let pauses = std::cell::Cell::new(0);
        let pause: Pause = &|| {
            pauses.set(pauses.get() + 1);
            Box::pin(std::future::ready(()))
        };
        let ids = tokenizer.encode(&text, false).unwrap();
        let sliced = tokenizer.encode_in_slices(&text, Special::None, pause);
        assert!(ids == pollster::block_on(sliced).unwrap(), "{name}");
        assert!(pauses.get() >= text.len() / (64 << 10), "{name}");
    }
}

#[test]
fn every_token_lies_where_its_text_is() {
    let Some(dir) = models_dir("every_token_lies_where_its_text_is") else {
        return;
    };
    for name in ["gpt-2", "llama-bpe", "llama-spm", "qwen2", "phi-3"] {
        let path = dir.join(format!("vocab/ggml-vocab-{name}.gguf"));
        let tokenizer = tokenizer(&path);
        let input = std::fs::read_to_string(format!("{}.inp", path.display())).unwrap();
        let special = "<s>a</s> <|endoftext|>b<|end|>\n c<|eot_id|> é";
        let strings = input.split("\n__ggml_vocab_test__\n").chain([special]);
        for text in strings {
            let (ids, places) = tokenizer.encode_placed(text, true).unwrap();
            let mut end = 0;
            for (id, place) in ids.iter().zip(&places).skip(tokenizer.adds_bos().into()) {
                let label = tokenizer.token_label(*id);
                let label = match place.drops_space {
                    true => label.strip_prefix(' ').unwrap_or(&label),
                    false => &label,
                };
                assert!(place.start >= end, "{name}: {id} in {text:?}");
                if !label.starts_with("bytes:") {
                    let rest: String = text.chars().skip(place.start).collect();
                    assert!(rest.starts_with(label), "{name}: {label:?} in {rest:?}");
                    end = place.start + label.chars().count();
                }
            }
        }
    }
}

#[test]
fn reference_prompts_give_the_reference_ids_and_decode_back() {
    let Some(dir) = models_dir("reference_prompts_give_the_reference_ids_and_back") else {
        return;
    };
    for (model, reference) in [
        ("ts4m/ts4m-F16.gguf", "ts4m-hf/ref.json"),
        ("stories260K/stories260K-F32.gguf", "stories260K/ref.json"),
    ] {
        let tokenizer = tokenizer(&dir.join(model));
        let reference = json(&dir.join(reference));
        let prompt = reference["prompt"].as_str().unwrap();
        let expected = ids(&reference["ids"]);
        assert_eq!(tokenizer.encode(prompt, true).unwrap(), expected, "{model}");
        let all = ids(&reference["greedy_ids"]);
        assert_eq!(
            tokenizer.decode(&all, true),
            reference["text"].as_str().unwrap(),
            "{model}"
        );
    }
}

/// A folder and a GGUF file of the same model give the same ids and strings.
#[test]
fn a_folder_and_a_file_of_one_model_agree() {
    let Some(dir) = models_dir("a_folder_and_a_file_of_one_model_agree") else {
        return;
    };
    let mut strings: Vec<String> = ["qwen2", "phi-3"]
        .iter()
        .flat_map(|name| {
            let path = dir.join(format!("vocab/ggml-vocab-{name}.gguf.inp"));
            let input = std::fs::read_to_string(path).unwrap();
            let strings = input.split("\n__ggml_vocab_test__\n").map(str::to_owned);
            strings.collect::<Vec<_>>()
        })
        .collect();
    let stories = std::fs::read_to_string(dir.join("text/tinystories_heldout_60.txt")).unwrap();
    strings.extend(stories.split("\n\n").map(str::to_owned));
    let special = "<s>a</s> b<|im_start|>user\ne\u{301} 가각<|im_end|> \u{1100}\u{1161}<unk>";
    strings.push(special.to_owned());
    for (folder, file) in [
        ("ts4m-hf", "ts4m/ts4m-F16.gguf"),
        ("stories260K", "stories260K/stories260K-F32.gguf"),
    ] {
        let read = |name: &str| std::fs::read(dir.join(folder).join(name)).unwrap();
        let (json, config) = (read("tokenizer.json"), read("tokenizer_config.json"));
        let of_folder = Tokenizer::from_hugging_face(&HuggingFaceFiles {
            tokenizer: &json,
            tokenizer_config: Some(&config),
            ..HuggingFaceFiles::default()
        })
        .unwrap();
        let of_file = tokenizer(&dir.join(file));
        assert_eq!(of_folder.vocab_size(), of_file.vocab_size(), "{folder}");
        assert_eq!(of_folder.bos_id(), of_file.bos_id(), "{folder}");
        assert_eq!(of_folder.eos_ids(), of_file.eos_ids(), "{folder}");
        for id in 0..of_file.vocab_size() as u32 {
            assert_eq!(
                of_folder.token_bytes(id),
                of_file.token_bytes(id),
                "{folder} {id}"
            );
            assert_eq!(
                of_folder.is_special(id),
                of_file.is_special(id),
                "{folder} {id}"
            );
        }
        for text in &strings {
            let placed = of_folder.encode_placed(text, true).unwrap();
            assert_eq!(
                placed,
                of_file.encode_placed(text, true).unwrap(),
                "{folder}: {text:?}"
            );
            let [a, b] = [&of_folder, &of_file].map(|t| t.decode(&placed.0, false));
            assert_eq!(a, b, "{folder}: {text:?}");
        }
    }
}

#[test]
fn the_first_generated_word_keeps_its_space() {
    let Some(dir) = models_dir("the_first_generated_word_keeps_its_space") else {
        return;
    };
    let tokenizer = tokenizer(&dir.join("stories260K/stories260K-F32.gguf"));
    let reference = json(&dir.join("stories260K/ref.json"));
    let prompt = ids(&reference["ids"]);
    let all = ids(&reference["greedy_ids"]);
    let tokenizer = std::rc::Rc::new(tokenizer);
    let mut detokenizer = Detokenizer::new(tokenizer, &prompt, true);
    let mut text = reference["prompt"].as_str().unwrap().to_owned();
    for &id in &all[prompt.len()..] {
        text += &detokenizer.push(id);
    }
    text += &detokenizer.finish();
    assert_eq!(text, reference["text"].as_str().unwrap());
    assert!(text.contains("cat named"), "{text}");
}

#[test]
fn special_tokens_and_start_of_text_follow_each_file() {
    let Some(dir) = models_dir("special_tokens_and_start_of_text_follow_each_file") else {
        return;
    };
    let llama3 = tokenizer(&dir.join("vocab/ggml-vocab-llama-bpe.gguf"));
    assert!(llama3.adds_bos(), "the default of its pre-tokenizer");
    assert_eq!(llama3.encode("", true).unwrap(), [128_000]);
    assert_eq!(llama3.eos_ids(), [128_001, 128_009]);
    assert_eq!(llama3.special_id("<|eot_id|>"), Some(128_009));
    assert_eq!(
        llama3
            .encode("<|start_header_id|>Hello<|eot_id|>", false)
            .unwrap(),
        [128_006, 9906, 128_009]
    );

    let ts4m = tokenizer(&dir.join("ts4m/ts4m-F16.gguf"));
    assert!(!ts4m.adds_bos());
    assert!(ts4m.encode("", true).unwrap().is_empty());
    assert_eq!(ts4m.document_start_id(), Some(4093));
    assert_eq!(ts4m.eos_ids(), [4095, 4093]);
    assert_eq!(ts4m.vocab_size(), 4096);

    let gpt2 = tokenizer(&dir.join("vocab/ggml-vocab-gpt-2.gguf"));
    assert_eq!(gpt2.bos_id(), Some(50_256));
    assert!(!gpt2.adds_bos());

    let spm = tokenizer(&dir.join("vocab/ggml-vocab-llama-spm.gguf"));
    assert_eq!(spm.encode("Hello", true).unwrap(), [1, 15_043]);
    // The word after a special token gets its space too.
    assert_eq!(spm.encode("</s>Hello", true).unwrap(), [1, 2, 15_043]);
    assert_eq!(spm.eos_ids(), [2]);

    let phi3 = tokenizer(&dir.join("vocab/ggml-vocab-phi-3.gguf"));
    assert_eq!(
        phi3.encode("<|user|>\n Hello<|end|>\n", false).unwrap(),
        [32_010, 15_043, 32_007],
        "white space after its special tokens is dropped"
    );
    assert_eq!(phi3.eos_ids(), [32_000, 32_007, 2]);
    assert!(phi3.is_special(2));

    let gemma = tokenizer(&dir.join("tiny/gemma3-F16.gguf"));
    let hello = gemma.encode("Hello Hello", false).unwrap();
    assert_eq!(gemma.decode(&hello, true), "Hello Hello");
    assert_eq!(gemma.token_bytes(hello[0]), b"H", "no space is added");
    assert_eq!(gemma.eos_ids(), [2, 8389]);

    let smollm = tokenizer(&dir.join("tiny/smolvlm-F16.gguf"));
    let text = "It is 2024 <image> isn't it?";
    let ids = smollm.encode(text, true).unwrap();
    assert!(ids.contains(&smollm.special_id("<image>").unwrap()));
    assert_eq!(smollm.decode(&ids, false), text);
}

/// The strings of `tiny/refs` are not available; their ids must survive decoding and encoding.
#[test]
fn reference_ids_of_every_architecture_survive_a_round_trip() {
    let Some(dir) = models_dir("reference_ids_of_every_architecture_survive_a_round_trip") else {
        return;
    };
    for (name, file) in [
        ("llama3", "llama3-F16"),
        ("qwen2", "qwen2-Q8_0"),
        ("qwen3", "qwen3-F16"),
        ("gemma3", "gemma3-F16"),
        ("phi3", "phi3-Q8_0"),
    ] {
        let tokenizer = tokenizer(&dir.join(format!("tiny/{file}.gguf")));
        let reference = json(&dir.join(format!("tiny/refs/{name}.json")));
        let expected = ids(&reference["ids"]);
        let text = tokenizer.decode(&expected, true);
        assert_eq!(
            tokenizer.encode(&text, true).unwrap(),
            expected,
            "{name}: {text:?}"
        );
    }
}

#[test]
fn whole_books_survive_a_round_trip() {
    let Some(dir) = models_dir("whole_books_come_back") else {
        return;
    };
    let book = std::fs::read_to_string(dir.join("text/tinyshakespeare.txt")).unwrap();
    for name in ["qwen2", "llama-spm"] {
        let tokenizer = tokenizer(&dir.join(format!("vocab/ggml-vocab-{name}.gguf")));
        let started = std::time::Instant::now();
        let ids = tokenizer.encode(&book, false).unwrap();
        println!(
            "{name}: {} tokens in {} ms",
            ids.len(),
            started.elapsed().as_millis()
        );
        assert_eq!(tokenizer.decode(&ids, true), book, "{name}");
    }
}

#[test]
fn large_vocabularies_build_quickly() {
    let Some(dir) = models_dir("large_vocabularies_build_quickly") else {
        return;
    };
    for name in ["qwen2", "llama-bpe", "llama-spm"] {
        let metadata = metadata(&dir.join(format!("vocab/ggml-vocab-{name}.gguf")));
        let started = std::time::Instant::now();
        let tokenizer = Tokenizer::from_gguf(&metadata).unwrap();
        let elapsed = started.elapsed();
        println!(
            "{name}: {} tokens in {} ms",
            tokenizer.vocab_size(),
            elapsed.as_millis()
        );
        // A quadratic build would take minutes; the bound leaves room for a busy machine.
        assert!(elapsed.as_secs() < 20, "{name}: {elapsed:?}");
    }
}
