//! The tokens of prompts with images, counted without the model: they are those that an answer reports.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{ImageFormat as FileType, RgbImage};
use inpage::api::Request;
use inpage::images::{Filter, GridSizes, ImageFormat, ImageGeometry, ImageMarkup};
use serde_json::{Value, json};

use crate::fixture::*;

const TEMPLATE: &str = "{% for m in messages %}<|sep|>{% if m.content is string %}{{ m.content }}{% else %}\
    {% for part in m.content %}{% if part['type'] == 'image' %}<image>{% else %}{{ part.text }}{% endif %}{% endfor %}\
    {% endif %}{% endfor %}<|sep|>";
/// A template that knows texts only.
const OF_TEXTS: &str = "{% for m in messages %}<|sep|>{{ m.content }}{% endfor %}<|sep|>";
const CONTROL: [&str; 3] = ["<image>", "<fake_token_around_image>", "<global-img>"];
const PLAIN: ImageMarkup = ImageMarkup::plain("<image>");

fn url(width: u32, height: u32) -> String {
    let mut file = Cursor::new(Vec::new());
    let image = RgbImage::from_pixel(width, height, image::Rgb([9, 90, 200]));
    image.write_to(&mut file, FileType::Png).unwrap();
    format!(
        "data:image/png;base64,{}",
        STANDARD.encode(file.into_inner())
    )
}

fn formats() -> [ImageFormat; 3] {
    let format = |markup, geometry| ImageFormat {
        markup,
        filter: Filter::Bilinear,
        geometry,
    };
    [
        format(
            &TILE_MARKUP,
            ImageGeometry::Tiles {
                size: 8,
                longest_edge: 16,
                rows: 2,
            },
        ),
        format(&PLAIN, ImageGeometry::Stretched { size: 8, rows: 5 }),
        format(
            &PLAIN,
            ImageGeometry::Grid(GridSizes {
                side: 4,
                min_pixels: 64,
                max_pixels: 256,
            }),
        ),
    ]
}

async fn sent(server: &Server, url: &str, body: &Value) -> Value {
    let request = Request {
        url: url.into(),
        ..chat(&body.to_string())
    };
    let reply = server.send(request).await;
    assert_eq!(reply.status, 200, "{url}: {}", reply.text());
    reply.json()
}

#[test]
fn counts_are_those_of_answers() {
    serve_default(async |server| {
        let mut found = Vec::new();
        for format in formats() {
            for template in [TEMPLATE, OF_TEXTS] {
                server.see_as(format, CONTROL, template);
                let sizes: &[&[(u32, u32)]] = match format.geometry {
                    ImageGeometry::Tiles { .. } => &[&[(16, 8)], &[(5, 15)]],
                    _ => &[&[(16, 8)], &[(5, 15)], &[(8, 8), (3, 4)]],
                };
                for sizes in sizes {
                    let urls: Vec<String> = sizes.iter().map(|(w, h)| url(*w, *h)).collect();
                    let chat: Vec<Value> = urls
                        .iter()
                        .map(|url| json!({"type": "image_url", "image_url": {"url": url}}))
                        .collect();
                    let items: Vec<Value> = urls
                        .iter()
                        .map(|url| json!({"type": "input_image", "image_url": url}))
                        .collect();
                    let blocks: Vec<Value> = urls
                        .iter()
                        .map(|url| json!({"type": "image", "source": {"type": "url", "url": url}}))
                        .collect();
                    let of = |content: &[Value]| json!([{"role": "user", "content": content}]);
                    let body = json!({"model": "default", "messages": of(&chat), "max_tokens": 0});
                    let answer = sent(server, "/v1/chat/completions", &body).await;
                    let expected = &answer["usage"]["prompt_tokens"];
                    found.push(expected.as_u64().unwrap());
                    let body = json!({"model": "default", "messages": of(&chat)});
                    let tokens = sent(server, "/v1/tokenize", &body).await;
                    assert_eq!(tokens["count"], *expected);
                    assert_eq!(
                        tokens["tokens"].as_array().unwrap().len() as u64,
                        found[found.len() - 1]
                    );
                    let body = json!({"model": "default", "input": of(&items)});
                    let counted = sent(server, "/v1/responses/input_tokens", &body).await;
                    assert_eq!(counted["input_tokens"], *expected);
                    let body = json!({"model": "default", "messages": of(&blocks)});
                    let counted = sent(server, "/v1/messages/count_tokens", &body).await;
                    assert_eq!(counted["input_tokens"], *expected);
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        assert!(found.len() > 4, "{found:?}");
    });
}

#[test]
fn ids_are_those_of_the_prompt() {
    serve_default(async |server| {
        server.see_as(formats()[0], CONTROL, TEMPLATE);
        let part = json!({"type": "image_url", "image_url": {"url": url(16, 8)}});
        let text = json!({"type": "text", "text": "ab"});
        let messages = json!([{"role": "user", "content": [text, part]}]);
        let body = json!({"model": "default", "messages": messages, "max_tokens": 1, "return_token_ids": true});
        let answer = sent(server, "/v1/chat/completions", &body).await;
        let body = json!({"model": "default", "messages": messages});
        let tokens = sent(server, "/v1/tokenize", &body).await;
        assert!(answer["prompt_token_ids"].is_array(), "{answer}");
        assert_eq!(tokens["tokens"], answer["prompt_token_ids"]);
        let rendered = sent(server, "/v1/apply-template", &body).await;
        assert_eq!(rendered["prompt"], "<|sep|>ab<image><|sep|>");
    });
}

#[test]
fn counts_need_no_room_and_no_place_in_the_queue() {
    serve_default(async |server| {
        server.see_as(formats()[1], CONTROL, TEMPLATE);
        server.plan.held.set(true);
        let image = json!({"type": "input_image", "image_url": url(4, 4)});
        let body =
            json!({"model": "default", "input": [{"role": "user", "content": vec![image; 40]}]});
        let counted = sent(server, "/v1/responses/input_tokens", &body).await;
        assert_eq!(counted["input_tokens"], 3 + 40 * 5);
        server.plan.held.set(false);
    });
}

#[test]
fn what_answers_refuse_is_not_counted() {
    serve_default(async |server| {
        let file = STANDARD
            .decode(&url(16, 8)["data:image/png;base64,".len()..])
            .unwrap();
        // The header is whole.
        let damaged = format!("data:image/png;base64,{}", STANDARD.encode(&file[..40]));
        let of = |url: &str| json!([{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]);
        let refused = async |path: &str, field: &str, url: &str| {
            let body = json!({"model": "default", (field): of(url)});
            let request = Request {
                url: path.into(),
                ..chat(&body.to_string())
            };
            server.send(request).await.error()
        };
        for (is_seeing, url, code) in [
            (true, &*damaged, "invalid_value"),
            (false, &*url(16, 8), "unsupported_parameter"),
            (false, "https://images.example/a.png", "invalid_value"),
        ] {
            match is_seeing {
                true => server.see_as(formats()[1], CONTROL, TEMPLATE),
                false => server.set_template(Some(TEMPLATE)),
            }
            for (path, field) in [
                ("/v1/tokenize", "messages"),
                ("/v1/responses/input_tokens", "input"),
            ] {
                let expected = (400, code.to_owned(), Some(field.to_owned()));
                assert_eq!(refused(path, field, url).await, expected, "{path}");
            }
        }
    });
}
