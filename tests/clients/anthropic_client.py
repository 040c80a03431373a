"""Anthropic's Python client against a server with hooks: python anthropic_client.py ORIGIN"""

import json
import sys

import anthropic

ORIGIN = sys.argv[1]
GREEDY = {
    "model": "default",
    "messages": [{"role": "user", "content": "Tell me of a fox."}],
    "max_tokens": 12,
    "extra_body": {"temperature": 0},
}
CITY = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Oslo"]}},
    "required": ["city"],
    "additionalProperties": False,
}
ONE_CALL = {
    **GREEDY,
    "max_tokens": 200,
    "tools": [{"name": "weather", "input_schema": CITY}],
    "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
}

client = anthropic.Anthropic(base_url=ORIGIN, api_key="x", max_retries=0)


def answers_whole_and_streamed():
    members = {"temperature": 0, "ignore_eos": True}
    request = {**GREEDY, "system": "Be brief.", "extra_body": members}
    whole = client.messages.create(**request)
    assert whole.stop_reason == "max_tokens", whole
    assert whole.usage.output_tokens == 12, whole.usage
    with client.messages.stream(**request) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text == final.content[0].text, (text, whole)
    assert final.usage.output_tokens == 12, final.usage


def calls_a_tool_and_takes_its_result():
    whole = client.messages.create(**ONE_CALL)
    assert whole.stop_reason == "tool_use", whole
    call = whole.content[0]
    assert call.name == "weather" and call.input["city"] in ("Rome", "Oslo"), call
    with client.messages.stream(**ONE_CALL) as stream:
        streamed = stream.get_final_message().content[0]
    assert streamed.input == call.input, streamed
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
    turns = [
        *GREEDY["messages"],
        {"role": "assistant", "content": whole.content},
        {"role": "user", "content": [result]},
    ]
    following = {**ONE_CALL, "messages": turns, "tool_choice": {"type": "none"}}
    assert client.messages.create(**{**following, "max_tokens": 8}).content


def writes_what_a_schema_demands():
    config = {"format": {"type": "json_schema", "schema": CITY}}
    request = {**GREEDY, "max_tokens": 200}
    answer = client.messages.create(**request, output_config=config)
    assert json.loads(answer.content[0].text)["city"] in ("Rome", "Oslo"), answer


def counts_tokens():
    counted = client.messages.count_tokens(model="default", messages=GREEDY["messages"])
    usage = client.messages.create(**GREEDY).usage
    assert counted.input_tokens == usage.input_tokens + usage.cache_read_input_tokens


def raises_its_own_classes():
    for members, kind in [
        ({"extra_body": {"temperature": 1.5}}, anthropic.BadRequestError),
        ({"model": "no/such"}, anthropic.NotFoundError),
    ]:
        try:
            client.messages.create(**{**GREEDY, **members})
        except kind as error:
            assert error.body["type"] == "error", error.body
            assert error.request_id.startswith("req_"), error.request_id
        else:
            raise AssertionError(f"no {kind.__name__} was raised")


answers_whole_and_streamed()
calls_a_tool_and_takes_its_result()
writes_what_a_schema_demands()
counts_tokens()
raises_its_own_classes()
