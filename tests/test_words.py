"""Tests for `scripts/check_words.py`."""

from scripts.check_words import iter_ambiguous_names, iter_replaced_names, iter_replaced_phrases, iter_vague_names


def test_a_replaced_word_in_a_name_is_found() -> None:
    source = (
        "FIRST_WORD = 1\n\n\nclass OtherAgent:\n    def give_up_now(self, left_out):\n        self.put_off = left_out\n"
    )

    names = [name for _, name in sorted(iter_replaced_names(source))]
    assert names == [
        "FIRST_WORD (first token)",
        "OtherAgent (fallback agent)",
        "give_up_now (evict)",
        "left_out (exclude)",
        "put_off (after the turn)",
    ]


def test_a_word_of_another_idea_is_no_replaced_one() -> None:
    assert list(iter_replaced_names("reported_at = the_report = gone = 1")) == []


def test_a_word_that_is_replaced_in_one_folder_is_found_there_only() -> None:
    window = "custom_components/windowed_conversation/window/contents.py"

    assert [name for _, name in iter_replaced_names("gone = 1", window)] == ["gone (evict)"]
    assert list(iter_replaced_names("gone = 1", "custom_components/windowed_conversation/turn/home.py")) == []


def test_the_sentence_that_is_a_tests_name_is_not() -> None:
    assert list(iter_replaced_names("def test_silence_is_heard(): ...")) == []


def test_a_phrase_is_found_also_over_two_lines() -> None:
    text = "It is left as\nso_\n    many bytes.".replace("_", "")

    assert [line for line, _ in iter_replaced_phrases(text)] == [2]


def test_name_that_is_only_a_participle_is_found() -> None:
    source = "def tell(asked): ...\n\n\nclass Told:\n    is_known = kept_facts = 1\n"

    assert [name.split()[0] for _, name in iter_vague_names(source)] == ["tell", "Told", "asked"]


def test_public_name_has_one_meaning() -> None:
    turn = ("turn/a.py", "class Profile: ...\ndef learn(): ...\ndef _text(): ...\ndef async_setup_entry(): ...")
    model = ("providers/a.py", "class Profile: ...\ndef _text(): ...\ndef async_setup_entry(): ...")

    assert list(iter_ambiguous_names([turn, model])) == [("Profile", ["providers/a.py", "turn/a.py"])]


def test_formats_of_providers_may_share_their_names() -> None:
    encoders = [(f"x/providers/{name}/encoding.py", "def encode_request(): ...") for name in ("openai", "gemini")]

    assert list(iter_ambiguous_names(encoders)) == []
    assert list(iter_ambiguous_names([*encoders, ("x/turn/turn.py", "def encode_request(): ...")])) != []
