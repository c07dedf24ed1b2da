"""A slow reference for the speech filter: separates speech and reasoning in a complete text, character by character."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
import re

_WORDS = r"[\w.=: -]"
_CHANNEL_ENDS = re.compile(r"<\|(?:end|return|call|start|channel)\|>", re.IGNORECASE)
_MESSAGE_START = rf"(?:<\|constrain\|>{_WORDS}{{0,40}})?<\|message\|>"
_NOTES = (
    r"shortened result of ",
    r"cut: these are the first ",
    r"the answer was interrupted",
    r"interrupted before the result",
    r"what was said before,",
    r"same call, same result",
    r"the user has attached",
)

# White space, the ranges of Unicode's property Default_Ignorable_Code_Point, and Braille's blank:
# https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt
UNHEARD = re.compile(
    r"[\s\u2800\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)

type Ends = Callable[[str, int], tuple[int, int]]


def _until(closing: str, *, kept: bool = False) -> Ends:
    def find_end(text: str, at: int) -> tuple[int, int]:
        found = re.compile(closing, re.IGNORECASE).search(text, at)
        return (found.start(), found.start() if kept else found.end()) if found else (len(text), len(text))

    return find_end


def _alone(_text: str, at: int) -> tuple[int, int]:
    return at, at


def _note(text: str, at: int) -> tuple[int, int]:
    depth = 1
    for place in range(at, len(text)):
        if text[place] == "\n":
            return place, place
        depth += {"[": 1, "]": -1}.get(text[place], 0)
        if not depth:
            return place + 1, place + 1
    return len(text), len(text)


def _groups(text: str, at: int, depth: int) -> int:
    """Return the index after a bracketed group and the groups in braces that immediately follow it."""
    quote, opens = "", "{" if depth else "([{"
    while at < len(text):
        char = text[at]
        if not depth and char not in opens:
            return at
        opens = "{"
        if quote and char == "\\":
            at += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char == '"' or (char == "'" and not re.fullmatch(r"\w", text[at - 1])):
            quote = char
        else:
            depth += (char in "([{") - (char in ")]}")
        at += 1
    return len(text)


def _call(text: str, at: int) -> tuple[int, int]:
    words = re.compile(r"(\s*)[^(\[{\n]*").match(text, at)
    assert words
    begins = words.end(1)
    end = words.end()
    if "\n" in words[1] and text[begins : begins + 1] not in ("(", "[", "{"):
        end = begins
    elif text[end : end + 1] in ("(", "[", "{"):
        end = _groups(text, end, 0)
    return end, end


def _json_call(depth: int) -> Ends:
    def find_end(text: str, at: int) -> tuple[int, int]:
        end = _groups(text, at, depth)
        return end, end

    return find_end


@dataclass(frozen=True)
class _Mark:
    opens: str
    find_end: Ends = _alone
    is_reasoning: bool = False

    def match(self, text: str, at: int) -> re.Match[str] | None:
        return re.compile(self.opens, re.IGNORECASE).match(text, at)


_TIME = _Mark(r"[ \t]{0,3}## time[ \t]{0,3}\r?\n[a-z]{6,9} \d{4}-\d\d-\d\d \d\d:\d\d")
_SECTION = _Mark(r"[ \t]{0,3}## (?:speaker|device|area)[ \t]{0,3}\r?\n", _until("\n", kept=True))
_LINE_CALL = _Mark(r"[ \t]{0,3}tool_calls?:", _call)
_FENCED_CALL = _Mark(r"[ \t]{0,3}```tool_(?:call|code)[ \t]{0,3}\r?\n", _until("```"))
_ANYWHERE = (
    _Mark(r"\[[ \t]{0,3}context[ \t]{0,3}:", _until("]")),
    *(_Mark(rf"\[{note}", _note) for note in _NOTES),
    _Mark("<think>", _until("</think>"), is_reasoning=True),
    _Mark("<thinking>", _until("</thinking>"), is_reasoning=True),
    _Mark("</think(?:ing)?>|</tool_call>"),
    _Mark(rf"<\|channel\|>[ \t]{{0,3}}final{_WORDS}{{0,100}}{_MESSAGE_START}"),
    _Mark(rf"<\|channel\|>commentary to={_WORDS}{{0,100}}{_MESSAGE_START}", _until(_CHANNEL_ENDS.pattern, kept=True)),
    _Mark(
        rf"<\|channel\|>{_WORDS}{{1,100}}{_MESSAGE_START}", _until(_CHANNEL_ENDS.pattern, kept=True), is_reasoning=True
    ),
    _Mark(rf"<\|start\|>{_WORDS}{{0,100}}(?=<\|)"),
    _Mark("<tool_call>", _until("</tool_call>")),
    _Mark(r"<function=[\w.-]{1,100}>", _until("</function>")),
    _Mark(r"\[tool_calls\]|<\|tool_call\|>", _call),
    _Mark(r"<\|python_tag\|>", _until(r"<\|(?:eom|eot)_id\|>")),
    _Mark(r"<\|tool_calls_section_begin\|>", _until(r"<\|tool_calls_section_end\|>")),
    _Mark("<\uff5ctool\u2581calls\u2581begin\uff5c>", _until("<\uff5ctool\u2581calls\u2581end\uff5c>")),
    _Mark(r"<\|(?:im_)?start\|>(?:assistant|user|system|tool|developer)"),
    _Mark(rf"<\|start_header_id\|>{_WORDS}{{0,40}}<\|end_header_id\|>"),
    _Mark("<[|\uff5c][\\w/\u2581]{1,40}[|\uff5c]>"),
)
_JSON_CALL = re.compile(
    r'(?P<fence>```\w{0,12}\s{0,8})?(?P<list>\[\s{0,8})?\{\s{0,8}"name"\s{0,8}:\s{0,8}"(?P<name>[\w.-]{1,100})"\s{0,8},\s{0,8}"(?:arguments|parameters)"\s{0,8}:',
    re.IGNORECASE,
)


class PlainSpeech:
    """Separates a complete text into `speech` and `reasoning`. `tools` are the names of the offered tools."""

    def __init__(self, text: str, tools: frozenset[str] = frozenset()) -> None:
        self.speech = ""
        self.reasoning = ""
        self._tools = tools
        self._trims = True
        self._is_line_start = True
        self._in_sections = False
        at = 0
        while at < len(text):
            at = self._read(text, at)

    def _read(self, text: str, at: int) -> int:
        for mark in self._marks():
            if found := mark.match(text, at):
                return self._take(text, found.end(), mark)
        if not self.speech and (named := _JSON_CALL.match(text, at)) and named["name"] in self._tools:
            ends = _until("```") if named["fence"] else _json_call(2 if named["list"] else 1)
            return self._take(text, named.end(), _Mark("", ends))
        if self.speech or not UNHEARD.match(text[at]):
            self._say(text[at])
        return at + 1

    def _marks(self) -> Iterator[_Mark]:
        if self._is_line_start:
            yield from (_TIME, _LINE_CALL, _FENCED_CALL)
        if self._is_line_start and self._in_sections:
            yield _SECTION
        yield from _ANYWHERE

    def _take(self, text: str, at: int, mark: _Mark) -> int:
        ends, goes_on = mark.find_end(text, at)
        if mark.is_reasoning:
            self.reasoning += text[at:ends]
        self._in_sections = self._in_sections or mark is _TIME
        self._trims = not self.speech or self.speech[-1].isspace()
        return goes_on

    def _say(self, char: str) -> None:
        self._is_line_start = char == "\n"
        self._in_sections = self._in_sections and char.isspace()
        if not (self._trims and char.isspace()):
            self.speech += char
            self._trims = False
