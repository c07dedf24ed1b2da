"""Build the files of a release in a folder: notes.md from CHANGELOG.md, and the integration as a zip file.

    python3 scripts/build_release.py v1.2.3 release              ends with 1 if the tag and the files do not agree
    python3 scripts/build_release.py v1.2.3 release --dry-run    also accepts a version that is still unreleased

The zip file has the integration's files at its top, so it is unpacked into `custom_components/windowed_conversation`.
"""

import argparse
from collections.abc import Iterator
import json
from pathlib import Path
import re
import sys
import tomllib
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = Path("custom_components", "windowed_conversation")
MANIFEST = PACKAGE / "manifest.json"
ARCHIVE_NAME = "windowed_conversation.zip"
NOTES_NAME = "notes.md"

# Without times of its own, an archive depends only on the files.
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)


class ReleaseError(Exception):
    """The tag cannot be released from this repository."""


def read_release_notes(tag: str, repository: Path = REPOSITORY, *, is_dry_run: bool = False) -> str:
    """Return the release notes of the version from CHANGELOG.md.

    Raises `ReleaseError` if the tag is not that of the manifest, pyproject.toml and CHANGELOG.md, or, unless it is a
    dry run, if the version is unreleased.
    """
    version = json.loads((repository / MANIFEST).read_text("utf-8"))["version"]
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    if tag != f"v{version}":
        raise ReleaseError(f"The tag is {tag}, but manifest.json has the version {version}.")
    if project != version:
        raise ReleaseError(f"pyproject.toml has the version {project}, but manifest.json {version}.")
    heading, text = _extract_section(version, (repository / "CHANGELOG.md").read_text("utf-8"))
    if "unreleased" in heading and not is_dry_run:
        raise ReleaseError(f"CHANGELOG.md calls {version} unreleased.")
    if not text:
        raise ReleaseError(f"CHANGELOG.md has no changes of {version}.")
    return text


def _extract_section(version: str, changelog: str) -> tuple[str, str]:
    """Return the heading of a version and the text below it, up to the next version's heading."""
    for section in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        if heading.split()[:1] == [version]:
            return heading, text.strip()
    raise ReleaseError(f"CHANGELOG.md says nothing of {version}.")


def build_release(tag: str, folder: Path, repository: Path = REPOSITORY, *, is_dry_run: bool = False) -> None:
    """Write the notes and the archive of a release to a folder. Raises `ReleaseError`, and then writes nothing."""
    notes = read_release_notes(tag, repository, is_dry_run=is_dry_run)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NOTES_NAME).write_text(f"{notes}\n", "utf-8")
    with ZipFile(folder / ARCHIVE_NAME, "w") as archive:
        for path in _iter_files(repository / PACKAGE):
            name = path.relative_to(repository / PACKAGE).as_posix()
            archive.writestr(ZipInfo(name, _FIXED_TIME), path.read_bytes(), ZIP_DEFLATED)


def _iter_files(package: Path) -> Iterator[Path]:
    """Yield the path of each file of the integration, without what Python compiled."""
    yield from (path for path in sorted(package.rglob("*")) if path.is_file() and path.parent.name != "__pycache__")


def main() -> str | None:
    """Build the release that the arguments name. Return the reason if that is not possible."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tag", help="the tag, such as v1.2.3")
    parser.add_argument("folder", type=Path, help="the folder for the files, which is created if it is missing")
    parser.add_argument("--dry-run", action="store_true", help="accept a version that is still called unreleased")
    arguments = parser.parse_args()
    try:
        build_release(arguments.tag, arguments.folder, is_dry_run=arguments.dry_run)
    except ReleaseError as error:
        return str(error)
    print(*(f"{path} has {path.stat().st_size:,} bytes" for path in sorted(arguments.folder.iterdir())), sep="\n")
    return None


if __name__ == "__main__":
    sys.exit(main())
