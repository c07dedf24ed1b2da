"""Tests of files as attachments: the type is read from the data, pictures become small and lose their metadata."""

from io import BytesIO
from typing import Any

from homeassistant.core import HomeAssistant
from PIL import Image
import pytest

from custom_components.windowed_conversation.bridge.pictures import UnreadableFile, async_prepare_attachment

_GPS_INFO, _LATITUDE, _MODEL, _ORIENTATION = 0x8825, 2, 0x0110, 0x0112
_LEFT_SIDE_DOWN = 8
_BLUE = (0, 0, 200)


def _encode(kind: str = "JPEG", size: tuple[int, int] = (64, 48), mode: str = "RGB", **options: Any) -> bytes:
    color = _BLUE if mode == "RGB" else 0
    Image.new(mode, size, color).save(encoded := BytesIO(), kind, **options)
    return encoded.getvalue()


def _noise(size: tuple[int, int], kind: str = "JPEG") -> bytes:
    Image.effect_noise(size, 80).convert("RGB").save(encoded := BytesIO(), kind, quality=95)
    return encoded.getvalue()


def _exif(**orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[_MODEL] = "Garden camera"
    exif.get_ifd(_GPS_INFO)[_LATITUDE] = (52.0, 31.0, 12.0)
    for value in orientation.values():
        exif[_ORIENTATION] = value
    return exif


async def _prepare(hass: HomeAssistant, data: bytes, name: str = "front.jpg") -> tuple[str, bytes, Image.Image]:
    attachment = await async_prepare_attachment(hass, data, name)
    return attachment.mime_type, attachment.data, Image.open(BytesIO(attachment.data))


async def _refuse(hass: HomeAssistant, data: bytes) -> str:
    with pytest.raises(UnreadableFile) as refused:
        await async_prepare_attachment(hass, data, "front.jpg")
    return refused.value.key


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
async def test_a_small_picture_keeps_its_size(hass: HomeAssistant, kind: str) -> None:
    mime_type, _, picture = await _prepare(hass, _encode(kind))

    assert (mime_type, picture.size) == ("image/jpeg", (64, 48))


async def test_the_type_is_read_from_the_data_and_not_from_the_name(hass: HomeAssistant) -> None:
    attachment = await async_prepare_attachment(hass, b"%PDF-1.7 content", "front.png")

    assert attachment.mime_type == "application/pdf"


async def test_webp_is_readable(hass: HomeAssistant) -> None:
    assert (await _prepare(hass, _encode("WEBP")))[2].size == (64, 48)


async def test_a_pdf_is_unchanged(hass: HomeAssistant) -> None:
    attachment = await async_prepare_attachment(hass, b"%PDF-1.7 content", "bill.pdf")

    assert (attachment.mime_type, attachment.data) == ("application/pdf", b"%PDF-1.7 content")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/config/www/anna/front.jpg", "front.jpg"),
        ("C:\\pictures\\front.jpg", "front.jpg"),
        ("x" * 80, "x" * 64),
    ],
)
async def test_the_name_has_no_folder_and_at_most_64_characters(hass: HomeAssistant, path: str, name: str) -> None:
    assert (await async_prepare_attachment(hass, _encode(), path)).name == name


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
async def test_a_large_picture_is_scaled_to_1568_pixels(hass: HomeAssistant, kind: str) -> None:
    mime_type, data, picture = await _prepare(hass, _noise((3000, 1500), kind))

    assert (mime_type, picture.size, len(data) < 1024**2) == ("image/jpeg", (1568, 784), True)


async def test_a_picture_of_few_pixels_and_many_bytes_becomes_smaller(hass: HomeAssistant) -> None:
    original = _noise((900, 900), "PNG")

    _, data, picture = await _prepare(hass, original)

    assert (picture.size, len(data) < len(original) / 2) == ((900, 900), True)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
async def test_the_place_where_a_picture_was_taken_is_removed(hass: HomeAssistant, kind: str) -> None:
    original = _encode(kind, exif=_exif())
    assert b"Garden camera" in original

    _, data, picture = await _prepare(hass, original)

    assert (b"Garden camera" in data, dict(picture.getexif())) == (False, {})


@pytest.mark.parametrize(
    "options", [{"comment": b"52.520 north"}, {"xmp": b"<x:xmpmeta>52.520 north</x:xmpmeta>"}], ids=["comment", "xmp"]
)
async def test_texts_in_a_picture_are_removed(hass: HomeAssistant, options: dict[str, Any]) -> None:
    original = _encode(**options)
    assert b"52.520 north" in original

    assert b"52.520 north" not in (await _prepare(hass, original))[1]


async def test_a_picture_that_was_taken_sideways_is_turned(hass: HomeAssistant) -> None:
    original = _encode(size=(64, 48), exif=_exif(orientation=_LEFT_SIDE_DOWN))

    assert (await _prepare(hass, original))[2].size == (48, 64)


async def test_transparent_parts_of_a_scaled_picture_are_white(hass: HomeAssistant) -> None:
    _, _, picture = await _prepare(hass, _encode("PNG", size=(2000, 10), mode="RGBA"))

    assert picture.getpixel((5, 5)) == (255, 255, 255)


async def test_a_moving_picture_becomes_its_first_frame(hass: HomeAssistant) -> None:
    frames = [Image.new("RGB", (64, 48), color) for color in ("red", "green")]
    frames[0].save(encoded := BytesIO(), "GIF", save_all=True, append_images=frames[1:])

    mime_type, _, picture = await _prepare(hass, encoded.getvalue())

    assert (mime_type, picture.size) == ("image/jpeg", (64, 48))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"a text",
        b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic",
        b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom",
        _encode()[:200],
        _noise((200, 200))[:-5000],
        _encode("PNG")[:60],
        b"\xff\xd8\xff" + b"\x00" * 100,
    ],
    ids=["nothing", "text", "HEIC", "video", "cut JPEG", "half a JPEG", "cut PNG", "no JPEG"],
)
async def test_what_is_no_readable_file_is_refused(hass: HomeAssistant, data: bytes) -> None:
    assert await _refuse(hass, data) == "file_not_readable"


async def test_a_picture_that_would_fill_the_memory_is_refused(hass: HomeAssistant) -> None:
    assert await _refuse(hass, _encode("PNG", size=(8_000, 8_000), mode="1")) == "file_not_readable"


async def test_a_file_above_20_mb_is_refused(hass: HomeAssistant) -> None:
    assert await _refuse(hass, b"%PDF-" + bytes(20 * 1024**2)) == "file_too_large"
