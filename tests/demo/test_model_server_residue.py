"""Signed or sealed residue opens for its own model only, and only unchanged."""

import pytest

from demo.model_server.residue import is_signed, seal, sign, unseal

NOT_OURS = ["", "?", "AAAA", None, 5, "gAAA" * 30, "\N{SNOWMAN}"]


@pytest.mark.parametrize("model", ["", "gpt-5", "\N{GRINNING FACE}"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"thoughts"])
def test_what_is_sealed_opens_again(model, content):
    assert unseal(model, seal(model, content)) == content


@pytest.mark.parametrize("model", ["", "gpt-5"])
@pytest.mark.parametrize("said", ["", "hello", "\N{GRINNING FACE}"])
def test_what_is_signed_is_recognised(model, said):
    assert is_signed(model, said, sign(model, said))


def test_another_model_opens_nothing():
    assert unseal("one", seal("other", b"hm")) is None
    assert not is_signed("one", "hm", sign("other", "hm"))


def test_another_text_is_not_signed():
    assert not is_signed("one", "ho", sign("one", "hm"))


@pytest.mark.parametrize("at", [0, 10, 20, -5])
def test_a_changed_seal_does_not_open(at):
    sealed = bytearray(seal("one", b"something that is long enough").encode())
    sealed[at] = ord("A") if sealed[at] != ord("A") else ord("B")
    assert unseal("one", sealed.decode()) is None


@pytest.mark.parametrize("sealed", NOT_OURS)
def test_what_is_not_ours_does_not_open(sealed):
    assert unseal("one", sealed) is None
    assert not is_signed("one", "hm", sealed)
