"""False figures that a server reports instead of true ones: any JSON, or nothing, under the names of a usage."""

from collections.abc import Mapping
import json
import re


def misreported(data: bytes, figures: Mapping[str, str | None]) -> bytes:
    """Return the data with the JSON text of `figures` for the numbers of these names; None leaves a number out."""
    for name, text in figures.items():
        key = json.dumps(name).encode()
        written = json.dumps(f"no_{name}").encode() + b":0" if text is None else key + b":" + text.encode()
        data = written.join(re.split(re.escape(key) + rb":\s*\d+", data))
    return data
