"""An independent parser for server-sent events according to the standard."""

from collections.abc import Iterator


def payloads(stream: bytes) -> Iterator[str]:
    """Yield the data of each event, according to https://html.spec.whatwg.org/multipage/server-sent-events.html."""
    text = stream.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    *blocks, _ = text.split("\n\n")
    for block in blocks:
        fields = (line.partition(":")[::2] for line in block.split("\n"))
        data = [value.removeprefix(" ") for name, value in fields if name == "data"]
        if data:
            yield "\n".join(data)
