"""Which window an input belongs to."""

import pytest

from custom_components.windowed_conversation.turn.scope import Scope, WindowKey, window_key


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
    assert window_key(scope, "talk", device=device, user=user) == key


@pytest.mark.parametrize("key", [WindowKey("talk"), WindowKey("talk", "ada"), WindowKey("device:box", "ada")])
def test_key_is_read_as_it_was_written(key: WindowKey) -> None:
    assert WindowKey.parse(str(key)) == key


def test_users_who_give_the_same_name_have_windows_of_their_own() -> None:
    ada, grace = (window_key(Scope.CONVERSATION, "talk", device=None, user=user) for user in ("ada", "grace"))

    assert str(ada) != str(grace)
