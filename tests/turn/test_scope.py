"""Tests for the window that an input belongs to."""

import pytest

from custom_components.windowed_conversation.memory.turn.speaker import Speaker
from custom_components.windowed_conversation.turn.errors import IdTooLong
from custom_components.windowed_conversation.turn.routing import Scope, WindowKey, build_window_key


@pytest.mark.parametrize(
    ("scope", "device", "user", "key"),
    [
        (Scope.CONVERSATION, None, None, WindowKey("talk")),
        (Scope.CONVERSATION, "box", None, WindowKey("talk")),
        (Scope.CONVERSATION, "box", "ada", WindowKey("talk", "ada")),
        (Scope.DEVICE, "box", None, WindowKey("device:box")),
        (Scope.DEVICE, "box", "ada", WindowKey("device:box", "ada")),
        (Scope.DEVICE, None, "ada", WindowKey("talk", "ada")),
        (Scope.USER, "box", "ada", WindowKey("user", "ada")),
        (Scope.USER, "box", None, WindowKey("talk")),
        (Scope.AGENT, "box", "ada", WindowKey("agent")),
        (Scope.AGENT, None, None, WindowKey("agent")),
    ],
)
def test_input_belongs_to_the_window_of_its_scope(
    scope: Scope, device: str | None, user: str | None, key: WindowKey
) -> None:
    assert build_window_key(scope, "talk", device=device, user=user) == key


@pytest.mark.parametrize(
    ("scope", "user", "key"),
    [
        (Scope.CONVERSATION, None, WindowKey("talk", "ada")),
        (Scope.DEVICE, None, WindowKey("device:box", "ada")),
        (Scope.USER, None, WindowKey("talk", "ada")),
        (Scope.USER, "voip", WindowKey("talk", "ada")),
        (Scope.AGENT, None, WindowKey("agent")),
    ],
)
def test_owner_of_a_device_has_its_windows(scope: Scope, user: str | None, key: WindowKey) -> None:
    assert build_window_key(scope, "talk", device="box", user=user, owner="ada") == key


KEYS = [
    WindowKey(conversation, user)
    for conversation in (
        "",
        "talk",
        "device:box",
        "\x1f",
        "talk\x1f",
        "talk\x1fada",
        "talk\x1fada\x1f",
        "\x1ftalk\x1f\x1f",
    )
    for user in (None, "ada", "grace")
]


def test_key_is_read_as_it_was_written(subtests: pytest.Subtests) -> None:
    for key in KEYS:
        with subtests.test(key=repr(key)):
            assert WindowKey.parse(str(key)) == key


def test_no_id_makes_the_key_of_another_conversation() -> None:
    assert len({str(key) for key in KEYS}) == len(KEYS)


@pytest.mark.parametrize("scope", [Scope.CONVERSATION, Scope.DEVICE])
def test_id_that_is_longer_than_any_is_refused(scope: Scope) -> None:
    with pytest.raises(IdTooLong):
        build_window_key(scope, "x" * 256, device="x" * 250, user=None)


def test_id_of_255_characters_is_taken() -> None:
    assert build_window_key(Scope.CONVERSATION, "x" * 255, device=None, user=None) == WindowKey("x" * 255)


def test_users_who_give_the_same_name_have_windows_of_their_own() -> None:
    ada, grace = (build_window_key(Scope.CONVERSATION, "talk", device=None, user=user) for user in ("ada", "grace"))

    assert str(ada) != str(grace)


@pytest.mark.parametrize(
    ("key", "speaker", "person", "is_alone"),
    [
        (WindowKey("user", "ada"), "ada", "ada", True),
        (WindowKey("talk", "ada"), "ada", "ada", True),
        (WindowKey("device:box", "ada"), "ada", "ada", True),
        (WindowKey("agent"), "ada", "ada", False),
        (WindowKey("device:box"), None, None, False),
        (WindowKey("talk"), None, None, False),
        (WindowKey("talk", "ada"), "grace", None, False),
        (WindowKey("talk", "ada"), None, None, False),
    ],
)
def test_private_things_enter_only_the_window_of_the_one_person_who_speaks(
    key: WindowKey, speaker: str | None, person: str | None, is_alone: bool
) -> None:
    heard = Speaker("", "en", speaker).for_window(key)
    assert (heard.person, heard.is_alone) == (person, is_alone)
