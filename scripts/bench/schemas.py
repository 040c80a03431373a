"""Measures how many documents of 200 JSON schemas a served model completes, and how many are valid.

usage: python scripts/bench/schemas.py [--url http://127.0.0.1:8080] [--limit 200] [--max-tokens 512] [--seed N] [--parallel 4]
Needs `pip install jsonschema`. The schemas are made here, after the kinds of schemas that programs use: configurations, payloads of
APIs, nested lists, enumerations, formats and optional members. Without --seed decoding is greedy.
"""

import argparse
import collections
import concurrent.futures
import itertools
import json
import random
import time
import urllib.error
import urllib.request

import jsonschema

WORDS = "name title city email status price count enabled tags notes url owner country language version category amount score reason description".split()
THINGS = "user order product server article event invoice recipe movie book ticket device flight song course job vehicle payment message review".split()


def leaf(draw, word):
    """The schema of a member without members."""
    if word in ("price", "amount", "score"):
        return draw.choice([{"type": "number"}, {"type": "number", "minimum": 0}, {"type": "integer"}])
    if word in ("count", "version"):
        return draw.choice([{"type": "integer"}, {"type": "integer", "minimum": 1, "maximum": 100}, {"type": ["integer", "null"]}])
    if word == "enabled":
        return {"type": "boolean"}
    if word == "tags":
        return {"type": "array", "items": {"type": "string"}}
    if word in ("status", "category", "language", "country"):
        return draw.choice([{"enum": ["low", "medium", "high"]}, {"type": "string", "enum": ["open", "closed", "unknown"]}, {"type": "string"}])
    if word in ("notes", "description", "reason", "title"):
        return draw.choice([{"type": "string"}, {"type": "string", "maxLength": 120}, {"type": ["string", "null"]}])
    if word == "email":
        return {"type": "string", "format": "email"}
    if word == "url":
        return draw.choice([{"type": "string"}, {"type": "string", "format": "uri"}])
    return {"type": "string"}


def members(draw, least, most, extra=None):
    words = draw.sample(WORDS, draw.randint(least, most))
    properties = {word: leaf(draw, word) for word in words}
    properties.update(extra or {})
    required = [name for name in properties if draw.random() < 0.6] or list(properties)[:1]
    return {"type": "object", "properties": properties, "required": required}


def configuration(draw):
    sections = {name: members(draw, 2, 4) for name in draw.sample(["server", "database", "logging", "cache", "auth"], 2)}
    schema = members(draw, 1, 2, sections)
    schema["additionalProperties"] = draw.choice([False, False, True])
    return schema


def payload(draw):
    when = draw.choice([{"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}])
    identifier = draw.choice([{"type": "integer"}, {"type": "string", "format": "uuid"}, {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}])
    return members(draw, 2, 6, {"id": identifier, "created_at": when})


def nested(draw):
    item = members(draw, 2, 3, {"parts": {"type": "array", "items": members(draw, 1, 2)}})
    many = {"type": "array", "items": item}
    if draw.random() < 0.5:
        many.update(minItems=1, maxItems=5)
    return members(draw, 1, 2, {"items": many})


def enumeration(draw):
    kinds = {f"kind_{at}": {"enum": draw.sample(["a", "b", 1, 2, None, True, "none"], 4)} for at in range(draw.randint(1, 4))}
    return members(draw, 0, 2, kinds)


def union(draw):
    def branch(kind):
        schema = members(draw, 1, 3, {"kind": {"const": kind}})
        schema["required"] = sorted({*schema["required"], "kind"})
        return schema

    thing = {"$defs": {"one": branch("one"), "two": branch("two")}}
    return {"type": "object", "properties": {"value": {"anyOf": [{"$ref": "#/$defs/one"}, {"$ref": "#/$defs/two"}]}}, "required": ["value"], **thing}


def inherited(draw):
    base = members(draw, 1, 3)
    return {"$defs": {"base": base}, "allOf": [{"$ref": "#/$defs/base"}, members(draw, 1, 2, {"extra": {"type": "string"}})]}


def tree(draw):
    node = members(draw, 1, 2, {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}})
    return {"$defs": {"node": node}, "$ref": "#/$defs/node"}


def optional(draw):
    schema = members(draw, 6, 12)
    schema["required"] = schema["required"][:1]
    return schema


def numbers(draw):
    names = draw.sample(["latitude", "longitude", "ratio", "total", "mean", "year"], 4)
    return {"type": "object", "properties": {name: {"type": draw.choice(["number", "integer"])} for name in names}, "required": names}


def tuples(draw):
    point = {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "minItems": 2}
    return members(draw, 1, 2, {"points": {"type": "array", "items": point}})


KINDS = [configuration, payload, nested, enumeration, union, inherited, tree, optional, numbers, tuples]


def schemas():
    """Kind, subject and schema of each of the 200."""
    draw = random.Random(7)
    for index, kind in zip(range(200), itertools.cycle(KINDS)):
        yield kind.__name__, THINGS[index % len(THINGS)], kind(draw)


def ask(arguments, kind, thing, schema):
    """Kind, outcome, tokens and what is to be said of one document."""
    body = {
        "model": "default",
        "messages": [{"role": "user", "content": f"Write a JSON document that describes a {thing}."}],
        "response_format": {"type": "json_schema", "json_schema": {"name": thing, "schema": schema}},
        "max_tokens": arguments.max_tokens,
        "temperature": 0 if arguments.seed is None else 0.7,
        "seed": arguments.seed or 0,
    }
    request = urllib.request.Request(f"{arguments.url}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        answer = json.load(urllib.request.urlopen(request))
    except urllib.error.HTTPError as error:
        return kind, "refused", 0, error.read().decode()[:200]
    choice, tokens = answer["choices"][0], answer["usage"]["completion_tokens"]
    content = choice["message"]["content"]
    if choice["finish_reason"] != "stop":
        return kind, "cut", tokens, content[-160:].replace("\n", " ")
    try:
        jsonschema.validate(json.loads(content), schema)
    except (ValueError, jsonschema.ValidationError) as error:
        return kind, "invalid", tokens, str(error)[:200]
    return kind, "valid", tokens, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--parallel", type=int, default=4)
    arguments = parser.parse_args()
    results = collections.defaultdict(collections.Counter)
    lengths, start = [], time.time()
    with concurrent.futures.ThreadPoolExecutor(arguments.parallel) as pool:
        for kind, outcome, tokens, text in pool.map(
            lambda one: ask(arguments, *one), itertools.islice(schemas(), arguments.limit)
        ):
            results[kind][outcome] += 1
            if tokens:
                lengths.append(tokens)
            if text:
                print(kind, f"{outcome}:", text, flush=True)
    total = collections.Counter()
    for kind, counts in results.items():
        print(kind, dict(counts))
        total.update(counts)
    print("all", dict(total), f"mean {sum(lengths) / max(1, len(lengths)):.0f} tokens, {time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
