"""The steps that `scripts/demo` takes by itself, in the order of the command line: inputs, and actions in between."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial

from demo.people import USER


@dataclass(frozen=True, slots=True)
class Input:
    """An input, and whether its exchange is tagged as important then."""

    text: str
    important: bool = False


@dataclass(frozen=True, slots=True)
class Speaker:
    """The speaker of the steps that follow."""

    person: str = USER


class Between(Enum):
    """An event between two inputs."""

    NEW_CONVERSATION = "a new conversation"
    RESTART = "restarting Home Assistant"


type Step = Input | Speaker | Between


def add_steps(parser: argparse.ArgumentParser) -> None:
    """Add the options of the steps, which are `steps` of the parsed arguments."""
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
    """Return whether there are steps and none of them says anything."""
    steps = tuple(steps)
    return bool(steps) and not any(isinstance(step, Input) for step in steps)


def _speaker(person: str) -> Speaker:
    name = person.strip()
    if not name:
        raise argparse.ArgumentTypeError("a person has a name")
    return Speaker(USER if name.casefold() == USER else name)
