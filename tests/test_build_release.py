"""Tests for the script that builds a release, and for the workflow that publishes one."""

from pathlib import Path
import subprocess
import sys
from typing import Any
from zipfile import ZipFile

from homeassistant.util.yaml import load_yaml_dict
import pytest

from scripts.build_release import ARCHIVE_NAME, MANIFEST, NOTES_NAME, ReleaseError, build_release, read_release_notes

from . import repository_files
from .repository_files import PACKAGE, REPOSITORY

TAG = f"v{repository_files.MANIFEST['version']}"
WORKFLOW: Any = load_yaml_dict(str(REPOSITORY / ".github" / "workflows" / "release.yml"))

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
    ("heading", "complaint"),
    [
        ("1.2.0 (unreleased)", "calls 1.2.0 unreleased"),
        ("1.2.0rc1", "says nothing of 1.2.0"),
        ("1.2.0\n\n## 1.1.9", "has no changes of 1.2.0"),
    ],
)
def test_version_without_its_changes_is_no_release(repository: Path, heading: str, complaint: str) -> None:
    (repository / "CHANGELOG.md").write_text(CHANGELOG.replace("1.2.0 (2026-12-01)", heading))

    with pytest.raises(ReleaseError, match=complaint):
        read_release_notes("v1.2.0", repository)


def test_dry_run_accepts_a_version_that_is_unreleased(repository: Path) -> None:
    (repository / "CHANGELOG.md").write_text(CHANGELOG.replace("2026-12-01", "unreleased"))

    assert read_release_notes("v1.2.0", repository, is_dry_run=True) == "- Speaks French."


def test_nothing_is_built_for_a_tag_of_another_version(repository: Path) -> None:
    with pytest.raises(ReleaseError):
        build_release("v1.1.0", repository / "release", repository)

    assert not (repository / "release").exists()


def test_archive_depends_only_on_the_files(repository: Path) -> None:
    build_release("v1.2.0", repository / "first", repository)
    (repository / MANIFEST).touch()
    build_release("v1.2.0", repository / "second", repository)

    assert (repository / "first" / ARCHIVE_NAME).read_bytes() == (repository / "second" / ARCHIVE_NAME).read_bytes()


def run_script(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script as the workflow does, and return its result."""
    command = [sys.executable, "scripts/build_release.py", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)


def test_dry_run_of_this_repository_builds_the_whole_integration(tmp_path: Path) -> None:
    done = run_script(TAG, str(tmp_path), "--dry-run")

    assert (done.returncode, done.stderr) == (0, "")
    with ZipFile(tmp_path / ARCHIVE_NAME) as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert packed == {path.relative_to(PACKAGE).as_posix(): path.read_bytes() for path in files}
    assert (tmp_path / NOTES_NAME).read_text() == f"{read_release_notes(TAG, is_dry_run=True)}\n"


def test_script_says_why_a_tag_cannot_be_released(tmp_path: Path) -> None:
    done = run_script("v0.0.1", str(tmp_path), "--dry-run")

    assert (done.returncode, "The tag is v0.0.1" in done.stderr) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_workflow_runs_the_script_and_publishes_what_it_built() -> None:
    build, publish = ([step.get("run", "") for step in WORKFLOW["jobs"][job]["steps"]] for job in ("build", "publish"))

    assert 'python3 scripts/build_release.py "$TAG" release $DRY_RUN' in build
    assert f"--notes-file release/{NOTES_NAME} release/{ARCHIVE_NAME}" in publish[-1]


def test_workflow_can_be_started_by_hand_and_then_publishes_nothing() -> None:
    writing = [name for name, job in WORKFLOW["jobs"].items() if "write" in job.get("permissions", {}).values()]

    # YAML takes "on" for a boolean
    assert WORKFLOW[True].keys() == {"push", "workflow_dispatch"}
    assert writing == ["publish"]
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert WORKFLOW["jobs"]["publish"]["if"] == "github.event_name == 'push'"
