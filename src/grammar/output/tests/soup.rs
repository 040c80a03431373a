//! Random outputs: any division gives the same parts, nothing panics, and no word is lost.

use proptest::prelude::*;

use super::*;

const FORMS: [CallForm; 15] = [
    CallForm::Bare,
    CallForm::Llama3,
    HERMES,
    CallForm::Mistral,
    CallForm::MistralNamed { has_ids: true },
    CallForm::Granite,
    CallForm::Phi4,
    CallForm::QwenMarkup,
    CallForm::Glm,
    CallForm::MiniCpm,
    CallForm::Lfm2,
    CallForm::Gemma4,
    CallForm::FunctionGemma,
    CallForm::DeepSeek,
    CallForm::Harmony,
];

/// Pieces of all forms.
const PIECES: &str = "<think> </think> <tool_call> </tool_call> {\"name\": \"now\", \"arguments\": \"parameters\": {} } }} {\"a\": 1} [ ] , ; \" \\ ' : = ( ) [TOOL_CALLS] now get_weather nope [ARGS] [CALL_ID] <|tool_call|> <|/tool_call|> <|python_tag|> <|python_start|>[ <|python_end|> [now(a=1)] <function=now> <function=rechne> <parameter=expr> <parameter=opts> </parameter> </function> now\n <arg_key> </arg_key> <arg_value> </arg_value> <function_name=\"now\"> <param_name=\"city\"> </param> <![CDATA[ ]]> <|tool_call_start|>[ now( a= ]<|tool_call_end|> <|tool_call>call: <tool_call|> <|\"|> <escape> <start_function_call>call: <end_function_call> <｜tool▁calls▁begin｜> <｜tool▁call▁begin｜> function<｜tool▁sep｜>now ```json ``` <｜tool▁call▁end｜> <｜tool▁calls▁end｜> <|start|>assistant <|channel|> analysis commentary_to=functions.now final <|message|> <|end|> <|call|> <|return|> True None 1.5 é 日";

fn piece() -> impl Strategy<Value = String> {
    let pieces: Vec<String> = PIECES
        .split(' ')
        .map(|piece| piece.replace('_', " "))
        .collect();
    let exact: Vec<String> = PIECES.split(' ').map(str::to_owned).collect();
    prop_oneof![
        4 => proptest::sample::select(exact),
        2 => proptest::sample::select(pieces),
        2 => proptest::sample::select(vec![" ", "\n", "\n\n", "x", "."]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_division_gives_the_same(
        pieces in proptest::collection::vec(piece(), 0..40),
        form_index in 0..FORMS.len(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
    ) {
        let text = pieces.concat();
        let form = form(FORMS[form_index]);
        let boundaries: Vec<usize> = text.char_indices().map(|(start, _)| start).collect();
        let mut cuts: Vec<usize> = match boundaries.is_empty() {
            true => Vec::new(),
            false => cuts.iter().map(|cut| boundaries[cut.index(boundaries.len())]).collect(),
        };
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let divided = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]);
        let divided = read_pieces(&form, "", divided);
        prop_assert_eq!(divided, read_pieces(&form, "", [&*text]));
    }

    #[test]
    fn no_word_is_lost(
        pieces in proptest::collection::vec(piece(), 0..40),
        form in proptest::sample::select(vec![
            CallForm::QwenMarkup,
            CallForm::Glm,
            CallForm::MiniCpm,
            CallForm::Lfm2,
            CallForm::Gemma4,
            CallForm::FunctionGemma,
        ]),
    ) {
        let word = |index: usize| format!("wq{index}w");
        let with_words = pieces.iter().enumerate();
        let text: String = with_words.map(|(index, piece)| word(index) + piece).collect();
        let read = read_pieces(&super::form(form), "", [&*text]);
        let calls: String = read.calls.iter().map(|call| call.1.as_str()).collect();
        let all = format!("{} {} {calls}", read.content, read.reasoning);
        for index in 0..pieces.len() {
            prop_assert!(all.contains(&word(index)), "{}: {text:?}: {read:?}", word(index));
        }
    }

    #[test]
    fn what_is_no_form_is_content(text in any::<String>(), form_index in 0..FORMS.len()) {
        let mut reader = OutputReader::new(&OutputForm { reasoning: None, calls: FORMS[form_index] }, &[], "");
        let mut read = Read::default();
        read.add(reader.push(&text));
        read.add(reader.finish());
        if FORMS[form_index] != CallForm::Harmony {
            prop_assert_eq!(read.content, text);
        }
    }
}

#[test]
fn little_is_held() {
    // Whatever an output begins with, what follows is delivered but for a bounded rest.
    let openings = [
        (HERMES, "<tool_call>{\"name\": \"now\", \"arguments\": \""),
        (HERMES, "<tool_call>{\"name\": \""),
        (HERMES, "<tool_call>{\""),
        (HERMES, "<tool_call>{\"arguments\": {"),
        (HERMES, "<tool_call>{\"name\": \"now\", \"arguments\": {"),
        (HERMES, "<think>"),
        (CallForm::Llama3, "{\"x\": \""),
        (
            CallForm::MistralNamed { has_ids: true },
            "[TOOL_CALLS]now[CALL_ID]",
        ),
        (CallForm::QwenMarkup, "<tool_call><function="),
        (CallForm::QwenMarkup, "<function=rechne><parameter="),
        (CallForm::QwenMarkup, "<function=rechne><parameter=opts>"),
        (CallForm::QwenMarkup, "<function=rechne><parameter=expr>"),
        (CallForm::Glm, "<tool_call>"),
        (CallForm::Lfm2, "<|tool_call_start|>["),
        (CallForm::Lfm2, "<|tool_call_start|>[now("),
        (CallForm::Lfm2, "<|tool_call_start|>[now(a="),
        (CallForm::Gemma4, "<|tool_call>call:now{a:<|\"|>"),
        (
            CallForm::DeepSeek,
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
        ),
        (CallForm::Harmony, "<|start|>assistant to="),
        (
            CallForm::Harmony,
            "<|start|>assistant to=functions.now<|message|>",
        ),
    ];
    for (calls, opening) in openings {
        for filler in ["a", "\n", "<"] {
            let mut reader = OutputReader::new(&form(calls), &tools(), "");
            let mut read = Read::default();
            read.add(reader.push(opening));
            for _ in 0..200 {
                read.add(reader.push(&filler.repeat(1000)));
            }
            let delivered = read.content.len() + read.reasoning.len();
            let delivered = delivered + read.calls.iter().map(|call| call.1.len()).sum::<usize>();
            let is_dropped = filler == "\n" && delivered < 1000;
            assert!(
                is_dropped || delivered > 125_000,
                "{opening} {filler:?}: {delivered}"
            );
            read.add(reader.finish());
        }
    }
}
