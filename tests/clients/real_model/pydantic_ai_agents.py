"""Agents of pydantic-ai against a server with SmolLM2: python pydantic_ai_agents.py ORIGIN [--all]

Outputs as tools, as schemas and as text, and tools with results; with --all also unions, prompted outputs and streams. Chat and
responses."""

import asyncio
import sys

from pydantic import BaseModel, Field
from pydantic_ai import Agent, NativeOutput, PromptedOutput
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

ORIGIN, IS_ALL = sys.argv[1], "--all" in sys.argv
PROVIDER = OpenAIProvider(base_url=f"{ORIGIN}/v1", api_key="unused")
SETTINGS = {"temperature": 0, "max_tokens": 200}
QUESTION = "In which country is Oslo?"


class City(BaseModel):
    name: str = Field(max_length=40)
    country: str = Field(max_length=40)


def check_outputs(model):
    for output in (City, NativeOutput(City)):
        city = Agent(model, output_type=output, model_settings=SETTINGS).run_sync(QUESTION).output
        assert isinstance(city, City) and city.name, city
    text = Agent(model, model_settings=SETTINGS).run_sync(QUESTION).output
    assert isinstance(text, str) and text


def check_tools(model):
    """The loop: calls, results, and an output tool at its end. It may reach its limit, since the model decides when to end."""
    asked = []
    agent = Agent(model, output_type=City, model_settings=SETTINGS)

    @agent.tool_plain
    def country_of(city: str) -> str:
        """The country of a city"""
        asked.append(city)
        return "Norway"

    try:
        output = agent.run_sync(QUESTION, usage_limits=UsageLimits(request_limit=3)).output
        assert isinstance(output, City), output
    except UsageLimitExceeded:
        assert len(asked) >= 3, asked
    assert all(isinstance(city, str) for city in asked)


def check_unforced(model):
    """Outputs that the endpoint does not enforce: what the model writes may not be one."""
    prompted = Agent(model, output_type=PromptedOutput(City), model_settings=SETTINGS)
    try:
        assert isinstance(prompted.run_sync(QUESTION).output, City)
    except UnexpectedModelBehavior:
        pass
    union = Agent(model, output_type=[City, int], model_settings=SETTINGS)
    assert isinstance(union.run_sync(QUESTION).output, City | int)


async def check_streams(model):
    for output in (str, City, NativeOutput(City)):
        agent = Agent(model, output_type=output, model_settings=SETTINGS)
        async with agent.run_stream(QUESTION) as run:
            pieces = [piece async for piece in run.stream_output(debounce_by=None)]
        assert len(pieces) > 1 and pieces[-1] == await run.get_output(), pieces


for kind in (OpenAIChatModel, OpenAIResponsesModel):
    model = kind("default", provider=PROVIDER)
    check_outputs(model)
    print("ok outputs", kind.__name__)
    check_tools(model)
    print("ok tools", kind.__name__)
    if IS_ALL:
        check_unforced(model)
        print("ok unforced outputs", kind.__name__)
        asyncio.run(check_streams(model))
        print("ok streams", kind.__name__)
