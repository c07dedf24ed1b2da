"""Extracts the names of things from a user's text."""

import re


def parse_names(text: str) -> list[str]:
    """Return the names of the things in a text such as "both the kitchen light and the reading lamp"."""
    text = re.sub(
        r"^both | (?:for me|now|please|still|at once|at the same time)$", "", text.strip(), flags=re.IGNORECASE
    )
    parts = re.split(r",? and |, ", text)
    return [re.sub(r"^(?:the|my) ", "", part.strip(), flags=re.IGNORECASE) for part in parts if part.strip()]
