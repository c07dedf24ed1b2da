"""A pytest plugin for runs that only need to know whether a test fails: Hypothesis does not shrink failing examples."""

from hypothesis import Phase, settings


def pytest_configure() -> None:
    """Replace the profile that `conftest.py` has loaded by one without shrinking."""
    quick = [Phase.explicit, Phase.generate]
    settings.register_profile("no_shrinking", settings.get_profile("any_machine"), phases=quick)
    settings.load_profile("no_shrinking")
