"""Pictures and documents: seen by the model, and paid for by the piece."""

import base64

import pytest

from demo.model_server.media import attachment, from_data_url, priced
from demo.model_server.usage import part_bytes, tokens


def picture(size):
    return {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{base64.b64encode(bytes(size)).decode()}"},
    }


@pytest.mark.parametrize(
    ("parts", "answer"),
    [
        ([picture(10)], "I was sent image/png of 10 bytes."),
        ([picture(10), picture(20)], "I was sent image/png of 10 bytes and image/png of 20 bytes."),
        ([], "I was sent no picture."),
    ],
)
async def test_the_model_says_what_it_was_sent(ask, parts, answer):
    said = {"type": "text", "text": "What is in the picture?"}
    assert (await ask({"role": "user", "content": [*parts, said]})).text == answer


def test_a_large_picture_costs_as_much_as_a_small_one():
    small, large = tokens(part_bytes(picture(10))), tokens(part_bytes(picture(100_000)))
    assert small == large
    assert 300 <= small < 350


def test_another_picture_is_another_prompt():
    assert part_bytes(picture(10)) != part_bytes(picture(11))


@pytest.mark.parametrize("value", [{"data": "text"}, {"url": "https://example.com"}, {"mimeType": "a", "text": "data"}])
def test_what_only_looks_like_a_picture_is_left_alone(value):
    assert priced(value) == value


@pytest.mark.parametrize(
    "url", [None, "", "data:", "data:image/png,abc", "https://example.com/a.png", "data:;base64,?"]
)
def test_what_is_no_data_url_has_no_attachment(url):
    assert from_data_url(url) is None


@pytest.mark.parametrize("data", ["?", None, "a"])
def test_what_is_no_base64_has_no_content(data):
    assert not (found := attachment("image/png", data)) or found.size == 0
