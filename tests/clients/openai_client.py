"""The official Python client against servers with hooks, of which the second has a model that makes embeddings:
python openai_client.py ORIGIN EMBEDDER_ORIGIN"""

import json
import sys
import time
import urllib.request
from typing import Literal

import openai
import pydantic

ORIGIN, EMBEDDER_ORIGIN = sys.argv[1:]
GREEDY = {
    "model": "default",
    "prompt": "Once upon a time",
    "temperature": 0,
    "max_tokens": 12,
}
CHAT = {
    "model": "default",
    "messages": [{"role": "user", "content": "Tell me of a fox."}],
    "temperature": 0,
    "max_tokens": 12,
}
CITIES = ["Rome", "Oslo"]
LONG = {"temperature": 1, "max_tokens": 400, "extra_body": {"ignore_eos": True}}


def hooks(command):
    body = json.dumps(command).encode()
    with urllib.request.urlopen(f"{ORIGIN}/_hooks", data=body) as response:
        return json.load(response)


def client(**options):
    return openai.OpenAI(base_url=f"{ORIGIN}/v1", api_key="x", **options)


def raised(kind, call):
    """The error of that class which `call` raises."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def completes_plain_and_streamed():
    plain = client().completions.create(**GREEDY)
    assert plain.usage.completion_tokens == 12, plain.usage
    assert plain.choices[0].finish_reason == "length"
    chunks = client().completions.create(
        **GREEDY, stream=True, stream_options={"include_usage": True}
    )
    text, usage = "", None
    for chunk in chunks:
        text += chunk.choices[0].text if chunk.choices else ""
        usage = chunk.usage or usage
    assert text == plain.choices[0].text, text
    assert usage == plain.usage, usage


def lists_and_finds_the_model():
    assert [model.id for model in client().models.list()] == ["inpage/tales"]
    assert client().models.retrieve("inpage/tales").id == "inpage/tales"


def maps_errors():
    for stream in (False, True):
        wrong = {**GREEDY, "top_p": 2, "stream": stream}
        error = raised(
            openai.BadRequestError, lambda: client().completions.create(**wrong)
        )
        assert (error.code, error.param) == ("out_of_range", "top_p"), error
        absent = {**GREEDY, "model": "absent", "stream": stream}
        error = raised(
            openai.NotFoundError, lambda: client().completions.create(**absent)
        )
        assert (error.code, error.param) == ("model_not_found", "model"), error


def does_not_retry_permanent_failures():
    hooks({"failAfterTokens": 3})
    start = time.monotonic()
    error = raised(
        openai.InternalServerError,
        # The failure occurs once, so a second attempt would succeed.
        lambda: client(max_retries=2).completions.create(**{**GREEDY, **LONG}),
    )
    assert error.code == "internal_error", error
    assert time.monotonic() - start < 10


def raises_when_a_stream_fails_after_its_head():
    hooks({"failAfterTokens": 3})
    seen = []

    def read():
        for chunk in client().completions.create(**{**GREEDY, **LONG}, stream=True):
            seen.append(chunk)

    error = raised(openai.APIError, read)
    assert error.code == "internal_error", error
    assert seen, "no text came before the failure"


def sends_retry_after_while_the_model_loads():
    hooks({"modelState": "loading"})
    error = raised(
        openai.InternalServerError,
        lambda: client(max_retries=0).completions.create(**GREEDY),
    )
    assert (error.status_code, error.code) == (503, "model_loading"), error
    assert 1 <= int(error.response.headers["retry-after"]) <= 60
    hooks({"modelState": "ready"})


def leaving_the_loop_stops_the_generation():
    hooks({"delayStepMs": 20})
    with client().completions.create(**{**GREEDY, **LONG}, stream=True) as stream:
        for _ in stream:
            assert hooks({"activeGenerations": True}) == 1
            break
    end = time.monotonic() + 2
    while hooks({"activeGenerations": True}) > 0:
        assert time.monotonic() < end, "the generation is still in flight"
        time.sleep(0.02)
    hooks({"delayStepMs": 0})


def chats_plain_and_streamed():
    plain = client().chat.completions.create(**CHAT)
    message = plain.choices[0].message
    assert message.role == "assistant" and message.content, message
    content, usage = "", None
    for chunk in client().chat.completions.create(
        **CHAT, stream=True, stream_options={"include_usage": True}
    ):
        content += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        usage = chunk.usage or usage
    assert content == message.content, content
    assert usage.completion_tokens == plain.usage.completion_tokens, usage


def calls_a_tool():
    schema = {
        "type": "object",
        "properties": {"city": {"enum": CITIES}},
        "required": ["city"],
        "additionalProperties": False,
    }
    tool = {"name": "weather", "parameters": schema, "strict": True}
    request = {
        **CHAT,
        "max_tokens": 100,
        "tools": [{"type": "function", "function": tool}],
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }
    choice = client().chat.completions.create(**request).choices[0]
    assert choice.finish_reason == "tool_calls", choice
    (call,) = choice.message.tool_calls
    assert json.loads(call.function.arguments)["city"] in CITIES, call
    with client().chat.completions.stream(**request) as stream:
        streamed = stream.get_final_completion().choices[0].message.tool_calls
    assert streamed[0].function.arguments == call.function.arguments, streamed


def parses_a_model():
    class Weather(pydantic.BaseModel):
        city: Literal["Rome", "Oslo"]

    request = {**CHAT, "max_tokens": 100, "response_format": Weather}
    parsed = client().chat.completions.parse(**request).choices[0].message.parsed
    assert parsed.city in CITIES, parsed


def embeds():
    embedder = client()
    embedder.base_url = f"{EMBEDDER_ORIGIN}/v1"
    request = {"model": "default", "input": ["a fox", "a dog"]}
    # The client asks for base64 by default.
    implicit = embedder.embeddings.create(**request)
    explicit = embedder.embeddings.create(**request, encoding_format="float")
    for some, other in zip(implicit.data, explicit.data, strict=True):
        assert len(some.embedding) == len(other.embedding)
        for a, b in zip(some.embedding, other.embedding):
            assert abs(a - b) < 1e-6, (a, b)
    assert implicit.usage == explicit.usage
    error = raised(
        openai.BadRequestError,
        lambda: embedder.embeddings.create(**{**request, "input": ""}),
    )
    assert (error.code, error.param) == ("invalid_value", "input"), error


for check in (
    completes_plain_and_streamed,
    lists_and_finds_the_model,
    maps_errors,
    does_not_retry_permanent_failures,
    raises_when_a_stream_fails_after_its_head,
    sends_retry_after_while_the_model_loads,
    leaving_the_loop_stops_the_generation,
    chats_plain_and_streamed,
    calls_a_tool,
    parses_a_model,
    embeds,
):
    check()
    print(f"ok {check.__name__}")
