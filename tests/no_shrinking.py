"""A pytest plugin for runs that only ask whether anything fails: a failing example is not made smaller."""

from hypothesis import Phase, settings


def pytest_configure() -> None:
    """Replace the profile that `conftest` has loaded."""
    quick = [Phase.explicit, Phase.generate]
    settings.register_profile("no_shrinking", settings.get_profile("any_machine"), phases=quick)
    settings.load_profile("no_shrinking")
