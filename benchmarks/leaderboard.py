"""Run the public project home-assistant-datasets on our agent: its tasks "assist", "assist-mini", and "questions".

Its "collect" sets up an account from a model file, in a Home Assistant of its own, says each sentence of a dataset, and
writes the answers and changes; its "eval" scores them. This module writes the model file for any server with OpenAI's
Chat Completions API, and runs both. docs/limits.md has the commands. The key is in LEADERBOARD_API_KEY.

All that is asked goes to the model, as for the other rows of the leaderboard, nothing is asked back before a lock is
opened, and nothing is remembered from one task to the next.
"""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
import json
import os
from pathlib import Path
import subprocess
import sys
from tempfile import TemporaryDirectory

_REPOSITORY = Path(__file__).resolve().parent.parent
_INTEGRATION = _REPOSITORY / "custom_components" / "windowed_conversation"
MODEL_ID = "windowed-conversation"
# The project asks for the answer of "conversation.mock_title", which is the entity of an agent with this name.
_AGENT_TITLE = "Mock Title"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardRun:
    """A run of one dataset. `home` is the folder of the integration "synthetic_home"."""

    url: str
    model: str
    dataset: Path
    home: Path
    output: Path
    categories: str = ""
    count: int | None = None
    api_key: str = ""

    def collect(self) -> int:
        """Say the sentences and return its exit code, 0 if all were said."""
        with TemporaryDirectory() as folder:
            self._write_workspace(Path(folder))
            self.output.mkdir(parents=True, exist_ok=True)
            return _run_task("collect", Path(folder), self._list_arguments(), self.output)

    def score(self) -> int:
        """Score the answers of `collect` and return the exit code: 0 if all are right."""
        with TemporaryDirectory() as folder:
            return _run_task("eval", Path(folder), (), self.output)

    def build_model_file(self) -> dict[str, object]:
        """Return the model file of the project: an account with one agent that asks only the model."""
        agent = {
            "model": self.model,
            "llm_hass_api": ["assist"],
            "routing": "model_only",
            "memory": "off",
            "record": "off",
            "ask_before_opening": "never",
        }
        return {
            "model_id": MODEL_ID,
            "domain": "windowed_conversation",
            "description": f"Windowed Conversation with {self.model}",
            "config_entry_data": {"provider": "openai_chat", "url": self.url, "api_key": self.api_key},
            "config_entry_options": {"persistence": "off"},
            "subentries_data": [
                {"subentry_type": "conversation", "title": _AGENT_TITLE, "unique_id": None, "data": agent}
            ],
        }

    def _write_workspace(self, folder: Path) -> None:
        """Write the files of the working folder. JSON is YAML, too."""
        (folder / "models").mkdir()
        (folder / "models" / f"{MODEL_ID}.yaml").write_text(json.dumps(self.build_model_file()))
        (folder / "custom_components").mkdir()
        (folder / "custom_components" / "__init__.py").touch()
        for integration in (_INTEGRATION, self.home.resolve()):
            (folder / "custom_components" / integration.name).symlink_to(integration)

    def _list_arguments(self) -> Iterable[str]:
        yield from ("--models", MODEL_ID, "--dataset", str(self.dataset.resolve()))
        if self.categories:
            yield from ("--categories", self.categories)
        if self.count is not None:
            yield from ("--count", str(self.count))


def _run_task(name: str, folder: Path, arguments: Iterable[str], output: Path) -> int:
    """Run a task of the project's, which is a set of tests for pytest, in this folder."""
    task = _find_datasets_package() / "tool" / "assist" / name
    command = [sys.executable, "-m", "pytest", str(task), f"--rootdir={task}", "-c", os.devnull, "-q"]
    command += ["-o", "asyncio_mode=auto", "-p", "no:cacheprovider", "--model_output_dir", str(output.resolve())]
    return subprocess.run([*command, *arguments], cwd=folder, check=False).returncode


def _find_datasets_package() -> Path:
    """Return the folder of the package. Raises SystemExit if it is not installed."""
    found = find_spec("home_assistant_datasets")
    if found is None or found.origin is None:
        raise SystemExit("home-assistant-datasets is not installed: run scripts/setup test.")
    return Path(found.origin).parent


def main() -> int:
    """Run a dataset, score it, and return the exit code of its sentences."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leaderboard", description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True, help="of the server, such as http://127.0.0.1:11434/v1")
    parser.add_argument("--model", required=True, help="the model that the server offers")
    parser.add_argument("--dataset", required=True, type=Path, help="the folder of a dataset")
    parser.add_argument("--home", required=True, type=Path, help="the folder of the integration synthetic_home")
    parser.add_argument("--output", required=True, type=Path, help="the folder for the answers")
    parser.add_argument("--categories", default="", help="only these, separated by commas")
    parser.add_argument("--count", type=int, help="how often each sentence is said (default: as the dataset says)")
    run = LeaderboardRun(api_key=os.environ.get("LEADERBOARD_API_KEY", ""), **vars(parser.parse_args()))
    code = run.collect()
    run.score()
    return code


if __name__ == "__main__":
    sys.exit(main())
