"""Tests for the script that checks the requirements for a release."""

from pathlib import Path

import pytest

from scripts.check_release import MANIFEST, ReleaseError, read_release_notes

CHANGELOG = """# Changelog

## 1.2.0 (2026-12-01)

- Speaks French.

## 1.1.0

- Speaks Dutch.
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return the path of a repository that is ready for the release of 1.2.0."""
    (tmp_path / MANIFEST).parent.mkdir(parents=True)
    (tmp_path / MANIFEST).write_text('{"version": "1.2.0"}')
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    return tmp_path


def test_release_has_the_text_of_its_version(repository: Path) -> None:
    assert read_release_notes("v1.2.0", repository) == "- Speaks French."


@pytest.mark.parametrize("tag", ["v1.1.0", "1.2.0", "v1.2.0-beta", "v"])
def test_tag_of_another_version_is_no_release(repository: Path, tag: str) -> None:
    with pytest.raises(ReleaseError, match=r"manifest\.json has the version 1\.2\.0"):
        read_release_notes(tag, repository)


def test_project_of_another_version_is_no_release(repository: Path) -> None:
    (repository / "pyproject.toml").write_text('[project]\nversion = "1.1.0"\n')

    with pytest.raises(ReleaseError, match=r"pyproject\.toml"):
        read_release_notes("v1.2.0", repository)


@pytest.mark.parametrize(
    ("heading", "complaint"), [("1.2.0 (unreleased)", "calls 1.2.0 unreleased"), ("1.2.0rc1", "says nothing of 1.2.0")]
)
def test_version_without_its_changes_is_no_release(repository: Path, heading: str, complaint: str) -> None:
    (repository / "CHANGELOG.md").write_text(CHANGELOG.replace("1.2.0 (2026-12-01)", heading))

    with pytest.raises(ReleaseError, match=complaint):
        read_release_notes("v1.2.0", repository)
