"""False usage counts that a server reports: any JSON value, or none, under the field names of a usage."""

from collections.abc import Mapping
import json
import re


def falsify_counts(data: bytes, figures: Mapping[str, str | None]) -> bytes:
    """Return the data with these fields' numbers replaced by the JSON texts in `figures`, or removed if None."""
    for name, text in figures.items():
        key = json.dumps(name).encode()
        written = json.dumps(f"no_{name}").encode() + b":0" if text is None else key + b":" + text.encode()
        data = written.join(re.split(re.escape(key) + rb":\s*\d+", data))
    return data
