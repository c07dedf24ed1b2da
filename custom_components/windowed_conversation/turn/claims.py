"""Claims: an answer may say that something was done although no tool was called. Its model then has to call one."""

from dataclasses import replace

from ..providers import Request, ToolSchema
from ..window import Message
from .routing import is_question
from .state import Turn

# Offered only in such a request, and only if no other tool can be called without changing anything. The tools begin a
# request, so with another one in their list, the server would have to read all of it again.
_NOTHING_TO_DO = ToolSchema("nothing_to_do", "Call this if nothing in the home has to be changed.", {}, read_only=True)

_NOTE = (
    "[The user does not see this. If your last answer says that something in the home was changed, call the tool that "
    "changes it now. If nothing has to be changed, call {name}.]"
)


def may_claim_action(turn: Turn) -> bool:
    """Return whether the answer of a turn may claim an action, although no tool that changes anything was called."""
    may_claim = turn.run.question.may_claim_change if turn.run is not None else None
    if turn.run is None or may_claim is None or is_question(turn.sent_text):
        return False
    tools = (*turn.run.question.tools, *turn.run.question.deferred_tools)
    read_only = {tool.name for tool in tools if tool.read_only}
    called = {call.name for attempt in turn.attempts for call in attempt.tool_calls}
    return called <= read_only and len(read_only) < len(tools) and may_claim(turn.sent_text)


def require_call(request: Request) -> Request:
    """Return the request that follows an answer and must be answered with a call. A read-only tool does nothing."""
    harmless = [tool for tool in request.tools if tool.read_only and not tool.parameters.get("required")]
    tools = request.tools if harmless else (*request.tools, _NOTHING_TO_DO)
    note = Message.user(_NOTE.format(name=harmless[0].name if harmless else _NOTHING_TO_DO.name))
    return replace(request, messages=(*request.messages, note), tools=tools, requires_call=True)
