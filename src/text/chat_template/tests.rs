//! Rendering against what `transformers` renders, and templates that mean harm. The cases of many models are in
//! `chat` beside the folder of model files; without them that test prints a note and passes.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use super::*;

/// 2026-07-15 12:34:56.
const NOW_S: u64 = 1_784_118_896;

fn input<'a>(messages: &'a [Json], variables: &'a Map<String, Json>) -> TemplateInput<'a> {
    TemplateInput {
        messages,
        tools: None,
        add_generation_prompt: true,
        bos_token: "<s>",
        eos_token: "</s>",
        variables,
        now: LocalTime::new(NOW_S, 0),
        marker: Marker::absent_from([]).unwrap(),
    }
}

fn rendered(template: &str, variables: &Json) -> Result<String, TemplateError> {
    let messages = [json!({"role": "user", "content": " Hi "})];
    let variables = variables.as_object().unwrap();
    render(template, &input(&messages, variables))
}

fn chat_dir() -> Option<PathBuf> {
    let models = std::env::var_os("INPAGE_MODELS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/models"),
        PathBuf::from,
    );
    let dir = models.parent()?.join("chat");
    if !dir.is_dir() {
        println!("skipped: no chat templates in {}", dir.display());
        return None;
    }
    Some(dir)
}

#[test]
fn every_case_is_what_transformers_renders() {
    let Some(dir) = chat_dir() else { return };
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    let cases: Vec<Json> = serde_json::from_str(&read("cases.json")).unwrap();
    assert!(cases.len() >= 780);
    for case in &cases {
        let text = |name: &str| case[name].as_str().unwrap_or_default();
        let name = format!("{}/{}", text("template"), text("case"));
        let template = read(&format!("templates/{}.jinja", text("template")));
        let mut variables = case["kwargs"].as_object().unwrap().clone();
        let generates = variables.shift_remove("add_generation_prompt") == Some(Json::Bool(true));
        let plain = case["messages"].as_array().unwrap();
        let mut aliased = plain.clone();
        aliased.iter_mut().for_each(alias_reasoning);
        let tools = case["tools"].as_array().map(Vec::as_slice);
        let result = |messages: &[Json]| {
            let input = TemplateInput {
                tools,
                add_generation_prompt: generates,
                bos_token: text("bos_token"),
                eos_token: text("eos_token"),
                ..input(messages, &variables)
            };
            render(&template, &input)
        };
        if let Some(expected) = case["rendered_no_alias"].as_str() {
            assert_eq!(result(plain).as_deref(), Ok(expected), "{name}");
        }
        match (case["rendered"].as_str(), result(&aliased)) {
            (Some(expected), result) => assert_eq!(result.as_deref(), Ok(expected), "{name}"),
            (None, Ok(text)) => panic!("{name} does not fail: {text}"),
            (None, Err(error)) => match text("error").strip_prefix("TemplateError: ") {
                Some(message) => assert_eq!(error, TemplateError::Refused(message.to_owned())),
                None => assert!(
                    matches!(error, TemplateError::Failed(_)),
                    "{name}: {error:?}"
                ),
            },
        }
    }
}

#[test]
fn an_image_is_the_placeholder_of_its_family() {
    let Some(dir) = chat_dir() else { return };
    for (name, turn) in [
        (
            "qwen3.5",
            "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>What is it?<|im_end|>\n",
        ),
        ("gemma4", "<|turn>user\n<|image|>What is it?<turn|>\n"),
        (
            "gemma3",
            "<start_of_turn>user\n<start_of_image>What is it?<end_of_turn>\n",
        ),
        ("mistral-small3.2", "[INST][IMG]What is it?[/INST]"),
    ] {
        let template =
            std::fs::read_to_string(dir.join(format!("templates/{name}.jinja"))).unwrap();
        let parts = json!([{"type": "image"}, {"type": "text", "text": "What is it?"}]);
        let messages = [json!({"role": "user", "content": parts})];
        let text = render(&template, &input(&messages, &Map::new())).unwrap();
        assert!(text.contains(turn), "{name}: {text}");
    }
}

#[test]
fn blocks_are_trimmed_and_one_newline_at_the_end_is_dropped() {
    let template = "{% for m in messages %}\n  {% if true %}\n{{ m.content | trim }}\n{% endif %}\n\
                    {% endfor %}\nend\n\n";
    assert_eq!(rendered(template, &json!({})).unwrap(), "Hi\nend\n");
    let generation = "a{%- generation %} b {% endgeneration %}c";
    assert_eq!(rendered(generation, &json!({})).unwrap(), "a b c");
}

#[test]
fn values_are_written_as_python_writes_them() {
    let variables = json!({
        "o": {"z": 1, "a": [1.0, 1e16, 1e-5, 0.1, -0.0, true, null, "<é\"\n\u{7f}'>"], "items": 2},
    });
    for (template, expected) in [
        (
            "{{ o | tojson }}",
            "{\"z\": 1, \"a\": [1.0, 1e+16, 1e-05, 0.1, -0.0, true, null, \"<é\\\"\\n\u{7f}'>\"], \"items\": 2}",
        ),
        (
            "{{ o | tojson(sort_keys=true, separators=(',', ':')) | length }}",
            "70",
        ),
        (
            "{{ [1, {'b': []}] | tojson(indent=2) }}",
            "[\n  1,\n  {\n    \"b\": []\n  }\n]",
        ),
        (
            "{{ 'é🙂' | tojson(ensure_ascii=true) }}",
            "\"\\u00e9\\ud83d\\ude42\"",
        ),
        (
            "{{ o }}",
            "{'z': 1, 'a': [1.0, 1e+16, 1e-05, 0.1, -0.0, True, None, '<é\"\\n\\x7f\\'>'], 'items': 2}",
        ),
        ("{{ [none, true] }} {{ none }}", "[None, True] None"),
        ("{{ o.items() | list | length }} {{ o['items'] }}", "3 2"),
        (
            "{{ 'a-b'.removeprefix('a-') }} {{ 'a b'.split() }}",
            "b ['a', 'b']",
        ),
        ("{{ strftime_now('%d %b %Y') }}", "15 Jul 2026"),
        (
            "{{ bos_token }}{{ tools is none }}{{ documents }}{{ missing }}",
            "<s>TrueNone",
        ),
        (
            "{{ add_generation_prompt }} {{ none is iterable }}",
            "True False",
        ),
    ] {
        assert_eq!(
            rendered(template, &variables).as_deref(),
            Ok(expected),
            "{template}"
        );
    }
}

#[test]
fn variables_replace_the_usual_ones() {
    let template = "{{ bos_token }}{{ x }}";
    let variables = json!({"bos_token": "b", "x": "y"});
    assert_eq!(rendered(template, &variables).unwrap(), "by");
}

#[test]
fn errors_say_what_is_wrong() {
    let error = |template| rendered(template, &json!({})).unwrap_err();
    assert_eq!(
        error("{{ raise_exception('no ' ~ messages[0].role) }}"),
        TemplateError::Refused("no user".into())
    );
    assert!(matches!(error("{% if %}"), TemplateError::Syntax(text) if text.contains("line 1")));
    for template in [
        "{% for x in none %}{% endfor %}",
        "{{ none + 'a' }}",
        "{{ 'a' in none }}",
        "{% include 'x' %}",
    ] {
        let error = error(template);
        let is_expected = matches!(error, TemplateError::Failed(_) | TemplateError::Syntax(_));
        assert!(is_expected, "{template}: {error:?}");
    }
}

#[test]
fn markers_pass_through_tojson() {
    let marker = Marker::absent_from(["\u{fdd0}"]).unwrap();
    let variables = json!({"x": format!("é{}", marker.char())});
    let input = TemplateInput {
        marker,
        ..input(&[], variables.as_object().unwrap())
    };
    let text = render("{{ x | tojson(ensure_ascii=true) }}", &input).unwrap();
    assert_eq!(text, format!("\"\\u00e9{}\"", marker.char()));
    assert_eq!(marker.remove(&text), "\"\\u00e9\"");
}

/// A page's wasm stack has 1 MB, and its frames are smaller than those of a test.
#[test]
fn hostile_templates_end_with_an_error() {
    let nested = |open: &str, middle: &str, close: &str, count: usize| {
        format!("{}{middle}{}", open.repeat(count), close.repeat(count))
    };
    let doubled = |step: &str| {
        format!(
            "{{% set ns = namespace(x=[1]) %}}{{% for i in range(10000) %}}{{% set ns.x = {step} %}}\
             {{% endfor %}}{{{{ ns.x }}}}{{{{ ns.x | tojson }}}}"
        )
    };
    let templates = [
        "{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}".into(),
        "{% for i in range(9999) %}{% for j in range(9999) %}abcdefghijklmnopqrstuvwxyz{% endfor %}\
         {% endfor %}"
            .into(),
        // The library panics at such keys.
        "{{ '%((é%d' | format('a', 4) }}".into(),
        "{{ '{a[{é]}'.format(a=1) }}".into(),
        "{{ '{a[b][é'.format(a=1) }}".into(),
        "{{ 'x' * 90000000 }}".into(),
        "{{ [1] * 90000000 }}".into(),
        "{{ [[1] * 90000000] | tojson }}".into(),
        doubled("ns.x + ns.x"),
        doubled("[ns.x, ns.x]"),
        doubled("[ns.x]"),
        doubled("{'a': ns.x}"),
        doubled("(ns.x | string) * 2"),
        "{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x }}".into(),
        "{% macro f(x) %}{{ f([x]) }}{% endmacro %}{{ f(1) }}".into(),
        "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}".into(),
        nested("{% for a in [messages + messages] %}", "", "{% endfor %}", 60),
        nested("{% if 1 %}", "", "{% endif %}", 100_000),
        format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(100_000)),
        format!("{{{{ {} }}}}", nested("(", "1", ")", 100_000)),
        format!("{{{{ {} }}}}", nested("[", "1", "]", 100_000)),
        format!("{{{{ 1{} }}}}", " ~ 1".repeat(100_000)),
        format!("{{{{ {}1 }}}}", "not ".repeat(100_000)),
        format!("{{{{ x{} }}}}", ".a".repeat(100_000)),
        format!("{{{{ x{} }}}}", "|string".repeat(100_000)),
    ];
    let run = move || {
        for template in &templates {
            let shown = &template[..template.len().min(60)];
            let error = rendered(template, &json!({})).expect_err(shown);
            assert!(
                matches!(error, TemplateError::TooMuch(_) | TemplateError::Failed(_)),
                "{shown}: {error:?}"
            );
        }
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run);
    thread.unwrap().join().unwrap();
}

/// Just within the bounds, the stack holds out as well.
#[test]
fn the_deepest_templates_are_rendered() {
    let chain = |text: &str, count: usize| text.repeat(count);
    let templates = [
        format!("{}1{}", chain("{% if 1 %}", 48), chain("{% endif %}", 48)),
        format!(
            "{}{{{{ 1{} }}}}{}",
            chain("{% for i in [1] %}", 48),
            chain(" ~ 1", 190),
            chain("{% endfor %}", 48)
        ),
        format!("{{{{ {}1{} }}}}", chain("[", 24), chain("]", 24)),
        format!("{{{{ {}1 }}}}", chain("not ", 390)),
        format!("{{{{ 'a'{} }}}}", chain("|trim", 190)),
    ];
    let run = move || {
        for template in &templates {
            assert!(rendered(template, &json!({})).is_ok_and(|text| !text.is_empty()));
        }
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run);
    thread.unwrap().join().unwrap();
}

/// Each would take gigabytes or minutes if it were not paid for before it happens.
#[test]
fn what_grows_is_paid_for_first() {
    let s = "{% set s = 'x' * 1000000 %}";
    let templates = [
        format!("{s}{{{{ s.replace('x', s) }}}}"),
        format!("{s}{{{{ s | replace('x', s) }}}}"),
        format!("{s}{{{{ s.replace('', s, 5000) }}}}"),
        "{{ ('x'*1000000).join(range(3000)) }}".into(),
        format!("{s}{{{{ range(3000) | join(s) }}}}"),
        format!("{s}{{{{ ([s] * 3000) | join }}}}"),
        format!("{s}{{{{ ''.join([s] * 3000) }}}}"),
        format!("{s}{{% set l = [s] * 300 %}}{{{{ (l + l + l) | string }}}}"),
        format!("{s}{{{{ '' ~ [s] * 3000 }}}}"),
        format!("{s}{{% set l = [s] * 250 %}}{{{{ [l, l, l] in s }}}}{{{{ [l, l] is in s }}}}"),
        format!("{s}{{{{ [s, s, s] * 2000 }}}}"),
        "{{ '' ~ [1] * 90000000 }}".into(),
        "{{ [[1] * 10000] * 10000 == [[1] * 10000] * 10000 }}".into(),
        "{{ '{:>2000000000}'.format('a') }}".into(),
        "{{ '{:.2000000000f}'.format(1.5) }}".into(),
        "{{ '%2000000000d' | format(1) }}".into(),
        "{{ '%*d' | format(2000000000, 1) }}".into(),
        format!("{s}{{{{ ('{{0}}' * 1000).format(s) }}}}"),
        format!("{s}{{{{ ('%(a)s' * 1000) | format(a=s) }}}}"),
        "{{ [[1] * 1000] | tojson(indent='x'*1000000) }}".into(),
        "{{ messages | tojson(indent=2000000000) }}".into(),
        "{{ ([1] * 1000) | tojson(separators=('x' * 1000000, ':')) }}".into(),
        "{{ ('\n' * 30000000).splitlines() | length }}".into(),
        "{{ (' a' * 10000000).split() | length }}".into(),
        "{{ ('a,' * 10000000) | split(',') | length }}".into(),
        "{{ ('a\n' * 1000000) | indent(64) | indent(64) }}".into(),
        "{{ 'a\nb' | indent(2000000000) }}".into(),
        format!("{s}{{{{ ([s] * 10000) | sum(start='') }}}}"),
        "{% for i in range(99) %}{{ range(99999) | map('string') | list }}{% endfor %}".into(),
        "{{ range(99999) | batch(1) | map('string') | join('x' * 10000) }}".into(),
        "{{ [1] | batch(100000000, 'a') | first | length }}".into(),
        "{{ [1] | slice(100000000) | first | length }}".into(),
        format!("{s}{{% for i in range(9999) %}}{{{{ s | upper | lower | title | capitalize | escape }}}}{{% endfor %}}"),
        format!("{s}{{% set ns = namespace(s=s) %}}{{% for i in range(60) %}}{{% set ns.s = ns.s ~ ns.s %}}{{% endfor %}}"),
        format!("{s}{{% set ns = namespace(s=s) %}}{{% for i in range(60) %}}{{% set ns.s = ns.s + ns.s %}}{{% endfor %}}"),
        format!("{s}{{{{ raise_exception([s] * 3000) }}}}"),
        format!("{s}{{{{ strftime_now('%c' * 90000000) }}}}"),
        format!("{s}{{{{ s.strip(s) }}}}"),
        "{% macro f(x) %}{{ f([x, x]) }}{{ x == [x] }}{% endmacro %}{{ f(1) }}".into(),
        "{% macro f(x) %}{{ f([[[[[[[[x]]]]]]]]) }}{% endmacro %}{{ f(1) }}".into(),
        "{% for a in [1] recursive %}{{ loop([[a, a]]) }}{% endfor %}".into(),
        "{% for a in [1] recursive %}{{ loop([[[[[[[[[a]]]]]]]]]) }}{% endfor %}".into(),
        "{% macro f(n) %}{{ caller([n, n]) }}{% endmacro %}{% macro g(n) %}{% call(x) f(n) %}{{ g(x) }}{% endcall %}\
         {% endmacro %}{{ g(1) }}"
            .into(),
        format!("{s}{{{{ ([s] * 100) | sort | unique | list | length }}}}{}", "{{ [s, s] * 100 | sort }}".repeat(90)),
        format!("{s}{{% set x %}}{{% for i in range(9999) %}}{{{{ s }}}}{{% endfor %}}{{% endset %}}"),
        "{% for x in range(99999) %}{% for y in range(99999) %}{% if x == y * -1 %}{% endif %}{% endfor %}{% endfor %}".into(),
    ];
    for template in &templates {
        let shown = &template[..template.len().min(120)];
        let error = rendered(template, &json!({})).expect_err(shown);
        assert!(
            matches!(error, TemplateError::TooMuch(_) | TemplateError::Failed(_)),
            "{shown}: {error:?}"
        );
    }
}

/// The loop of Llama 3.1's template over a tool that is nested deeply, in a long conversation.
#[test]
fn indentation_is_paid_for() {
    let mut tool = json!(vec![1; 500_000]);
    for _ in 0..115 {
        tool = json!([tool]);
    }
    let messages = vec![json!({"role": "user", "content": "a"}); 100];
    let template = "{%- for t in tools %}{{- t | tojson(indent=4) }}{{- '\n\n' }}{%- endfor %}";
    let tools = [tool];
    let variables = Map::new();
    let input = TemplateInput {
        tools: Some(&tools),
        ..input(&messages, &variables)
    };
    let error = render(template, &input).unwrap_err();
    assert_eq!(error, TemplateError::TooMuch("it computes too long".into()));
}

#[test]
fn operators_write_as_python_does() {
    for (template, expected) in [
        (
            "{{ 'a' ~ [true, none, 'b'] ~ 1.0 ~ none ~ missing }}",
            "a[True, None, 'b']1.0None",
        ),
        ("{{ 2 * 3 ~ 'x' * 2 ~ -2 * 4 }}", "6xx-8"),
        (
            "{{ 1.5 * 2 }} {{ true * 3 }} {{ 7 // 2 * 2 % 4 }} {{ 9007199254740993 * 9007199254740993 }}",
            "3.0 3 2 81129638414606699710187514626049",
        ),
        (
            "{{ [1, 'a'] * 2 }} {{ (1,) * 2 }} {{ [1] * -1 }} {{ 2 * [3] }}",
            "[1, 'a', 1, 'a'] (1, 1) [] [3, 3]",
        ),
        (
            "{{ ['a', 1, none] | join('-') }} {{ [{'a': {'b': 1}}] | join(attribute='a.b') }}",
            "a-1-None 1",
        ),
        (
            "{{ 'a b'|replace(' ', 3) }} {{ 'aaa'|replace('a', 'b', count=2) }} {{ ' a '|trim }} {{ 'xax'|trim('x') }}",
            "a3b bba a a",
        ),
        (
            "{{ 'a\n\nb'|indent }}|{{ 'a\nb'|indent(2, true) }}|{{ 'a\nb'|indent('> ') }}",
            "a\n\n    b|  a\n  b|a\n> b",
        ),
        (
            "{{ [3, 1, 2]|sort|join }} {{ [1, 1]|unique|list }} {{ [1, 2]|sum }} {{ [[1], [2]]|sum(start=[])|list }}",
            "123 [1] 3 [1, 2]",
        ),
        (
            "{{ '{:>4}{}'.format('a', 'b') }} {{ '%s-%03d'|format('a', 7) }}",
            "   ab a-007",
        ),
        (
            "{% macro f(a, b=2) %}{{ a * b }}{% endmacro %}{{ f(3) }}{{ f('a', b=3) }}",
            "6aaa",
        ),
        (
            "{% if 'a' is in ['a'] and 'a' ~ 'b' == 'ab' %}yes{% elif 1 %}no{% endif %}",
            "yes",
        ),
    ] {
        assert_eq!(
            rendered(template, &json!({})).as_deref(),
            Ok(expected),
            "{template}"
        );
    }
}

/// Messages in the tokens of Llama 4, and calls as its JSON.
#[test]
fn turns_of_llama_4_render_with_calls_and_results() {
    let template = r#"{{ bos_token }}
{%- for message in messages %}
    {%- set role = 'ipython' if message.role == 'tool' else message.role %}
    {{- '<|header_start|>' + role + '<|header_end|>\n\n' }}
    {%- if message.tool_calls %}
        {%- for call in message.tool_calls %}
            {{- '{"name": "' + call.function.name + '", "parameters": ' + call.function.arguments | tojson + '}' }}
        {%- endfor %}
    {%- elif message.content is string %}
        {{- message.content | trim }}
    {%- else %}
        {%- for part in message.content %}
            {{- '<|image|>' if part.type == 'image' else part.text | trim }}
        {%- endfor %}
    {%- endif %}
    {{- '<|eom|>' if message.tool_calls else '<|eot|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|header_start|>assistant<|header_end|>\n\n' }}
{%- endif %}"#;
    let messages = [
        json!({"role": "user", "content": [{"type": "image"}, {"type": "text", "text": " Here? "}]}),
        json!({"role": "assistant", "tool_calls": [
            {"type": "function", "function": {"name": "now", "arguments": {"city": "Oslo"}}}
        ]}),
        json!({"role": "tool", "content": "noon"}),
    ];
    let variables = Map::new();
    let text = render(template, &input(&messages, &variables)).unwrap();
    assert_eq!(
        text,
        "<s><|header_start|>user<|header_end|>\n\n<|image|>Here?<|eot|>\
         <|header_start|>assistant<|header_end|>\n\n{\"name\": \"now\", \"parameters\": {\"city\": \"Oslo\"}}<|eom|>\
         <|header_start|>ipython<|header_end|>\n\nnoon<|eot|><|header_start|>assistant<|header_end|>\n\n"
    );
}
