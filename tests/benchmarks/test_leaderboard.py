"""Tests that the project of the public datasets drives our agent, with the scripted model instead of a real one.

"assist-mini" is the public dataset. "questions" has its format, and the synthetic home is a small one of our own.
"""

from pathlib import Path

import pytest

from benchmarks.leaderboard import MODEL_ID, LeaderboardRun
from demo.home_assistant import REPOSITORY
from demo.model_server import serve_in_thread

_FOLDER = Path(__file__).parent / "leaderboard"
_ASSIST = REPOSITORY / "tests" / "routing" / "sets" / "assist-mini"


@pytest.mark.long
@pytest.mark.parametrize(
    ("dataset", "categories", "sentences"),
    [(_ASSIST, "lock", 4), (_FOLDER / "questions", "", 2)],
    ids=["assist", "questions"],
)
def test_each_sentence_goes_to_the_model_and_is_scored_as_right(
    tmp_path, socket_enabled, dataset, categories, sentences
):
    with serve_in_thread(strict=True) as server:
        run = LeaderboardRun(
            url=server.url,
            model="scripted",
            dataset=dataset,
            home=_FOLDER / "synthetic_home",
            output=tmp_path / "output",
            categories=categories,
            count=1,
            api_key="key",
        )
        collected = run.collect()
        asked = len(server.requests)
    assert collected == 0
    assert asked >= sentences
    assert len([*(tmp_path / "output" / MODEL_ID).glob("*-0.yaml")]) == sentences
    assert run.score() == 0
