//! Specification 4.2: model, prompt, suffix, images, user.

use std::rc::Rc;

use super::*;
use crate::api::fields::images::ImageFile;
use crate::api::http::Attachment;

#[test]
fn case_016_model_and_prompt_are_required() {
    for (body, param) in [
        (r#"{"prompt":"p"}"#, "model"),
        (r#"{"model":null,"prompt":"p"}"#, "model"),
        (r#"{"model":"","prompt":"p"}"#, "model"),
        (r#"{"model":"m"}"#, "prompt"),
    ] {
        let result = parse_body(body.as_bytes(), &Switches::default());
        is_fault(result, MissingRequiredParameter, param, body);
    }
    let switches = Switches {
        allow_missing_model: true,
        ..Switches::default()
    };
    for body in [r#"{"prompt":"p"}"#, r#"{"prompt":"p","model":""}"#] {
        let (request, _) = parse_body(body.as_bytes(), &switches).unwrap();
        assert_eq!(request.model, "default");
    }
    assert_eq!(ok("").model, "m");
    fails_with(InvalidType, "model", r#""model":1"#, &switches);
}

#[test]
fn case_038_invalid_prompts() {
    for (members, expected) in [
        (r#""prompt":[]"#, InvalidValue),
        (r#""prompt":[[]]"#, InvalidValue),
        (r#""prompt":[[1],[]]"#, InvalidValue),
        (r#""prompt":["a",1]"#, InvalidValue),
        (r#""prompt":["a",["b"]]"#, InvalidValue),
        (r#""prompt":[1,"a"]"#, InvalidValue),
        (r#""prompt":[1,[2]]"#, InvalidValue),
        (r#""prompt":[1,null]"#, InvalidValue),
        (r#""prompt":[[1],["a"]]"#, InvalidValue),
        (r#""prompt":[["a"]]"#, InvalidValue),
        (r#""prompt":[[[1]]]"#, InvalidValue),
        (r#""prompt":[[1],2]"#, InvalidValue),
        (r#""prompt":["a",null]"#, InvalidValue),
        (r#""prompt":["a",{"b":[]}]"#, InvalidValue),
        (r#""prompt":[-1]"#, OutOfRange),
        (r#""prompt":[1.5]"#, OutOfRange),
        (r#""prompt":[[1],[1,-2]]"#, OutOfRange),
        (r#""prompt":[4294967296]"#, OutOfRange),
        (r#""prompt":[1e300]"#, OutOfRange),
        (r#""prompt":{}"#, InvalidType),
        (r#""prompt":{"a":[1]}"#, InvalidType),
        (r#""prompt":5"#, InvalidType),
        (r#""prompt":-0.5"#, InvalidType),
        (r#""prompt":false"#, InvalidType),
        (r#""prompt":[true]"#, InvalidType),
        (r#""prompt":[null]"#, InvalidType),
    ] {
        fails_at(expected, "prompt", members);
    }
}

#[test]
fn cases_035_039_prompt_shapes() {
    let prompts = |members: &str| ok(members).prompts;
    let text = |text: &str| Prompt::Text(text.to_owned());
    let ids = |ids: &[u32]| Prompt::Tokens(ids.to_owned());
    for (members, expected) in [
        (r#""prompt":null"#, vec![text("")]),
        (r#""prompt":"""#, vec![text("")]),
        (r#""prompt":"a\u0000é\n""#, vec![text("a\0é\n")]),
        (r#""prompt":[""]"#, vec![text("")]),
        (
            r#""prompt":["x","y","x"]"#,
            vec![text("x"), text("y"), text("x")],
        ),
        (r#""prompt":[1,2.0,3e0,0]"#, vec![ids(&[1, 2, 3, 0])]),
        (r#""prompt":[4294967295]"#, vec![ids(&[u32::MAX])]),
        (r#""prompt":[[3],[4,5]]"#, vec![ids(&[3]), ids(&[4, 5])]),
    ] {
        assert_eq!(prompts(members), expected, "{members}");
    }
}

#[test]
fn the_number_of_prompts_is_bounded() {
    let many = |count, element: &str| format!(r#""prompt":[{}]"#, vec![element; count].join(","));
    for element in [r#""a""#, "[1]"] {
        assert_eq!(ok(&many(128, element)).prompts.len(), 128);
        fails_at(OutOfRange, "prompt", &many(129, element));
        // A wrong kind beyond the limit is a fault too.
        let mixed = format!(r#""prompt":[{},{{}}]"#, vec![element; 128].join(","));
        fails_at(InvalidValue, "prompt", &mixed);
    }
    // Ids are one prompt.
    ok(&many(1000, "7"));
    let switches = Switches {
        max_prompts: 2,
        ..Switches::default()
    };
    ok_with(&many(2, "[1]"), &switches);
    fails_with(OutOfRange, "prompt", &many(3, "[1]"), &switches);
}

#[test]
fn the_number_of_candidates_is_bounded() {
    ok(r#""n":64,"prompt":["a","b"]"#);
    fails_at(OutOfRange, "prompt", r#""n":65,"prompt":["a","b"]"#);
    let many = format!(r#""prompt":[{}]"#, ["[1]"; 7].join(","));
    fails_at(OutOfRange, "prompt", &format!(r#"{many},"best_of":19"#));
    ok(&format!(r#"{many},"best_of":18"#));
    let switches = Switches {
        max_sequences: 5,
        ..Switches::default()
    };
    ok_with(r#""n":5"#, &switches);
    fails_with(OutOfRange, "prompt", r#""n":6"#, &switches);
}

#[test]
fn case_077_suffix() {
    let append = Suffix::Append("XYZ".to_owned());
    let fill_in = Suffix::FillInMiddle("XYZ".to_owned());
    let default = Switches::default();
    assert_eq!(ok(r#""suffix":"XYZ""#).suffix, append);
    for mode in ["append", "fim", "reject"] {
        for profile_name in ["default", "openai", "vllm", "mistralrs"] {
            let switches = profile(profile_name);
            // The request overrides the switch.
            let members = format!(r#""suffix":"XYZ","suffix_mode":"{mode}""#);
            match mode {
                "append" => assert_eq!(ok_with(&members, &switches).suffix, append),
                "fim" => assert_eq!(ok_with(&members, &switches).suffix, fill_in),
                _ => fails_with(UnsupportedParameter, "suffix", &members, &switches),
            }
        }
    }
    let asked = r#""suffix":"XYZ""#;
    assert_eq!(ok_with(asked, &profile("openai")).suffix, fill_in);
    assert_eq!(ok_with(asked, &profile("mistralrs")).suffix, append);
    for vendor in ["jiekou", "fireworks", "vllm"] {
        fails_with(UnsupportedParameter, "suffix", asked, &profile(vendor));
        // Without a suffix there is nothing to reject.
        let empty = ok_with(r#""suffix":"""#, &profile(vendor));
        assert_eq!(empty.suffix, Suffix::None);
    }
    fails(InvalidValue, r#""suffix_mode":"prepend""#);
    fails(InvalidValue, r#""suffix_mode":"""#);
    // Ids cannot be put around a middle; appending does not look at the prompt.
    for prompt in ["[1,2]", "[[1],[2]]"] {
        let members = format!(r#""prompt":{prompt},"suffix":"XYZ","suffix_mode":"fim""#);
        fails_at(UnsupportedParameter, "suffix", &members);
        let members = format!(r#""prompt":{prompt},"suffix":"XYZ""#);
        assert_eq!(ok_with(&members, &default).suffix, append);
    }
    let members = r#""prompt":["a","b"],"suffix":"XYZ","suffix_mode":"fim""#;
    assert_eq!(ok(members).suffix, fill_in);
}

#[test]
fn case_112_images() {
    for well_formed in [
        r#"["data:image/png;base64,AAAA"]"#,
        r#"["data:image/jpeg;base64,+/8="]"#,
        r#"["DATA:Image/WebP;base64,AA=="]"#,
        r#"[["data:image/gif;base64,AAAA"]]"#,
    ] {
        let images = ok(&format!(r#""images":{well_formed}"#)).images;
        assert_eq!((images.field, images.files.len()), ("images", 1));
    }
    let two = r#""images":["data:image/bmp;base64,AAAA","data:image/bmp;base64,/wA="]"#;
    let files = ok(two).images.files;
    let file = |bytes: &[u8]| ImageFile::Given(Attachment::File(bytes.into()));
    assert_eq!(files, [file(&[0, 0, 0]), file(&[255, 0])]);
    let lists = r#""prompt":["a","b"],"images":[[],["data:image/bmp;base64,AAAA"]]"#;
    assert_eq!(ok(lists).images.per_prompt, Some(vec![0, 1]));
    // As many lists as prompts.
    fails(
        InvalidValue,
        r#""images":[["data:image/gif;base64,AAAA"],[]]"#,
    );
    for malformed in [
        "",
        "AAAA",
        "http://a.example/x.png",
        "https://a.example/x.png;base64,AAAA",
        "datä:image/png;base64,AAAA",
        "data:image/png,AAAA",
        "data:image/png;base64",
        "data:;base64,AAAA",
        "data:text/plain;base64,AAAA",
        "data:image/svg+xml;base64,AAAA",
        "data:image/png;base64,",
        "data:image/png;base64,A",
        "data:image/png;base64,AAA",
        "data:image/png;base64,AAAAA",
        "data:image/png;base64,AA=A",
        "data:image/png;base64,A===",
        "data:image/png;base64,====",
        "data:image/png;base64,AA A",
        "data:image/png;base64,AA-_",
        "data:image/png;base64,éé",
    ] {
        fails(InvalidValue, &format!(r#""images":["{malformed}"]"#));
        fails(InvalidValue, &format!(r#""images":[["{malformed}"]]"#));
    }
    // Every image is checked.
    let good = "data:image/png;base64,AAAA";
    fails(InvalidValue, &format!(r#""images":["{good}","x"]"#));
    fails(InvalidType, &format!(r#""images":["{good}",1]"#));
}

#[test]
fn images_beside_the_body_are_taken_by_their_numbers() {
    let named = r#""images":["attachment:1","data:image/bmp;base64,AAAA","attachment:0"]"#;
    let attached = |byte: u8| Attachment::File(Rc::from([byte]));
    let mut images = ok(named).images;
    images.attach(&[attached(7), attached(8)]).unwrap();
    let given: Vec<_> = [&[8][..], &[0, 0, 0], &[7]]
        .map(|bytes| ImageFile::Given(Attachment::File(bytes.into())))
        .into();
    assert_eq!(images.files, given);
    // HTTP has none.
    for attachments in [&[][..], &[attached(7)]] {
        let result = ok(named).images.attach(attachments);
        is_fault(result, InvalidValue, "images", named);
    }
    for malformed in [
        "attachment:",
        "attachment:-1",
        "attachment:x",
        "attachment:1.0",
    ] {
        fails(InvalidValue, &format!(r#""images":["{malformed}"]"#));
    }
}

#[test]
fn messages_never_echo_a_whole_prompt() {
    let long = "x".repeat(100_000);
    for members in [
        format!(r#""prompt":[1,"{long}"]"#),
        format!(r#""images":["{long}"]"#),
        format!(r#""stop":["{long}","a","b","c","d"]"#),
        format!(r#""temperature":"{long}""#),
        format!(r#""logit_bias":{{"1{}":1}}"#, "0".repeat(100_000)),
        format!(r#""logit_bias":{{"{long}":1}}"#),
        format!(r#""suffix_mode":"{long}""#),
        format!(r#""tool_choice":"{long}""#),
        format!(r#""tool_choice":{{"type":"function","name":"{long}"}}"#),
        format!(r#""grammar":{{"type":"{long}"}}"#),
    ] {
        let message = parse(&members).unwrap_err().to_string();
        assert!(message.len() < 300, "{message}");
    }
}
