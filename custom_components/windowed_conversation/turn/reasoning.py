"""Detection of reasoning by a model's last answers: only then does the limit of an answer include room for it."""

# A model that can reason or not as it likes may give several answers without.
_ANSWERS_WITHOUT = 5


class Reasoning:
    """The discovery of whether a model reasons, for models whose profile does not say.

    Shared by all who ask the model. A model that was not asked yet is taken for one that does not.
    """

    def __init__(self) -> None:
        # answers in a row without reasoning
        self._without = _ANSWERS_WITHOUT

    @property
    def is_expected(self) -> bool:
        """Whether one of the last five answers had reasoning."""
        return self._without < _ANSWERS_WITHOUT

    def on_answer(self, *, has_reasoning: bool) -> None:
        """Learn from an answer: one with reasoning, whole or not, or a whole one without."""
        self._without = 0 if has_reasoning else min(self._without + 1, _ANSWERS_WITHOUT)
