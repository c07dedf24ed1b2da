"""The steps of `scripts/demo` in the order of the command line: inputs, and actions between them."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial

from demo.people import USER


@dataclass(frozen=True, slots=True)
class Input:
    """An input, and whether its exchange is then tagged as important."""

    text: str
    important: bool = False


@dataclass(frozen=True, slots=True)
class Speaker:
    """A change of the speaker for the following steps."""

    person: str = USER


class Between(Enum):
    """An action between two inputs."""

    NEW_CONVERSATION = "a new conversation"
    RESTART = "restarting Home Assistant"


type Step = Input | Speaker | Between


def add_steps(parser: argparse.ArgumentParser) -> None:
    """Add the command-line options for steps; the parsed arguments have them in order as `steps`."""
    for option, kind, about in (
        ("--say", Input, "say this without a browser, and end; repeatable, all in one conversation"),
        ("--important", partial(Input, important=True), "like --say, and tag the exchange as important"),
    ):
        parser.add_argument(option, metavar="TEXT", dest="steps", action="append", type=kind, default=[], help=about)
    parser.add_argument(
        "--as",
        metavar="PERSON",
        dest="steps",
        action="append",
        type=_speaker,
        help="say what follows as this person of the home, in a conversation of their own",
    )
    for option, step, about in (
        ("--new-conversation", Between.NEW_CONVERSATION, "say what follows in a new conversation"),
        ("--restart", Between.RESTART, "restart Home Assistant before what follows"),
    ):
        parser.add_argument(option, dest="steps", action="append_const", const=step, help=about)


def says_nothing(steps: Iterable[Step]) -> bool:
    """Return whether there are steps but no inputs among them."""
    steps = tuple(steps)
    return bool(steps) and not any(isinstance(step, Input) for step in steps)


def _speaker(person: str) -> Speaker:
    name = person.strip()
    if not name:
        raise argparse.ArgumentTypeError("a person has a name")
    return Speaker(USER if name.casefold() == USER else name)
