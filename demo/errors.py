"""The error that the demo shows a person when it cannot go on. Nothing else."""


class DemoError(Exception):
    """One sentence for a person: the problem and its remedy."""
