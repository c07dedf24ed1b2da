"""Tests for the command-line options of `scripts/demo` that define steps."""

import argparse

import pytest

from demo.steps import DemoAction, Input, SpeakerChange, add_steps, lacks_input


def parsed(*options):
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_steps(parser)
    return parser.parse_args(options).steps


def test_steps_are_in_the_order_of_the_command_line():
    given = (
        "--say",
        "one",
        "--new-conversation",
        "--important",
        "two",
        "--restart",
        "--as",
        " Grace ",
        "--say",
        "three",
    )
    assert parsed(*given) == [
        Input("one"),
        DemoAction.NEW_CONVERSATION,
        Input("two", is_important=True),
        DemoAction.RESTART,
        SpeakerChange("Grace"),
        Input("three"),
    ]


def test_the_owner_is_the_same_person_in_any_letter_case():
    assert parsed("--as", "Demo", "--say", "hello")[0] == SpeakerChange()


@pytest.mark.parametrize(
    ("options", "nothing"),
    [(("--new-conversation",), True), (("--as", "Grace", "--restart"), True), (("--restart", "--say", "hi"), False)],
)
def test_steps_without_anything_to_say_are_seen(options, nothing):
    assert lacks_input(parsed(*options)) is nothing
