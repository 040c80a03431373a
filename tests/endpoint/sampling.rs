//! Sampling fields reach the sampler (specification 5; cases 045 to 049).

use serde_json::json;

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
