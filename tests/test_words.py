"""What `scripts/check_words.py` finds."""

from scripts.check_words import replaced_names, replaced_phrases


def test_a_replaced_word_in_a_name_is_found() -> None:
    source = (
        "FIRST_WORD = 1\n\n\nclass OtherAgent:\n    def give_up_now(self, left_out):\n        self.put_off = left_out\n"
    )

    names = [name for _, name in sorted(replaced_names(source))]
    assert names == ["FIRST_WORD", "OtherAgent", "give_up_now", "left_out", "put_off"]


def test_the_sentence_that_is_a_tests_name_is_not() -> None:
    assert list(replaced_names("def test_silence_is_heard(): ...")) == []


def test_a_phrase_is_found_also_over_two_lines() -> None:
    text = "It is left as\nso_\n    many bytes.".replace("_", "")

    assert [line for line, _ in replaced_phrases(text)] == [2]
