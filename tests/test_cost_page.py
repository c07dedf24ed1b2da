"""Tests that the prices on the cost page and the figures in the README follow from the measured tables in docs."""

import re

import pytest

from .documents import DOCS, prose, section, table
from .price_list import price
from .repository_files import REPOSITORY

COST = DOCS / "cost.md"
README = REPOSITORY / "README.md"
MEMORY = DOCS / "decisions" / "memory-without-vectors.md"

# The measured days in the home with 200 entities by agent: requests, input, cached and output tokens, first token.
DAYS = {row[1]: row[2:] for row in table(COST, "Questions about the home") if row[0] == "200"}
AGENTS = ("Home Assistant's", "without states", "with states")
VENDORS = {"gpt": "openai", "gemini": "google", "claude": "anthropic"}
DOLLARS = {row[0].strip("`"): row[1:] for row in table(COST, "Dollars a day")}
# The rows of the comparison, without the targets of their links.
COMPARED = {
    row[0]: [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", cell) for cell in row[1:]]
    for row in table(README, "Beside Home Assistant's own agents")
}


def price_day(model: str, agent: str, *, is_cached: bool = True) -> str:
    """Return the price of an agent's day as it is written on the page."""
    vendor = VENDORS[model.partition("-")[0]]
    requests = int(DAYS[agent][2])
    # the price of one request, because long requests have higher prices
    prompt, cached, completion = (round(int(cell.replace(",", "")) / requests) for cell in DAYS[agent][3:6])
    cached = cached if is_cached else 0
    written = prompt - cached if is_cached and vendor != "google" else 0
    used = {"prompt": prompt, "cached": cached, "written": written, "completion": completion}
    return f"${requests * price(vendor, model, used):.3f}"


@pytest.mark.parametrize("model", DOLLARS)
def test_dollars_a_day_follow_from_the_measured_tokens(model: str) -> None:
    expected = [*(price_day(model, agent) for agent in AGENTS), price_day(model, AGENTS[-1], is_cached=False)]

    assert DOLLARS[model] == expected


def test_three_models_have_a_price_of_the_pinned_price_list() -> None:
    pinned = re.findall(r"^genai-prices==(.+)$", (REPOSITORY / "requirements" / "test.txt").read_text(), re.MULTILINE)

    assert len(DOLLARS) == 3
    assert re.findall(r"`genai-prices` ([\d.]+\d)", section(COST, "Dollars a day")) == pinned


def test_price_of_memory_is_the_measured_one() -> None:
    prices = {row[0]: float(row[4]) for row in table(MEMORY, "Measured") if len(row) == 5 and row[0] in {"off", "on"}}

    (percent,) = re.findall(r"\[(\d+) % higher\]", prose(COST))

    assert int(percent) == round(100 * (prices["on"] / prices["off"] - 1))


@pytest.mark.parametrize(
    ("row", "cell"), [("Questions answered correctly in one request", 1), ("Requests in the day", 2)]
)
def test_readme_compares_the_measured_days(row: str, cell: int) -> None:
    assert COMPARED[row] == [DAYS["Home Assistant's"][cell], DAYS["with states"][cell]]


def test_readme_compares_the_measured_times() -> None:
    row = COMPARED["Time to first token, if a model takes half a second"]

    assert row == [f"{DAYS[agent][6]} s" for agent in (AGENTS[0], AGENTS[2])]


def test_readme_compares_the_calculated_prices() -> None:
    ((row, cells),) = [(row, cells) for row, cells in COMPARED.items() if row.startswith("The day with")]

    model = row.split("`")[1]
    assert cells == [DOLLARS[model][0], DOLLARS[model][2]]


def test_readme_has_the_measured_figure_of_memory() -> None:
    (found,) = re.findall(r"for (\d+ of )the (\d+ questions)", " ".join(prose(MEMORY).split()))

    assert COMPARED["Knows what you said last week"][1] == "for " + "".join(found)


def test_readme_has_the_calculated_cents_of_a_day() -> None:
    ((model, *cents),) = re.findall(r"`([\w.-]+)`, (\d+) to (\d+) cents", prose(README))

    assert cents == [f"{100 * float(price.strip('$')):.0f}" for price in DOLLARS[model][2:]]
