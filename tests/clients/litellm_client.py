"""LiteLLM against servers with hooks, of which the second has a model that makes embeddings:
python litellm_client.py ORIGIN EMBEDDER_ORIGIN"""

import json
import os
import sys

# Its table of prices comes with the package; otherwise it is downloaded at import.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # noqa: E402

ORIGIN, EMBEDDER_ORIGIN = sys.argv[1:]
MODEL = "openai/default"
SERVER = {"api_base": f"{ORIGIN}/v1", "api_key": "x", "num_retries": 0}
CHAT = {
    **SERVER,
    "model": MODEL,
    "messages": [{"role": "user", "content": "Tell me of a fox."}],
    "temperature": 0,
    "max_tokens": 12,
}
CITIES = ["Rome", "Oslo"]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": CITIES}},
    "required": ["city"],
    "additionalProperties": False,
}


def chats_plain_and_streamed():
    plain = litellm.completion(**CHAT)
    content = plain.choices[0].message.content
    assert content, plain
    assert plain.usage.completion_tokens <= 12, plain.usage
    streamed = ""
    for chunk in litellm.completion(**CHAT, stream=True):
        streamed += chunk.choices[0].delta.content or ""
    assert streamed == content, streamed


def completes_a_prompt():
    request = {**SERVER, "model": "text-completion-openai/default", "max_tokens": 12}
    answer = litellm.text_completion(**request, prompt="Once upon a time")
    assert answer.choices[0].text, answer


def calls_a_tool():
    tool = {"name": "weather", "parameters": SCHEMA, "strict": True}
    answer = litellm.completion(
        **{**CHAT, "max_tokens": 100},
        tools=[{"type": "function", "function": tool}],
        tool_choice="required",
        parallel_tool_calls=False,
    )
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls", choice
    (call,) = choice.message.tool_calls
    assert json.loads(call.function.arguments)["city"] in CITIES, call


def writes_what_a_schema_demands():
    json_schema = {"name": "weather", "schema": SCHEMA, "strict": True}
    answer = litellm.completion(
        **{**CHAT, "max_tokens": 100},
        response_format={"type": "json_schema", "json_schema": json_schema},
    )
    assert json.loads(answer.choices[0].message.content)["city"] in CITIES, answer


def maps_errors():
    for members, kind in (
        ({"temperature": 9}, litellm.BadRequestError),
        ({"model": "openai/absent"}, litellm.NotFoundError),
        (
            {"messages": [{"role": "user", "content": "fox " * 9000}]},
            litellm.ContextWindowExceededError,
        ),
    ):
        try:
            litellm.completion(**{**CHAT, **members})
        except kind as error:
            assert type(error) is kind, error
            continue
        raise AssertionError(f"no {kind.__name__} was raised for {members}")


def embeds():
    request = {
        "model": MODEL,
        "api_base": f"{EMBEDDER_ORIGIN}/v1",
        "api_key": "x",
    }
    answer = litellm.embedding(**request, input=["a fox", "a dog"])
    assert [item["index"] for item in answer.data] == [0, 1], answer
    one = litellm.embedding(**request, input=["a dog"])
    assert answer.data[1]["embedding"] == one.data[0]["embedding"]
    assert answer.usage.prompt_tokens > one.usage.prompt_tokens, answer.usage


for check in (
    chats_plain_and_streamed,
    completes_a_prompt,
    calls_a_tool,
    writes_what_a_schema_demands,
    maps_errors,
    embeds,
):
    check()
    print(f"ok {check.__name__}")
