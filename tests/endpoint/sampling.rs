//! Sampling fields reach the sampler (specification 5; cases 045 to 049).

use inpage::api::{Request, SamplingDefaults};
use serde_json::{Value, json};

use crate::fixture::*;

#[test]
fn case_045_greedy_repeats() {
    serve_default(async |server| {
        let first = server.text(json!({"temperature": 0})).await;
        assert_eq!(server.text(json!({"temperature": 0})).await, first);
        assert_eq!(server.text(json!({"temperature": 1e-6})).await, first);
    });
}

#[test]
fn case_046_a_seed_repeats_streamed_or_not() {
    serve_default(async |server| {
        let members = json!({"temperature": 1.3, "seed": 11, "max_tokens": 20});
        let first = server.text(members.clone()).await;
        assert_eq!(server.text(members.clone()).await, first);
        assert_eq!(joined(&server.stream(members).await), first);
    });
}

#[test]
fn case_047_seeds_differ() {
    serve_default(async |server| {
        let mut seeded = Vec::new();
        let mut unseeded = Vec::new();
        for seed in 1..=8 {
            let hot = json!({"temperature": 1.5, "max_tokens": 12, "seed": seed});
            seeded.push(server.text(hot).await);
            let hot = json!({"temperature": 1.5, "max_tokens": 12});
            unseeded.push(server.text(hot).await);
        }
        for mut texts in [seeded, unseeded] {
            texts.sort_unstable();
            texts.dedup();
            assert!(texts.len() >= 2);
        }
    });
}

#[test]
fn case_049_narrow_sampling_is_greedy() {
    serve_default(async |server| {
        let greedy = server.text(json!({"temperature": 0})).await;
        for narrow in [
            json!({"top_k": 1}),
            json!({"top_p": 0}),
            json!({"min_p": 1}),
        ] {
            let mut members = narrow.clone();
            members["temperature"] = json!(2);
            assert_eq!(server.text(members).await, greedy, "{narrow}");
        }
    });
}

#[test]
fn model_defaults_apply_only_if_the_switch_is_on() {
    // The defaults of the fixture's model set temperature 0.
    serve(
        json!({"useModelGenerationDefaults": true}),
        async |server| {
            let greedy = server.text(json!({"temperature": 0})).await;
            for seed in 1..=8 {
                assert_eq!(server.text(json!({"seed": seed})).await, greedy);
            }
        },
    );
    serve_default(async |server| {
        let greedy = server.text(json!({"temperature": 0})).await;
        let mut differs = false;
        for seed in 1..=8 {
            differs |= server.text(json!({"seed": seed})).await != greedy;
        }
        assert!(differs);
    });
}

#[test]
fn messages_are_sampled_as_the_model_recommends() {
    // Both routes ask for one message; the answer tells the temperature.
    let messages = async |server: &Server, members: Value| {
        let messages = json!([{"role": "user", "content": "q"}]);
        let mut texts = Vec::new();
        for (request, own) in [
            (chat as fn(&str) -> Request, json!({"messages": messages})),
            (responses, json!({"input": "q"})),
        ] {
            let mut body = json!({"model": "default", "max_tokens": 8});
            for given in [&own, &members] {
                body.as_object_mut()
                    .unwrap()
                    .extend(given.as_object().unwrap().clone());
            }
            let reply = server.send(request(&body.to_string())).await.json();
            let text = match reply["choices"][0]["message"]["content"].as_str() {
                Some(text) => text,
                None => reply["output"][0]["content"][0]["text"].as_str().unwrap(),
            };
            texts.push(text.to_owned());
        }
        texts
    };
    let differs = async |server: &Server, members: Value| {
        let greedy = messages(server, json!({"temperature": 0})).await;
        let mut differs = [false; 2];
        for seed in 1..=8 {
            let mut members = members.clone();
            members["seed"] = json!(seed);
            let texts = messages(server, members).await;
            for (route, differs) in differs.iter_mut().enumerate() {
                *differs |= texts[route] != greedy[route];
            }
        }
        differs
    };
    serve_default(async |server| {
        assert_eq!(differs(server, json!({})).await, [false; 2]);
        assert_eq!(differs(server, json!({"temperature": 1})).await, [true; 2]);
    });
    serve(
        json!({"useModelGenerationDefaults": false}),
        async |server| {
            assert_eq!(differs(server, json!({})).await, [true; 2]);
        },
    );
}

#[test]
fn messages_have_a_limit_of_tokens_by_default() {
    let tokens = async |server: &Server, members: Value| {
        let mut body = json!({"model": "default", "messages": [{"role": "user", "content": "q"}],
            "ignore_eos": true});
        body.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        let object = server.send(chat(&body.to_string())).await.json();
        assert_eq!(object["choices"][0]["finish_reason"], "length", "{object}");
        object["usage"]["completion_tokens"].as_u64().unwrap() as usize
    };
    // <s> <|sep|> u q <|sep|> a
    let all = CONTEXT - 6;
    serve(json!({"defaultMaxMessageTokens": 9}), async |server| {
        assert_eq!(tokens(server, json!({})).await, 9);
        assert_eq!(tokens(server, json!({"max_tokens": 12})).await, 12);
        assert_eq!(tokens(server, json!({"min_tokens": 11})).await, 11);
        assert_eq!(tokens(server, json!({"n_predict": -1})).await, all);
        // The model's recommendation takes precedence over everything but the request.
        server.recommend(SamplingDefaults {
            max_tokens: Some(5),
            ..SamplingDefaults::default()
        });
        assert_eq!(tokens(server, json!({})).await, 5);
        assert_eq!(tokens(server, json!({"min_tokens": 7})).await, 7);
        assert_eq!(tokens(server, json!({"max_tokens": 12})).await, 12);
    });
    for switches in [
        json!({"defaultMaxMessageTokens": "context"}),
        json!({}),
        json!({"profile": "jiekou"}),
    ] {
        // 2048 tokens do not fit, which is no error.
        serve(switches, async |server| {
            assert_eq!(tokens(server, json!({})).await, all);
        });
    }
    let switches = json!({"useModelGenerationDefaults": false, "defaultMaxMessageTokens": 9});
    serve(switches, async |server| {
        server.recommend(SamplingDefaults {
            max_tokens: Some(5),
            ..SamplingDefaults::default()
        });
        assert_eq!(tokens(server, json!({})).await, 9);
    });
}
