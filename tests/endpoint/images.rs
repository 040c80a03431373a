//! Images in prompts and messages (specification 4.2 and 18.2): counts, places, errors, and files of all kinds. What a
//! vision tower makes of them is checked by tests/parity.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt;
use image::{DynamicImage, ImageFormat as FileType};
use inpage::images::{Filter, GridSizes, ImageFormat, ImageGeometry, ImageMarkup};
use serde_json::{Value, json};

use crate::fixture::*;

/// Tokens of an image: its rows, and three special tokens around them.
const ROWS: usize = 5;
const IMAGE: u64 = ROWS as u64 + 3;
const TEMPLATE: &str = "{% for message in messages %}<|sep|>{% if message.content is string %}{{ message.content }}\
    {% else %}{% for part in message.content %}{% if part['type'] == 'image' %}<image>{% else %}{{ part.text }}\
    {% endif %}{% endfor %}{% endif %}{% endfor %}<|sep|>";

fn encoded(image: &DynamicImage, format: FileType) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    image.write_to(&mut file, format).unwrap();
    file.into_inner()
}

fn png(seed: u8) -> Vec<u8> {
    let pixels =
        (0..3 * 7 * 5).map(|at: u8| seed.wrapping_mul(31).wrapping_add(at.wrapping_mul(3)));
    let image = image::RgbImage::from_raw(7, 5, pixels.collect()).unwrap();
    encoded(&image.into(), FileType::Png)
}

fn url(file: &[u8]) -> String {
    format!("data:image/png;base64,{}", STANDARD.encode(file))
}

fn see(test: impl AsyncFnOnce(&Server)) {
    serve_default(async |server| {
        server.see(ROWS, TEMPLATE);
        test(server).await;
    });
}

fn prompt_tokens(object: &Value) -> u64 {
    let tokens = object["usage"]["prompt_tokens"].as_u64();
    tokens.unwrap_or_else(|| panic!("{object}"))
}

async fn refused(server: &Server, members: Value) -> (u16, String, String) {
    let reply = server.complete(members).await;
    let (status, code, param) = reply.error();
    (status, code, param.unwrap_or_default())
}

fn invalid() -> (u16, String, String) {
    (400, "invalid_value".into(), "images".into())
}

#[test]
fn case_112_an_image_takes_the_place_of_its_placeholder() {
    see(async |server| {
        let plain = prompt_tokens(&server.ok(json!({"prompt": "a b"})).await);
        let members = json!({"prompt": "a<image> b", "images": [url(&png(0))], "echo": true, "max_tokens": 1,
            "return_token_ids": true});
        let object = server.ok(members).await;
        assert_eq!(prompt_tokens(&object), plain + IMAGE);
        assert!(text_of(&object).starts_with("a<image> b"), "{object}");
        let ids = object["choices"][0]["prompt_token_ids"].as_array().unwrap();
        assert_eq!(ids.len() as u64, plain + IMAGE);
        assert_eq!(ids.iter().filter(|id| **id == json!(PRE)).count(), ROWS);
        // The same as ids.
        let prompt = json!([BOS, 70, PRE, 71]);
        let members = json!({"prompt": prompt, "images": [url(&png(0))]});
        assert_eq!(prompt_tokens(&server.ok(members).await), 3 + IMAGE);
    });
}

#[test]
fn case_112_images_go_to_the_prompts_in_order() {
    see(async |server| {
        let image = || url(&png(0));
        let two = json!({"prompt": ["<image>", "x", "<image>"], "images": [image(), image()]});
        server.ok(two).await;
        let lists = json!({"prompt": ["<image>", "x"], "images": [[image()], []]});
        server.ok(lists).await;
        for (prompt, images) in [
            (json!("<image>"), json!([image(), image()])),
            (json!("<image><image>"), json!([image()])),
            (json!("none"), json!([image()])),
            (json!("<image>"), json!([])),
            (json!(["<image>", "x"]), json!([[], [image()]])),
            (json!(["<image>", "x"]), json!([[image()]])),
            (json!([BOS, PRE, PRE]), json!([image()])),
        ] {
            let members = json!({"prompt": prompt, "images": images});
            assert_eq!(
                refused(server, members.clone()).await,
                invalid(),
                "{members}"
            );
        }
    });
}

#[test]
fn case_112_a_model_that_takes_text_only() {
    serve_default(async |server| {
        let members = json!({"prompt": "a", "images": [url(&png(0))]});
        let unsupported = (400, "unsupported_parameter".into(), "images".into());
        assert_eq!(refused(server, members).await, unsupported);
        for none in [json!([]), json!(null), json!([[]])] {
            server.ok(json!({"prompt": "a", "images": none})).await;
        }
    });
}

#[test]
fn case_112_files_of_all_formats() {
    see(async |server| {
        let image = image::load_from_memory(&png(1)).unwrap();
        let rgba = DynamicImage::from(image.to_rgba8());
        let gray = DynamicImage::from(image.to_luma8());
        let deep = DynamicImage::from(image.to_rgb16());
        let one = DynamicImage::new_rgb8(1, 1);
        let wide = DynamicImage::new_rgb8(3000, 1);
        for (image, format) in [
            (&image, FileType::Png),
            (&image, FileType::Jpeg),
            (&image, FileType::WebP),
            (&image, FileType::Bmp),
            (&rgba, FileType::Gif),
            (&rgba, FileType::Png),
            (&gray, FileType::Png),
            (&gray, FileType::Jpeg),
            (&deep, FileType::Png),
            (&one, FileType::Png),
            (&wide, FileType::Png),
        ] {
            // The type that the URL names does not matter.
            let members = json!({"prompt": "<image>", "images": [url(&encoded(image, format))]});
            server.ok(members).await;
        }
        let good = png(2);
        let mut bomb = good.clone();
        // Width and height of the header, which is checked before its checksum.
        bomb[16..24].copy_from_slice(&[0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30]);
        let cases: [&[u8]; 7] = [
            &[0, 0, 0],
            b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
            b"GIF89a",
            &good[..20],
            &good[..good.len() / 2],
            &good[10..],
            &bomb,
        ];
        for file in cases {
            let members = json!({"prompt": "<image>", "images": [url(file)]});
            assert_eq!(refused(server, members).await, invalid(), "{file:?}");
        }
    });
}

/// The form of images in three families, and their control tokens.
fn families() -> [(ImageFormat, [&'static str; 3]); 3] {
    let tiles = ImageFormat {
        markup: &TILE_MARKUP,
        filter: Filter::Lanczos,
        geometry: ImageGeometry::Tiles {
            size: 512,
            longest_edge: 2048,
            rows: 1,
        },
    };
    let stretched = ImageFormat {
        markup: const {
            &ImageMarkup {
                row_token: "<image_soft_token>",
                before_whole: "\n\n<start_of_image>",
                after_whole: "<end_of_image>\n\n",
                ..ImageMarkup::plain("<start_of_image>")
            }
        },
        filter: Filter::Bilinear,
        geometry: ImageGeometry::Stretched { size: 896, rows: 1 },
    };
    let grid = ImageFormat {
        markup: const { &ImageMarkup::plain("<|image_pad|>") },
        filter: Filter::Bicubic,
        geometry: ImageGeometry::Grid(GridSizes {
            side: 32,
            min_pixels: 1 << 10,
            max_pixels: 1 << 20,
        }),
    };
    [
        (
            tiles,
            ["<image>", "<fake_token_around_image>", "<global-img>"],
        ),
        (
            stretched,
            ["<start_of_image>", "<image_soft_token>", "<end_of_image>"],
        ),
        (
            grid,
            ["<|image_pad|>", "<|vision_start|>", "<|vision_end|>"],
        ),
    ]
}

/// A file whose header says that it has this size.
fn png_of(width: u32, height: u32) -> Vec<u8> {
    let mut file = png(0);
    file[16..20].copy_from_slice(&width.to_be_bytes());
    file[20..24].copy_from_slice(&height.to_be_bytes());
    file
}

#[test]
fn images_with_a_long_side_are_refused_before_any_is_decoded() {
    serve_default(async |server| {
        for (format, control) in families() {
            server.see_as(format, control, TEMPLATE);
            for (width, height, reason) in [
                (
                    1,
                    8_000_000,
                    "a side of 8000000 pixels is longer than 32767",
                ),
                (
                    1,
                    60_000_000,
                    "a side of 60000000 pixels is longer than 32767",
                ),
                (
                    8_000_000,
                    1,
                    "a side of 8000000 pixels is longer than 32767",
                ),
                (u32::MAX >> 1, u32::MAX >> 1, "is longer than 32767"),
                (32_000, 32_000, "32000x32000 pixels are more than 67108864"),
            ] {
                let images = [url(&png(1)), url(&png_of(width, height))];
                let members = json!({"prompt": "<image><image>", "images": images});
                let reply = server.complete(members).await;
                assert_eq!(
                    reply.error(),
                    (400, "invalid_value".into(), Some("images".into()))
                );
                assert!(reply.text().contains(reason), "{}", reply.text());
                assert!(reply.text().contains("image 1"), "{}", reply.text());
            }
        }
        // The image processor refuses such shapes, too.
        let members = json!({"prompt": "<image>", "images": [url(&png_of(2, 401))]});
        let reply = server.complete(members).await;
        assert!(
            reply.text().contains("200 times as long"),
            "{}",
            reply.text()
        );
        assert_eq!(server.host.decoded.get(), 0);
    });
}

#[test]
fn images_that_exceed_the_context_are_refused_before_any_is_decoded() {
    serve_default(async |server| {
        let (grid, control) = families()[2];
        server.see_as(grid, control, TEMPLATE);
        let many = vec![url(&png_of(3000, 3000)); 20];
        let members = json!({"prompt": "<image>".repeat(20), "images": many});
        let exceeded = (400, "context_length_exceeded".into(), "images".into());
        assert_eq!(refused(server, members).await, exceeded);
        assert_eq!(server.host.decoded.get(), 0);
    });
}

#[test]
fn images_are_decoded_one_at_a_time() {
    see(async |server| {
        let members = || json!({"prompt": "<image>", "images": [url(&png(0))], "max_tokens": 1});
        server.host.decodes_for_ever.set(true);
        let mut first = Box::pin(server.complete(members()));
        let mut second = Box::pin(server.stream(members()));
        let mut third = Box::pin(server.complete(members()));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        assert_eq!(server.host.decoded.get(), 1);
        // The decoder goes on without its request.
        drop(first);
        assert!(second.as_mut().now_or_never().is_none());
        assert_eq!(server.host.decoded.get(), 1);
        // A request that gives its turn up delays nobody.
        drop(second);
        server.host.decodes_for_ever.set(false);
        server.host.turns.borrow_mut().clear();
        let reply = third.await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(server.host.decoded.get(), 2);
    });
}

#[test]
fn images_are_decoded_after_the_admission_of_their_request() {
    serve(json!({"maxQueue": 1}), async |server| {
        server.see(ROWS, TEMPLATE);
        let members = |n: usize| json!({"prompt": "<image>", "images": [url(&png(0))], "n": n, "temperature": 1});
        let full = (429, "queue_full".into(), None);
        server.host.decodes_for_ever.set(true);
        // Four candidates run at once, and one request waits.
        let mut batch = Box::pin(server.complete(members(4)));
        assert!(batch.as_mut().now_or_never().is_none());
        let mut waiting = Box::pin(server.complete(members(1)));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert_eq!(server.complete(members(1)).await.error(), full);
        assert_eq!(server.complete(json!({})).await.error(), full);
        assert_eq!(server.host.decoded.get(), 1);
        // Cancelled requests give their places up.
        drop(batch);
        server.ok(json!({})).await;
        server.host.decodes_for_ever.set(false);
        server.host.turns.borrow_mut().clear();
        let reply = waiting.await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    });
}

/// Bits of good files are changed, and parts are cut out.
#[test]
fn mutated_files_end_in_an_answer_or_an_error() {
    see(async |server| {
        let image = image::load_from_memory(&png(3)).unwrap();
        let formats = [
            FileType::Png,
            FileType::Jpeg,
            FileType::WebP,
            FileType::Gif,
            FileType::Bmp,
        ];
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        for round in 0..10_000 {
            let mut file = encoded(&image, formats[round % formats.len()]);
            for _ in 0..=random(4) {
                let at = random(file.len());
                match random(3) {
                    0 => file[at] ^= 1 << random(8),
                    1 => file.truncate(at.max(1)),
                    _ => file[at] = random(256) as u8,
                }
            }
            let members = json!({"prompt": "<image>", "images": [url(&file)], "max_tokens": 0});
            let reply = server.complete(members).await;
            assert!([200, 400].contains(&reply.status), "{}", reply.text());
        }
    });
}

#[test]
fn prompts_with_images_are_not_cut_or_scored() {
    see(async |server| {
        let members = |more: Value| {
            let mut members = json!({"prompt": "a<image>", "images": [url(&png(0))]});
            members
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            members
        };
        let conflict = (400, "conflicting_parameters".into(), "images".into());
        let cut = members(json!({"truncate_prompt_tokens": 3}));
        assert_eq!(refused(server, cut).await, conflict);
        let scored = members(json!({"echo": true, "logprobs": 1}));
        assert_eq!(refused(server, scored).await, conflict);
        server
            .ok(members(
                json!({"truncate_prompt_tokens": -1, "logprobs": 1}),
            ))
            .await;
        server.ok(members(json!({"n": 2, "temperature": 1}))).await;
        assert!(!server.stream(members(json!({}))).await.is_empty());
        // Images alone exceed the context.
        let many: Vec<String> = (0..20).map(|seed| url(&png(seed))).collect();
        let members = json!({"prompt": "<image>".repeat(20), "images": many});
        let exceeded = (400, "context_length_exceeded".into(), "images".into());
        assert_eq!(refused(server, members).await, exceeded);
    });
}

/// In Anthropic's form, also in the results of tools.
#[test]
fn blocks_with_images() {
    see(async |server| {
        let tokens = async |turns: Value| {
            let body = json!({"model": MODEL_ID, "max_tokens": 2, "messages": turns});
            let reply = server.send(messages(&body.to_string())).await;
            assert_eq!(reply.status, 200, "{}", reply.text());
            let usage = &reply.json()["usage"];
            let counts = ["input_tokens", "cache_read_input_tokens"];
            counts
                .iter()
                .map(|name| usage[*name].as_u64().unwrap())
                .sum::<u64>()
        };
        let base64 =
            json!({"type": "base64", "media_type": "image/png", "data": STANDARD.encode(png(0))});
        let by_url = json!({"type": "url", "url": url(&png(0))});
        let block = |source: &Value| json!({"type": "image", "source": source});
        let text = json!({"type": "text", "text": "ab"});
        let user = |content: Value| json!({"role": "user", "content": content});
        let plain = tokens(json!([user(json!([text]))])).await;
        for source in [&base64, &by_url] {
            let seen = tokens(json!([user(json!([block(source), text]))])).await;
            assert_eq!(seen, plain + IMAGE);
        }
        // A template with a place for tools.
        server.see(ROWS, &format!("{{% if tools %}}.{{% endif %}}{TEMPLATE}"));
        let call = json!({"type": "tool_use", "id": "u", "name": "f", "input": {}});
        let result = |content: Value| {
            let result = json!({"type": "tool_result", "tool_use_id": "u", "content": content});
            json!([user(json!([text])), {"role": "assistant", "content": [call]}, user(json!([result]))])
        };
        let without = tokens(result(json!([text]))).await;
        assert_eq!(
            tokens(result(json!([text, block(&base64)]))).await,
            without + IMAGE
        );
    });
}

#[test]
fn parts_of_messages_with_images() {
    see(async |server| {
        let say = async |content: Value| {
            let body = json!({"model": MODEL_ID, "max_tokens": 2,
                "messages": [{"role": "user", "content": content}]});
            server.send(chat(&body.to_string())).await
        };
        let image =
            json!({"type": "image_url", "image_url": {"url": url(&png(0)), "detail": "low"}});
        let text = |text: &str| json!({"type": "text", "text": text});
        let plain = prompt_tokens(&say(json!([text("ab")])).await.json());
        let seen = say(json!([image, text("ab")])).await.json();
        assert_eq!(prompt_tokens(&seen), plain + IMAGE);
        // The text of a message has no placeholders.
        let written = say(json!([image, text("<image>")])).await;
        assert_eq!(written.status, 200, "{}", written.text());
        assert!(prompt_tokens(&written.json()) > plain + IMAGE);
        let damaged = json!({"type": "image_url", "image_url": url(&png(0)[..30])});
        let error = say(json!([damaged])).await.error();
        assert_eq!(
            error,
            (400, "invalid_value".into(), Some("messages".into()))
        );
        // A template that knows texts only.
        server.see(
            ROWS,
            "{% for m in messages %}<|sep|>{{ m.content }}{% endfor %}<|sep|>",
        );
        let seen = say(json!([image, text("ab")])).await.json();
        assert_eq!(prompt_tokens(&seen), plain + IMAGE + 1, "and a newline");
        // One that knows parts only.
        server.see(
            ROWS,
            "{% for m in messages %}<|sep|>{% for p in m.content %}{% if p['type'] == 'image' %}<image>\
             {% elif p['type'] == 'text' %}{{ p['text'] }}{% endif %}{% endfor %}{% endfor %}<|sep|>",
        );
        assert_eq!(prompt_tokens(&say(json!("ab")).await.json()), plain);
        let seen = say(json!([text("ab"), image])).await.json();
        assert_eq!(prompt_tokens(&seen), plain + IMAGE);
    });
    serve_default(async |server| {
        let part = json!({"type": "image_url", "image_url": {"url": url(&png(0))}});
        let body = json!({"model": MODEL_ID, "messages": [{"role": "user", "content": [part]}]});
        let error = server.send(chat(&body.to_string())).await.error();
        let unsupported = (400, "unsupported_parameter".into(), Some("messages".into()));
        assert_eq!(error, unsupported);
    });
}

/// A server that sees, with these switches and with `files` on the network.
fn see_remote(switches: Value, files: &[(&str, Option<Vec<u8>>)], test: impl AsyncFnOnce(&Server)) {
    serve(switches, async |server| {
        server.see(ROWS, TEMPLATE);
        let files = files
            .iter()
            .map(|(url, file)| ((*url).to_owned(), file.clone()));
        server.host.remote.borrow_mut().extend(files);
        test(server).await;
    });
}

const REMOTE: &str = "https://images.example/a.png";

#[test]
fn urls_of_the_network_are_fetched_if_a_switch_allows_it() {
    see_remote(
        json!({"remoteImages": true}),
        &[(REMOTE, Some(png(1)))],
        async |server| {
            let members =
                |url: &str| json!({"prompt": "a<image> b", "images": [url], "max_tokens": 1});
            let given = server.ok(members(&url(&png(1)))).await;
            let fetched = server.ok(members(REMOTE)).await;
            assert_eq!(prompt_tokens(&fetched), prompt_tokens(&given));
            let content = json!([{"type": "image_url", "image_url": {"url": REMOTE}}, {"type": "text", "text": "a"}]);
            let body = json!({"model": "default", "messages": [{"role": "user", "content": content}], "max_tokens": 1});
            let reply = server.send(chat(&body.to_string())).await;
            assert_eq!(reply.status, 200, "{}", reply.text());
            assert_eq!(server.host.allowed_bytes.borrow().len(), 2);
        },
    );
}

#[test]
fn urls_of_the_network_are_refused_with_the_name_of_the_option() {
    see_remote(json!({}), &[(REMOTE, Some(png(1)))], async |server| {
        for images in [json!([REMOTE]), json!([["HTTP://a.example/b.png"]])] {
            let reply = server
                .complete(json!({"prompt": "<image>", "images": images}))
                .await;
            assert_eq!(reply.error().1, "invalid_value");
            assert!(
                reply.text().contains("remoteImages: true"),
                "{}",
                reply.text()
            );
        }
        let other = json!({"prompt": "<image>", "images": ["ftp://a.example/b.png"]});
        let reply = server.complete(other).await;
        assert!(!reply.text().contains("remoteImages"), "{}", reply.text());
        assert!(server.host.allowed_bytes.borrow().is_empty());
    });
}

#[test]
fn remote_images_have_the_bounds_of_a_body() {
    let file = png(1);
    let bound = 2 * file.len() + file.len() / 2;
    let files = [
        ("http://a.example/1", Some(file.clone())),
        ("http://a.example/2", Some(file.clone())),
        ("http://a.example/3", Some(file.clone())),
    ];
    let switches = json!({"remoteImages": true, "maxBodyBytes": bound});
    see_remote(switches, &files, async |server| {
        let urls: Vec<&str> = files.iter().map(|(url, _)| *url).collect();
        let members = json!({"prompt": "<image><image>", "images": urls[..2], "max_tokens": 1});
        server.ok(members).await;
        let members = json!({"prompt": "<image><image><image>", "images": urls});
        let reply = server.complete(members).await;
        assert_eq!(reply.error().1, "invalid_value");
        assert!(
            reply.text().contains("http://a.example/3"),
            "{}",
            reply.text()
        );
        let allowed = server.host.allowed_bytes.borrow();
        let (first, second) = (bound - file.len(), bound - 2 * file.len());
        assert_eq!(*allowed, [bound, first, bound, first, second]);
    });
}

#[test]
fn a_remote_image_that_fails_or_never_comes_is_named() {
    let silent = "https://silent.example/a.png";
    let files = [
        (silent, None),
        ("https://text.example/", Some(b"hello".to_vec())),
    ];
    see_remote(json!({"remoteImages": true}), &files, async |server| {
        server.host.is_hasty.set(true);
        for (url, reason) in [
            (silent, "did not arrive within 30 s"),
            ("https://none.example/a.png", "could not be fetched"),
            ("https://text.example/", "none of png"),
        ] {
            let members = json!({"prompt": "<image>", "images": [url]});
            let reply = server.complete(members).await;
            assert_eq!(reply.error().1, "invalid_value");
            assert!(reply.text().contains(reason), "{}", reply.text());
        }
        // The request that never ended was dropped with its time.
        assert_eq!(server.host.dropped.get(), 1);
    });
}
