"""Every mode of instructor for OpenAI's endpoint against a server with SmolLM2: python instructor_modes.py ORIGIN [--all]

Without --all only whole answers, with it also partial objects and iterables in streams, and all modes. Modes that leave the schema to the
prompt get an example of an answer, and a mode without a forced call may end without one: that is the model's choice."""

import sys
from collections.abc import Iterable

import instructor
import openai
from instructor import Mode
from instructor.core.exceptions import InstructorRetryException
from pydantic import BaseModel, Field

ORIGIN, IS_ALL = sys.argv[1], "--all" in sys.argv
RAW = openai.OpenAI(base_url=f"{ORIGIN}/v1", api_key="unused", max_retries=0)
RESPONSES = [Mode.RESPONSES_TOOLS, Mode.RESPONSES_TOOLS_WITH_INBUILT_TOOLS]
# Modes whose schema is in the prompt get an example of an answer.
PROMPTED = [Mode.JSON, Mode.JSON_O1]
MODES = [Mode.TOOLS, Mode.TOOLS_STRICT, Mode.JSON_SCHEMA, Mode.JSON, Mode.RESPONSES_TOOLS]
# Other names and forms of these modes.
ALL_MODES = [*MODES, Mode.FUNCTIONS, Mode.JSON_O1, Mode.RESPONSES_TOOLS_WITH_INBUILT_TOOLS]
FORCED = {"model": "default", "temperature": 0, "max_retries": 0}


class Person(BaseModel):
    name: str = Field(max_length=40)
    age: int = Field(ge=0, le=150)


class Weather(BaseModel):
    """The weather of a city"""

    city: str = Field(max_length=40)


class Time(BaseModel):
    """The time in a city"""

    city: str = Field(max_length=40)


EXAMPLE = [
    {"role": "user", "content": "Extract: Bob is 5 years old."},
    {"role": "assistant", "content": '{"name": "Bob", "age": 5}'},
]
QUESTION = {"role": "user", "content": "Extract: Ada Lovelace is 36 years old."}


def check(mode):
    client = instructor.from_openai(RAW, mode=mode)
    limit = "max_output_tokens" if mode in RESPONSES else "max_tokens"
    messages = [*(EXAMPLE if mode in PROMPTED else []), QUESTION]
    request = {**FORCED, limit: 400, "response_model": Person, "messages": messages}
    person, completion = client.create_with_completion(**request)
    assert person.name and isinstance(person.age, int), person
    assert completion.usage.total_tokens > 0
    if IS_ALL and mode in MODES:
        *_, last = client.create_partial(**request)
        assert last.name and isinstance(last.age, int), last
        people = client.create_iterable(**request)
        assert next(iter(people)).name


def check_choice(mode, **request):
    """Modes in which the model may answer otherwise: the request and the answer must be such that instructor reads them."""
    client = instructor.from_openai(RAW, mode=mode)
    try:
        return client.create(**FORCED, max_tokens=200, **request)
    except InstructorRetryException as error:
        # An answer of the model, and no refusal of the endpoint.
        assert error.last_completion.choices[0].message.content, error
        return None


for mode in ALL_MODES if IS_ALL else MODES:
    check(mode)
    print("ok", mode.name)
check_choice(Mode.MD_JSON, response_model=Person, messages=[*EXAMPLE, QUESTION])
print("ok MD_JSON")
weather = [{"role": "user", "content": "What is the weather in Oslo?"}]
check_choice(Mode.PARALLEL_TOOLS, response_model=Iterable[Weather | Time], messages=weather)
print("ok PARALLEL_TOOLS")
