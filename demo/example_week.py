"""A made-up week of statistics before the demo began, so that the dashboard's view of the week has something to show.

The sums end at 0, where the recorder begins to count a new sensor, so the real week continues them without a jump.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

from demo.client import Client, Json

# Said on the view, so that nobody takes the example for a measurement.
NOTICE = (
    "**The past week is example data.** It shows what these charts look like after a week of use. "
    "What you say from now on is added to it."
)

# Two days more than the view shows: without statistics before it, its first day would have the whole sum.
_HOURS = 9 * 24
# Turns of an hour of the day, from midnight. People talk to their home in the morning and in the evening.
_TURNS_BY_HOUR = (0, 0, 0, 0, 0, 0, 2, 5, 3, 1, 1, 2, 3, 1, 1, 1, 2, 4, 5, 6, 4, 3, 2, 1)
# Of ten turns, six are local. Of forty turns that ask the model, one fails.
_LOCAL_TURNS_OF_TEN = 6
_ASKED_TURNS_FOR_A_FAILURE = 40
# Tokens of one turn of a model, and US dollars for a million of them.
_INPUT_TOKENS, _OUTPUT_TOKENS = 1800, 40
_INPUT_PRICE, _OUTPUT_PRICE = 0.25, 2.0

_UNIT_BY_KEY = {"input_tokens": "tokens", "output_tokens": "tokens", "total_cost": "USD"}


def build_example_week(now: datetime) -> dict[str, list[Json]]:
    """Return hourly statistics by sensor key, for a week and two days, up to the last full hour before `now`."""
    last = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
    starts = [last - timedelta(hours=ago) for ago in range(_HOURS, -1, -1)]
    changes = [*_iter_changes(starts)]
    return {key: [*_iter_rows(starts, [change[key] for change in changes])] for key in changes[0]}


def _iter_changes(starts: list[datetime]) -> Iterator[dict[str, float]]:
    """Yield the change of each sensor in each hour."""
    turns = asked_before = 0
    for start in starts:
        before, turns = turns, turns + _TURNS_BY_HOUR[start.hour]
        local = _count_local_turns(turns) - _count_local_turns(before)
        asked = turns - before - local
        failed = (asked_before + asked) // _ASKED_TURNS_FOR_A_FAILURE - asked_before // _ASKED_TURNS_FOR_A_FAILURE
        asked_before += asked
        cost = asked * (_INPUT_TOKENS * _INPUT_PRICE + _OUTPUT_TOKENS * _OUTPUT_PRICE) / 1_000_000
        yield {
            "turns_local": local,
            "turns_model": asked - failed,
            "turns_failed": failed,
            "input_tokens": asked * _INPUT_TOKENS,
            "output_tokens": asked * _OUTPUT_TOKENS,
            "total_cost": cost,
        }


def _count_local_turns(turns: int) -> int:
    return turns * _LOCAL_TURNS_OF_TEN // 10


def _iter_rows(starts: list[datetime], changes: list[float]) -> Iterator[Json]:
    """Yield the statistics of a sensor, whose sum ends at 0."""
    total = sum(changes)
    for start, so_far in zip(starts, accumulate(changes), strict=True):
        yield {"start": start.isoformat(), "sum": round(so_far - total, 9)}


async def import_example_week(client: Client, sensors: Mapping[str, str]) -> None:
    """Import the week for those sensors that have no statistics yet; `sensors` maps their keys to entity ids."""
    week = build_example_week(datetime.now(UTC))
    known = await _find_known_ids(client, list(sensors.values()))
    for key in week.keys() & sensors.keys():
        if sensors[key] not in known:
            metadata = _build_metadata(sensors[key], _UNIT_BY_KEY.get(key))
            await client.send_command("recorder/import_statistics", metadata=metadata, stats=week[key])


async def _find_known_ids(client: Client, statistic_ids: list[str]) -> set[str]:
    """Return the ids that have statistics already."""
    known = set[str]()
    # the newest statistics have only the shorter period
    for period in ("5minute", "hour"):
        known |= set(
            await client.send_command(
                "recorder/statistics_during_period",
                start_time=datetime.fromtimestamp(0, UTC).isoformat(),
                statistic_ids=statistic_ids,
                period=period,
                types=["sum"],
            )
        )
    return known


def _build_metadata(statistic_id: str, unit: str | None) -> dict[str, Any]:
    return {
        "mean_type": 0,
        "has_sum": True,
        "name": None,
        "source": "recorder",
        "statistic_id": statistic_id,
        "unit_class": None,
        "unit_of_measurement": unit,
    }
