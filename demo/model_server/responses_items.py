"""The parts of an answer in OpenAI's Responses: the response object, its items, its usage.

An item's id names the reasoning item that it is bound to, so a replay without that item is detected without any stored
state.
"""

from dataclasses import dataclass
from functools import cached_property
import time
from typing import Any
from uuid import uuid4

from .conversation import Answer, AnswerFinish, Call
from .residue import seal_content
from .shapes import format_arguments
from .tool_loading import SEARCH_NAME, has_tool_search
from .wire import Reply

UNBOUND_PREFIX = "0" * 16

_INCOMPLETE_REASON_BY_FINISH = {
    AnswerFinish.LENGTH: "max_output_tokens",
    AnswerFinish.WINDOW_EXCEEDED: "max_output_tokens",
    AnswerFinish.CONTENT_FILTER: "content_filter",
}


@dataclass(frozen=True)
class OutputItems:
    """The output items of a reply; each item is created only once."""

    reply: Reply

    @property
    def answer(self) -> Answer:
        """The answer that the items are created from."""
        return self.reply.answer

    @property
    def status(self) -> str:
        """The final status of the response."""
        return "incomplete" if self.answer.finish in _INCOMPLETE_REASON_BY_FINISH else "completed"

    @property
    def has_raw_reasoning(self) -> bool:
        """Whether the thinking is sent as plain text, as local servers do."""
        return "raw_reasoning" in self.reply.shapes

    @property
    def has_summary(self) -> bool:
        """Whether the request asks for a summary of the thinking."""
        asked = self.reply.prompt.body.get("reasoning")
        return isinstance(asked, dict) and asked.get("summary") is not None and not self.has_raw_reasoning

    @cached_property
    def reasoning(self) -> dict[str, Any] | None:
        """The reasoning item, or None if there was no thinking."""
        if not self.answer.reasoning:
            return None
        item_id = f"rs_{uuid4().hex}"
        item: dict[str, Any] = {"id": item_id, "type": "reasoning", "summary": []}
        if self.has_raw_reasoning:
            return {**item, "content": [{"type": "reasoning_text", "text": self.answer.reasoning}]}
        if self.has_summary:
            item["summary"] = [{"type": "summary_text", "text": self.answer.reasoning}]
        return {**item, "encrypted_content": seal_content(self.reply.model, item_id.encode())}

    @cached_property
    def message(self) -> dict[str, Any] | None:
        """The message item, or None if there is neither text nor a refusal."""
        if not (self.answer.text or self.answer.refusal):
            return None
        phase = {} if self.answer.search else {"phase": "commentary" if self.answer.calls else "final_answer"}
        return {
            "id": f"msg_{self._build_bound_id(first=not self.searches)}",
            "type": "message",
            "status": self.status,
            "role": "assistant",
            **phase,
            "content": [self.message_part],
        }

    @cached_property
    def introduction(self) -> dict[str, Any] | None:
        """The message item before a search, or None if there is no search."""
        if self.answer.search is None:
            return None
        part = {"type": "output_text", "text": self.answer.search.introduction, "annotations": [], "logprobs": []}
        item_id = f"msg_{self._build_bound_id(first=True)}"
        return {"id": item_id, "type": "message", "status": "completed", "role": "assistant", "content": [part]}

    @cached_property
    def searches(self) -> list[dict[str, Any]]:
        """The items of the web searches, and of one page that was opened."""
        search = self.answer.search
        if search is None:
            return []
        sources = [
            *({"type": "url", "url": page.url} for page in search.pages),
            {"type": "url", "url": "https://unused.example/"},
            {"type": "api", "name": "oai-weather"},
        ]
        asked: list[dict[str, Any]] = [
            {"type": "search", "query": query, "queries": [query], "sources": sources} for query in search.queries
        ]
        return [
            {"id": f"ws_{uuid4().hex}", "type": "web_search_call", "status": "completed", "action": action}
            for action in (*asked, {"type": "open_page", "url": search.pages[0].url})
        ]

    @property
    def message_part(self) -> dict[str, Any]:
        """The content part of the message, which has only one."""
        if self.answer.refusal:
            return {"type": "refusal", "refusal": self.answer.refusal}
        text, annotations = self.answer.text, list[dict[str, Any]]()
        if cited := self.answer.cited_sentences:
            text = ""
            for sentence, page in cited:
                text += f"{sentence.rstrip().rstrip('.')} "
                url = f"{page.url}{'&' if '?' in page.url else '?'}utm_source=openai"
                link = f"([{page.url.split('/')[2]}]({url}))"
                place = {"start_index": len(text), "end_index": len(text) + len(link)}
                annotations.append({"type": "url_citation", "url": url, "title": page.title, **place})
                text += f"{link}. "
            text = text.rstrip()
        return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}

    @cached_property
    def calls(self) -> list[dict[str, Any]]:
        """The function call items."""
        return [self._build_call(call, at) for at, call in enumerate(self.answer.calls)]

    @property
    def all_items(self) -> list[dict[str, Any]]:
        """All output items in order."""
        return [item for item in (self.reasoning, self.introduction, *self.searches, self.message, *self.calls) if item]

    def _build_call(self, call: Call, at: int) -> dict[str, Any]:
        if SEARCH_NAME.endswith(call.name) and has_tool_search(self.reply.prompt.body):
            call_id, given = f"call_{uuid4().hex[:24]}", dict(call.arguments)
            named = {"id": f"tsc_{uuid4().hex}", "type": "tool_search_call", "call_id": call_id}
            return {**named, "execution": "client", "status": "completed", "arguments": given}
        return {
            "id": f"fc_{self._build_bound_id(first=at == 0 and self.message is None)}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_{uuid4().hex[:24]}",
            "name": call.name,
            "arguments": format_arguments(call, self.reply.shapes),
        }

    def _build_bound_id(self, *, first: bool) -> str:
        """Return the hexadecimal part of an id, whose prefix identifies the reasoning item directly before it."""
        bound = first and self.reasoning is not None and not self.has_raw_reasoning
        start = self.reasoning["id"].removeprefix("rs_")[:16] if bound and self.reasoning else UNBOUND_PREFIX
        return f"{start}{uuid4().hex[:16]}"


def build_document(reply: Reply, *, output: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return the finished response, with `output` instead of its own output if that is given."""
    items = OutputItems(reply)
    reason = _INCOMPLETE_REASON_BY_FINISH.get(reply.answer.finish)
    return {
        **build_initial_response(reply),
        "status": items.status,
        "incomplete_details": {"reason": reason} if reason else None,
        "output": items.all_items if output is None else output,
        "usage": None if "no_usage" in reply.shapes else _build_usage(reply),
    }


def build_initial_response(reply: Reply) -> dict[str, Any]:
    """Return the response object in its initial state, without output."""
    body = reply.prompt.body
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": None,
        "model": reply.model,
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": None,
        "prompt_cache_key": body.get("prompt_cache_key"),
        "prompt_cache_retention": body.get("prompt_cache_retention"),
        "reasoning": {"effort": None, "summary": None, **(body.get("reasoning") or {})},
        "safety_identifier": body.get("safety_identifier"),
        "service_tier": body.get("service_tier", "default"),
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "text": {"format": {"type": "text"}, "verbosity": "medium", **(body.get("text") or {})},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []),
        "top_logprobs": 0,
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation", "disabled"),
        "usage": None,
        "user": None,
        "metadata": body.get("metadata", {}),
    }


def _build_usage(reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.written},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.completion,
    }
