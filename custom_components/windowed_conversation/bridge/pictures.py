"""Pictures and PDFs as attachments of messages: their real type, a bounded size, and no metadata of pictures."""

from io import BytesIO
import re

from homeassistant.core import HomeAssistant

from ..window import Attachment

_MAX_FILE_BYTES = 20 * 1024**2
_MAX_NAME_CHARS = 64

# Anthropic scales larger pictures to this: https://platform.claude.com/docs/en/build-with-claude/vision
_MAX_SIDE_PIXELS = 1568
# A picture of this many pixels needs 150 MB of memory, and one of a larger size may be a decompression bomb.
_MAX_PIXELS = 50_000_000
# A larger picture is encoded again, because the requests are encoded in the event loop.
_MAX_UNCHANGED_BYTES = 1024**2
_JPEG_QUALITY = 85

_TYPE_PATTERN = re.compile(
    rb"(?P<jpeg>\xff\xd8\xff)|(?P<png>\x89PNG\r\n\x1a\n)|(?P<gif>GIF8[79]a)|(?P<webp>RIFF....WEBP)|(?P<pdf>%PDF-)",
    re.DOTALL,
)
_PILLOW_FORMATS = ("JPEG", "PNG", "GIF", "WEBP")

# What Pillow finds in a picture beside its pixels that says nothing about where and when it was taken.
_HARMLESS_FIELDS = frozenset(
    {"jfif", "jfif_version", "jfif_unit", "jfif_density", "APP0", "adobe", "adobe_transform", "APP14", "progressive"}
    | {"progression", "dpi", "gamma", "srgb", "aspect", "interlace", "transparency", "background", "version"}
)


class UnreadableFile(Exception):
    """A file cannot be sent to a model. `key` is the translation key of the error."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


async def async_prepare_attachment(hass: HomeAssistant, data: bytes, name: str) -> Attachment:
    """Return a file as an attachment. Its type is what its first bytes say, and its name is the base name.

    Pictures have at most 1568 pixels on the longer side and no metadata, such as the place where they were taken. PDFs
    are unchanged. Raises `UnreadableFile` for a file above 20 MB, of another type, or with a damaged picture.
    """
    if len(data) > _MAX_FILE_BYTES:
        raise UnreadableFile("file_too_large")
    if (found := _TYPE_PATTERN.match(data)) is None:
        raise UnreadableFile("file_not_readable")
    mime_type = "application/pdf" if found["pdf"] else f"image/{found.lastgroup}"
    if not found["pdf"] and (encoded := await hass.async_add_executor_job(_encode_picture, data)):
        mime_type, data = "image/jpeg", encoded
    return Attachment(mime_type, data, name.replace("\\", "/").rpartition("/")[2][:_MAX_NAME_CHARS])


def _encode_picture(data: bytes) -> bytes | None:
    """Return a picture as a small JPEG without metadata, or None if it can be sent unchanged. Takes up to a second.

    Raises `UnreadableFile` if the picture is damaged or has too many pixels.
    """
    try:
        return _scale_picture(data)
    except Exception as err:
        # Pillow's decoders raise errors of many types for damaged pictures.
        raise UnreadableFile("file_not_readable") from err


def _scale_picture(data: bytes) -> bytes | None:
    from PIL import Image, ImageOps  # noqa: PLC0415 - few turns have a picture

    with Image.open(BytesIO(data), formats=_PILLOW_FORMATS) as image:
        width, height = image.size
        if width * height > _MAX_PIXELS:
            raise ValueError("too many pixels")
        scale = _MAX_SIDE_PIXELS / max(width, height)
        is_small = scale >= 1 and len(data) <= _MAX_UNCHANGED_BYTES
        # A JPEG is decoded at a fraction of its size if that suffices.
        image.draft(None, (max(1, int(width * scale)), max(1, int(height * scale))))
        image.load()
        is_still = not getattr(image, "is_animated", False)
        if is_small and is_still and {*image.info, *getattr(image, "app", ())} <= _HARMLESS_FIELDS:
            return None
        upright = ImageOps.exif_transpose(image).convert("RGBA" if image.has_transparency_data else "RGB")
    upright.thumbnail((_MAX_SIDE_PIXELS, _MAX_SIDE_PIXELS))
    # A new picture has none of the metadata, some of which Pillow would write again.
    picture = Image.new("RGB", upright.size, "white")
    picture.paste(upright, mask=upright if upright.mode == "RGBA" else None)
    picture.save(encoded := BytesIO(), "JPEG", quality=_JPEG_QUALITY)
    return encoded.getvalue()
