"""The steps of `scripts/demo` in the order of the command line: inputs, and actions between them."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial

from demo.people import OWNER_USERNAME


@dataclass(frozen=True, slots=True)
class Input:
    """An input, and whether its exchange is then tagged as important."""

    text: str
    is_important: bool = False


@dataclass(frozen=True, slots=True)
class SpeakerChange:
    """A change of the speaker for the following steps."""

    person: str = OWNER_USERNAME


class DemoAction(Enum):
    """An action between two inputs."""

    NEW_CONVERSATION = "a new conversation"
    RESTART = "restarting Home Assistant"


type Step = Input | SpeakerChange | DemoAction


def add_steps(parser: argparse.ArgumentParser) -> None:
    """Add the command-line options for steps; the parsed arguments have them in order as `steps`."""
    for option, kind, about in (
        ("--say", Input, "say this without a browser, and end; repeatable, all in one conversation"),
        ("--important", partial(Input, is_important=True), "like --say, and tag the exchange as important"),
    ):
        parser.add_argument(option, metavar="TEXT", dest="steps", action="append", type=kind, default=[], help=about)
    parser.add_argument("--language", choices=("en", "de"), help="the language of what is said (default: en)")
    parser.add_argument("--tour", action="store_true", help="show ten things one after the other, and end")
    parser.add_argument(
        "--as",
        metavar="PERSON",
        dest="steps",
        action="append",
        type=_parse_speaker,
        help="say what follows as this person of the home, in a conversation of their own",
    )
    for option, step, about in (
        ("--new-conversation", DemoAction.NEW_CONVERSATION, "say what follows in a new conversation"),
        ("--restart", DemoAction.RESTART, "restart Home Assistant before what follows"),
    ):
        parser.add_argument(option, dest="steps", action="append_const", const=step, help=about)


def lacks_input(steps: Iterable[Step]) -> bool:
    """Return whether there are steps but no inputs among them."""
    steps = tuple(steps)
    return bool(steps) and not any(isinstance(step, Input) for step in steps)


def _parse_speaker(person: str) -> SpeakerChange:
    name = person.strip()
    if not name:
        raise argparse.ArgumentTypeError("a person has a name")
    return SpeakerChange(OWNER_USERNAME if name.casefold() == OWNER_USERNAME else name)
