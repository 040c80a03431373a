//! `node scripts/fuzz/seeds.mjs`: writes the first inputs of each fuzz target into `tests/fuzz/corpus`, made from the small
//! models of `tests/parity` and from strings here. libFuzzer adds what it finds with `npm run fuzz -- --keep`.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { headerBytes, readHeader } from "../gguf_header.mjs";
import { root } from "../process.mjs";

const parity = (...path) => join(root, "tests/parity", ...path);
const list = (folder, suffix) => readdirSync(folder).filter((name) => name.endsWith(suffix));

function write(target, name, content) {
  const folder = join(root, "tests/fuzz/corpus", target);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), content);
}

/** The header of a GGUF file. The targets continue files with zeros. */
function ggufHeader(file) {
  return file.subarray(0, headerBytes(readHeader(file), readHeader(file).tensors));
}

/** The files in a tar archive. Headers and files fill blocks of 512 bytes. */
function* archived(path) {
  let rest = readFileSync(path);
  while (rest[0] !== 0) {
    const field = (from, to) => rest.toString("latin1", from, to).split("\0")[0];
    const end = 512 + Number.parseInt(field(124, 136), 8);
    yield [field(0, 100), rest.subarray(512, end)];
    rest = rest.subarray(Math.ceil(end / 512) * 512);
  }
}

/** The header of a safetensors file. */
function safetensorsHeader(path) {
  const file = readFileSync(path);
  return file.subarray(0, 8 + Number(file.readBigUInt64LE(0)));
}

for (const folder of ["models", "embeddings", "images"]) {
  for (const name of list(parity(folder), ".gguf")) {
    const target = name.includes("mmproj") ? "projector" : "gguf";
    write(target, name, ggufHeader(readFileSync(parity(folder, name))));
  }
}
for (const name of list(parity("images"), ".tar")) {
  for (const [part, file] of archived(parity("images", name))) {
    const model = name.replace(".tar", "");
    if (part === "text.gguf") write("gguf", `${model}.gguf`, ggufHeader(file));
    if (part === "tower.gguf") write("projector", `${model}.mmproj.gguf`, ggufHeader(file));
  }
}

const HUGGING_FACE = [
  "models/qwen3-hf",
  "models/mistral-hf",
  "models/awq-hf",
  "embeddings/bert-hf",
];
for (const folder of HUGGING_FACE) {
  const name = folder.split("/")[1];
  const files = list(parity(folder), "").filter((file) => /\.(json|safetensors)$/.test(file));
  const parts = files.flatMap((file) => {
    const path = parity(folder, file);
    const isTensors = file.endsWith(".safetensors");
    const content = isTensors ? safetensorsHeader(path) : readFileSync(path);
    if (isTensors) write("safetensors", `${name}-${file}`, content);
    if (file === "tokenizer.json") {
      write("tokenizer", name, Buffer.concat([content, Buffer.from("\0Hello <s>wörld 123")]));
    }
    return [Buffer.from(`=== ${file}\n`), content, Buffer.from("\n")];
  });
  write("hugging_face", name, Buffer.concat(parts));
}

const TEMPLATES = {
  loop: "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
  tools:
    "{{ bos_token }}{%- if tools %}{% for t in tools %}{{ t | tojson(indent=4) }}\n{% endfor %}{% endif %}{% for m in messages %}{% if m.tool_calls is defined %}{% for c in m.tool_calls %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}{% else %}{{ m['content'] }}{% endif %}{% endfor %}",
  methods:
    "{% set ns = namespace(s='') %}{% for i in range(9) %}{% set ns.s = ns.s ~ 'ab'.replace('a', 'cd').upper().split('c')[0] %}{% endfor %}{{ ns.s }}{{ ', '.join(['a','b']) }}{{ '{:>8}|{}'.format('a', 1) }}{{ '%s %d' | format('a', 3) }}",
  macro:
    "{% macro show(x, depth=0) %}{% if x is mapping %}{% for k, v in x | dictsort %}{{ k }}{{ show(v, depth + 1) }}{% endfor %}{% else %}{{ x | string | length }}{% endif %}{% endmacro %}{{ show(tools[0]) }}{{ strftime_now('%d %b %Y') }}{{ messages[-1].content[:3] ~ messages[::-1] | length }}",
  refuse:
    "{% if messages[0].role != 'user' %}{{ raise_exception('no ' + messages[0].role) }}{% endif %}{{ 'x' * 10 }}{{ [1, 2] * 3 }}{% generation %}a{% endgeneration %}{% break %}",
};
for (const [name, template] of Object.entries(TEMPLATES)) {
  write("chat_template", name, `${template}\0[{"role":"user","content":"Hi"}]`);
}

const MESSAGES = '"messages":[{"role":"user","content":"Hi"}]';
const TOOLS =
  '"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}}}]';
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
// The first line is the route's path (`tests/fuzz/src/targets/request.rs`).
const REQUESTS = [
  [
    "completions",
    '{"model":"default","prompt":"The capital","max_tokens":4,"logprobs":2,"n":2,"stream":true,"stop":["a"]}',
  ],
  [
    "completions",
    '{"prompt":["a",[5,6]],"best_of":3,"echo":true,"logit_bias":{"5":-100},"seed":7,"temperature":0.5,"suffix":"b"}',
  ],
  [
    "completions",
    '{"prompt":"a","guided_regex":"[ab]{2}","dry_multiplier":0.8,"dry_sequence_breakers":["\\n"],"bad_words":["q"],"min_tokens":2}',
  ],
  [
    "completions",
    '{"prompt":"a","grammar":"root ::= \\"x\\" | \\"y\\"","mirostat":2,"samplers":["top_k","temperature"],"truncate_prompt_tokens":3}',
  ],
  [
    "chat/completions",
    `{"model":"default",${MESSAGES},"max_completion_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`,
  ],
  [
    "chat/completions",
    `{${MESSAGES},${TOOLS},"tool_choice":"required","parallel_tool_calls":false}`,
  ],
  [
    "chat/completions",
    `{${MESSAGES},"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":{"type":"object","properties":{"x":{"enum":[1,"b"]}}}}},"logprobs":true,"top_logprobs":2}`,
  ],
  [
    "chat/completions",
    `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,${PNG}"}}]}]}`,
  ],
  [
    "chat/completions",
    `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"1"}]}`,
  ],
  [
    "responses",
    '{"model":"default","input":"Hi","max_output_tokens":16,"stream":true,"store":false}',
  ],
  [
    "responses",
    '{"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"1"}],"text":{"format":{"type":"json_object"}}}',
  ],
  ["embeddings", '{"input":["a",[5,6]],"encoding_format":"base64","dimensions":2}'],
  ["tokenize", '{"prompt":"Hello","add_special_tokens":true,"with_pieces":true}'],
  ["detokenize", '{"tokens":[1,5,6,7]}'],
  [
    "apply-template",
    `{${MESSAGES},"add_generation_prompt":true,"chat_template_kwargs":{"enable_thinking":false}}`,
  ],
  ["responses/input_tokens", '{"model":"default","input":"Hi","instructions":"a"}'],
  [
    "messages",
    '{"model":"default","max_tokens":8,"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"b","signature":""},{"type":"tool_use","id":"c","name":"f","input":{"d":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"e"}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}],"stream":true}',
  ],
  ["messages/count_tokens", `{"model":"default",${MESSAGES}}`],
  ["rerank", '{"model":"default","query":"a","documents":["b",{"text":"c"}],"top_n":1}'],
  [
    "responses/compact",
    '{"model":"default","input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"type":"compaction","encrypted_content":"eyJmb3JtYXQiOiJpbnBhZ2UtY29tcGFjdGlvbiIsInZlcnNpb24iOjEsInN1bW1hcnkiOiJhYiIsImNoZWNrc3VtIjoiMDg5YzQ0MDdiNTQ1OTg2YSJ9"}]}',
  ],
];
for (const [index, [path, body]] of REQUESTS.entries()) {
  write("request", `request-${index}`, `${path}\n${body}`);
}

const GRAMMARS = [
  [0, 'root ::= item+\nitem ::= "- " [^\\n]{1,5} "\\n" # list\n'],
  [
    0,
    'root ::= "{" ws (pair ("," ws pair)*)? "}"\npair ::= "\\"a\\"" ":" [0-9]+\nws ::= [ \\t]*\n',
  ],
  [1, 'start: "a" b* | /[0-9]{2,3}/\nb: "x"i | C~2..3\nC: /q+/\n%ignore / /\n'],
  [1, 'start: obj\nobj: %json {"type": "object", "properties": {"a": {"type": "null"}}}\n'],
  [2, "(a|bc)*[^x-z\\d]{2,5}\\p{Lu}?$"],
  [
    3,
    '{"type":"object","properties":{"a":{"type":"integer","minimum":3},"b":{"$ref":"#/$defs/n"}},"required":["a"],"$defs":{"n":{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"string","pattern":"^a+$","maxLength":4},"minItems":1}]}}}',
  ],
  [
    3,
    '{"oneOf":[{"const":{"x":[1,2.5]}},{"enum":["é",true]},{"type":"string","format":"date-time"}],"allOf":[{"not":{"type":"object"}}]}',
  ],
  [4, '{"grammars":[{"lark_grammar":"start: \\"a\\""}],"max_tokens":5}'],
];
for (const [index, [kind, source]] of GRAMMARS.entries()) {
  write("grammar", `grammar-${index}`, String.fromCharCode(kind) + source);
}

/** A BMP file of 2x1 pixels. */
const BMP = Buffer.from(
  "424d3e0000000000000036000000280000000200000001000000010018000000000008000000130b0000130b00000000000000000000ff0000" +
    "00ff000000",
  "hex",
);
write("image", "pixels.bmp", BMP);
const raw = { width: 5, height: 3, channels: 4 };
const pixels = Buffer.from(Array.from({ length: 60 }, (_, index) => (index * 37) % 256));
for (const format of ["png", "jpeg", "webp", "gif"]) {
  const { default: sharp } = await import("sharp");
  write("image", `pixels.${format}`, await sharp(pixels, { raw }).toFormat(format).toBuffer());
}
