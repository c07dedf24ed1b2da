"""Check that a tag matches the version of this repository, and print that version's section of CHANGELOG.md.

usage: python3 scripts/check_release.py v1.2.3
"""

import json
from pathlib import Path
import re
import sys
import tomllib

REPOSITORY = Path(__file__).resolve().parent.parent
MANIFEST = Path("custom_components", "windowed_conversation", "manifest.json")


class ReleaseError(Exception):
    """The tag cannot be released from this repository."""


def read_release_notes(tag: str, repository: Path = REPOSITORY) -> str:
    """Return the release notes of the version from CHANGELOG.md. Raises `ReleaseError` if the tag is not valid."""
    version = json.loads((repository / MANIFEST).read_text("utf-8"))["version"]
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    if tag != f"v{version}":
        raise ReleaseError(f"The tag is {tag}, but manifest.json has the version {version}.")
    if project != version:
        raise ReleaseError(f"pyproject.toml has the version {project}, but manifest.json {version}.")
    return _extract_section(version, (repository / "CHANGELOG.md").read_text("utf-8"))


def _extract_section(version: str, changelog: str) -> str:
    """Return the text below the heading of a version, up to the next version's heading."""
    for section in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        if heading.split()[:1] == [version]:
            if "unreleased" in heading:
                raise ReleaseError(f"CHANGELOG.md calls {version} unreleased.")
            return text.strip()
    raise ReleaseError(f"CHANGELOG.md says nothing of {version}.")


if __name__ == "__main__":
    try:
        print(read_release_notes(sys.argv[1]))
    except ReleaseError as error:
        sys.exit(str(error))
