"""The requests of AI tasks: the tools that the model calls, and the data that an answer must have."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
import json
import re
from typing import Any

from ...providers import AnswerSchema, BadRequest, Incomplete, RateLimited, fix_surrogates
from ...turn.attempts import AttemptCallback, Purpose
from ...turn.errors import EmptyAnswer, InvalidData, NoSummary
from ...turn.limits import MAX_TOOL_ROUNDS
from ...turn.model import Question
from ...turn.repetition import REPETITION_NOTE, RepetitionDetector
from ...window import Message, ToolCall
from .requests import fetch_answer, limit_time

_REPAIR_INSTRUCTION = "[This answer cannot be used: {problem}. Answer again with the whole corrected JSON object only.]"
# In characters. A schema of hundreds of fields could have as many problems.
_MAX_PROBLEM_CHARS = 1000
# In lists and objects around a value. Home Assistant cannot send data with more than 254 in a response.
_MAX_DATA_DEPTH = 100
# Models put JSON into a code fence, or words around it.
_OBJECT_PATTERN = re.compile(r"\{.*\}", re.DOTALL)

# Calls a tool and returns its result as text.
type RunCall = Callable[[ToolCall], Awaitable[str]]

type _Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class DataDemand:
    """The data that an answer must have. `find_problem` returns the problem of some data as text, or None."""

    schema: AnswerSchema
    find_problem: Callable[[Any], str | None]


@dataclass(frozen=True, slots=True)
class Task:
    """An AI task. Without `run_call`, the model may not call the question's tools."""

    question: Question
    # In seconds.
    timeout: float
    # Called when each request has ended.
    on_attempt: AttemptCallback
    run_call: RunCall | None = None
    purpose: Purpose = Purpose.TASK

    async def ask_for_text(self, messages: tuple[Message, ...]) -> str:
        """Return the answer as text. Raises `ProviderError`, and `EmptyAnswer`."""
        async with limit_time(self.timeout, "no whole answer"):
            messages, _ = await self._run(messages, None, self.run_call)
            return messages[-1].content

    async def ask_for_data(self, messages: tuple[Message, ...], demand: DataDemand) -> Any:
        """Return the data as the model wrote it, without the nulls of optional fields.

        If a server refuses the schema, it is sent as text. If the data has a problem, the model is asked once to
        correct it. Raises `ProviderError`, `EmptyAnswer` and `InvalidData`.
        """
        async with limit_time(self.timeout, "no whole answer"):
            messages, schema = await self._run(messages, demand.schema, self.run_call)
            try:
                return _read_data(messages[-1].content, demand)
            except InvalidData as err:
                instruction = _REPAIR_INSTRUCTION.format(problem=str(err)[:_MAX_PROBLEM_CHARS])
                # a server may have ignored the schema
                schema = replace(
                    schema or demand.schema, in_prompt=not err.is_json or (schema or demand.schema).in_prompt
                )
                messages, _ = await self._run((*messages, Message.user(instruction)), schema, run_call=None)
                return _read_data(messages[-1].content, demand)

    async def _run(
        self, messages: _Messages, schema: AnswerSchema | None, run_call: RunCall | None
    ) -> tuple[_Messages, AnswerSchema | None]:
        """Return the messages with calls, results and, at the end, the answer, and the schema as it was sent."""
        repetition, rounds = RepetitionDetector(), 0
        while True:
            may_call = run_call is not None and rounds < MAX_TOOL_ROUNDS and not repetition.is_note_ignored
            try:
                answer = await self._fetch_answer(messages, schema, may_call=may_call)
            except BadRequest as err:
                if type(err) is not BadRequest or schema is None or schema.in_prompt:
                    raise
                schema = replace(schema, in_prompt=True)
                continue
            messages = (*messages, answer)
            if run_call is None or not answer.tool_calls:
                return messages, schema
            rounds += 1
            repetition.begin_round()
            for call in answer.tool_calls:
                messages = (*messages, await self._run_call(call, run_call, repetition))

    async def _run_call(self, call: ToolCall, run_call: RunCall, repetition: RepetitionDetector) -> Message:
        tools, result = (*self.question.tools, *self.question.deferred_tools), await run_call(call)
        read_only = True in [tool.read_only for tool in tools if tool.name == call.name]
        is_repeated = repetition.add_call(call, result, read_only=read_only)
        return Message.tool(call.id, call.name, f"{REPETITION_NOTE}\n{result}" if is_repeated else result)

    async def _fetch_answer(self, messages: _Messages, schema: AnswerSchema | None, *, may_call: bool) -> Message:
        """Return an answer. A pause is waited for once, and a limit that reasoning used up is raised once."""
        question, model, may_wait = self.question, self.question.model, True
        build = partial(
            question.build_request,
            messages,
            question.tools,
            may_call=may_call or not question.tools,
            max_answer_tokens=model.settings.max_answer_tokens,
        )
        while True:
            request = replace(build(), answer_schema=schema)
            await asyncio.sleep(model.pause.remaining_seconds)
            try:
                return await fetch_answer(question, request, self.purpose, self.timeout, self.on_attempt)
            except RateLimited as err:
                if err.retry_after is None or err.retry_after > self.timeout or not may_wait:
                    raise
                model.pause.begin(err.retry_after)
                may_wait = False
            except Incomplete:
                if build().answer_limit == request.answer_limit:
                    raise
            except NoSummary as err:
                raise EmptyAnswer("the answer has no text") from err


def _read_data(text: str, demand: DataDemand) -> Any:
    found = _OBJECT_PATTERN.search(text)
    try:
        data = json.loads(found.group() if found else text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as err:
        raise InvalidData("it is not valid JSON", is_json=False) from err
    data = _clean_data(data, demand.schema.schema, _MAX_DATA_DEPTH)
    if problem := demand.find_problem(data):
        raise InvalidData(problem)
    return data


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _clean_data(value: Any, schema: Mapping[str, Any], depth: int) -> Any:
    """Return the value without null members that its schema does not require. OpenAI writes them for all of these.

    Unpaired halves of surrogate pairs are replaced. Raises `InvalidData` if the value has more levels than `depth`.
    """
    if isinstance(value, str):
        return fix_surrogates(value)
    if not isinstance(value, list | dict):
        return value
    if not depth:
        raise InvalidData("it has too many levels")
    if isinstance(value, list):
        return [_clean_data(each, schema.get("items", {}), depth - 1) for each in value]
    properties, required = schema.get("properties", {}), schema.get("required", ())
    return {
        fix_surrogates(name): _clean_data(each, properties.get(name, {}), depth - 1)
        for name, each in value.items()
        if each is not None or name in required
    }
