"""Stateful tests of memory with random operations in any order."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
import pytest

from custom_components.windowed_conversation.memory.core import KINDS, Memory, PastSummary

from .content import NOW, indexed, insert_summary, read_all_files, stored, turn

_LANGUAGE_SETS = (("en", "de"), ("it",))

user_ids = st.sampled_from(["anna", "ben", None])
conversation_ids = st.sampled_from(["kitchen", "hall"])
said = st.lists(
    st.sampled_from(["tea", "Fußbodenheizung", "gardens", "is", "钥匙在抽屉", "flickering", "Tuesday"]), max_size=4
)


def needs_reindex(machine):
    return machine.memory.statistics().unindexed > 0


class MemoryMachine(RuleBasedStateMachine):
    """Random operations on a memory. Each row contains a unique word, so that the test can search for it."""

    def __init__(self):
        super().__init__()
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "memory.db"
        self.languages = _LANGUAGE_SETS[0]
        self.memory = Memory(self.path, self.languages)
        self.row_number = 0
        self.owners = {}
        self.words = {}
        self.lines = {}

    def own_word(self, person):
        self.row_number += 1
        word = f"quokka{self.row_number}x"
        self.owners[word] = person
        return word

    @rule(words=said, person=user_ids, conversation=conversation_ids)
    def add_turn(self, words, person, conversation):
        word = self.own_word(person)
        at = NOW + self.row_number
        row = self.memory.add_turn(turn(f"{word} {' '.join(words)}", at=at, person=person, conversation=conversation))
        self.words["turn", row] = word

    @rule(words=said, person=user_ids, private=st.booleans(), quoted=st.booleans(), replaces=st.booleans())
    def add_fact(self, words, person, private, quoted, replaces):
        old = [fact.id for fact in self.memory.get_facts(person) if fact.person == person]
        word = self.own_word(person)
        row = self.memory.add_fact(
            f"{word} {' '.join(words)}",
            person=person,
            private=private and person is not None,
            quote=" ".join(words) if quoted else "",
            replaces=old[0] if replaces and old else None,
            at=NOW + self.row_number,
        )
        self.words["fact", row] = word

    @rule(words=said, person=user_ids, conversation=conversation_ids, turns=st.integers(0, 4))
    def add_summary(self, words, person, conversation, turns):
        word = self.own_word(person)
        at = NOW + self.row_number
        text = f"{word} {' '.join(words)}"
        row = insert_summary(self.memory, PastSummary(conversation, at - turns, at, text, person=person))
        self.words["summary", row] = word

    @precondition(lambda self: self.words)
    @rule(data=st.data())
    def forget_one_row(self, data):
        self.is_gone(self.memory.forget(ids=[data.draw(st.sampled_from(sorted(self.words)))]))

    @rule(word=st.sampled_from(["tea", "Heizung", "garden", "钥匙"]), person=user_ids)
    def forget_by_word(self, word, person):
        self.is_gone(self.memory.forget(query=word, person=person))

    @rule(person=user_ids)
    def forget_person(self, person):
        self.is_gone(self.memory.forget(person=person))

    @rule(age=st.integers(0, 8), kinds=st.sampled_from([KINDS, ("turn", "summary")]))
    def forget_old_rows(self, age, kinds):
        self.is_gone(self.memory.forget(before=NOW + self.row_number - age, kinds=kinds))

    @rule()
    def export_lines(self):
        self.lines.update(dict.fromkeys(self.memory.export()))

    @rule()
    def load_exported_lines(self):
        self.memory.load_lines(self.lines)

    @rule(languages=st.sampled_from(_LANGUAGE_SETS))
    def reopen_memory(self, languages):
        self.memory.close()
        self.languages = languages
        self.memory = Memory(self.path, languages)

    @precondition(needs_reindex)
    @rule(most=st.integers(1, 5))
    def reindex_some_rows(self, most):
        self.memory.reindex(most)

    def is_gone(self, forgotten):
        assert forgotten.is_erased
        rows = {"fact": forgotten.facts, "turn": forgotten.turns, "summary": forgotten.summaries}
        gone = {self.words.pop((kind, row)) for kind, ids in rows.items() for row in ids}
        self.memory.load_lines(self.lines)
        on_disk = read_all_files(self.path)
        assert not {word for word in gone if word.encode() in on_disk}

    @invariant()
    def recall_finds_only_own_rows(self):
        for person in ("anna", "ben", None):
            question = " ".join(["tea gardens 钥匙 Heizung", *self.words.values()])
            found = [found.text for found in self.memory.recall(question, person=person, limit=1_000)]
            found += [fact.text for fact in self.memory.get_facts(person)]
            assert {self.owners[text.split()[0]] for text in found} <= {person, None}

    def teardown(self):
        while self.memory.reindex():
            pass
        assert indexed(self.path) == stored(self.path, self.languages)
        lines = list(self.memory.export())
        copy_path = self.path.with_name("copy.db")
        copy = Memory(copy_path, self.languages)
        copy.load_lines(lines)
        while copy.reindex():
            pass
        assert indexed(copy_path) == stored(copy_path, self.languages)
        assert list(copy.export()) == lines
        copy.close()
        self.memory.close()
        self.folder.cleanup()


TestMemoryMachine = pytest.mark.long(MemoryMachine.TestCase)
TestMemoryMachine.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


@pytest.mark.long
@given(texts=st.lists(st.text(max_size=200), min_size=1, max_size=5))
@settings(max_examples=25, deadline=None)
def test_any_text_is_stored_found_and_forgotten(texts):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        memory = Memory(path, ("en", "zh"))
        for text in texts:
            memory.add_turn(turn(f"quokka {text}", f"{text} quokka"))
            memory.add_fact(f"quokka {text}", quote=text)
        assert len(memory.recall("quokka", kinds=("turn",), limit=100)) == len(texts)
        assert indexed(path) == stored(path, ("en", "zh"))
        memory.forget(query="quokka")
        assert indexed(path) == set()
        memory.close()
