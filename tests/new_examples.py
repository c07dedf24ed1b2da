"""A pytest plugin that lets Hypothesis look for new examples, to find what the usual ones do not reveal."""

from hypothesis import settings


def pytest_configure() -> None:
    """Replace the profile that `conftest.py` has loaded by one that is random."""
    settings.register_profile("new_examples", settings.get_profile("any_machine"), derandomize=False)
    settings.load_profile("new_examples")
