"""Who owns a sink, by the order of one log: what an overtaken run says counts for nobody."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from oncelake.kafka_sink.plan import Batch, Dealt, Plan
from oncelake.kafka_sink.planlog import Entry, Said, is_entry


def _plan(sequence: int) -> Plan:
    return Plan(sequence, Batch("q", 0, ("a",), ("b",)), Dealt.BY_TARGET, (0, 1), (5, 7))


def _said(*entries: Entry) -> Said:
    said = Said()
    for entry in entries:
        said = said.then(entry)
    return said


def test_what_the_owner_says_last_counts() -> None:
    found = _said(Entry("a"), Entry("a", _plan(1)), Entry("a", _plan(1), done=True))
    assert found == Said("a", _plan(1), done=True)


def test_a_claim_takes_over_what_was_said_and_shuts_the_former_owner_out() -> None:
    found = _said(Entry("a"), Entry("a", _plan(1)), Entry("b"), Entry("a", _plan(1), done=True))
    assert found == Said("b", _plan(1), done=False)
    assert found.then(Entry("a", _plan(2))) == found
    assert found.then(Entry("b", _plan(2))).plan == _plan(2)


def test_entries_survive_their_text_and_are_told_from_plans_with_transactions() -> None:
    for entry in (Entry("a"), Entry("a", _plan(3)), Entry("a", _plan(3), done=True)):
        assert Entry.from_text(entry.to_text()) == entry
        assert is_entry(entry.to_text())
    assert not is_entry(_plan(3).to_text())


RUNS = st.sampled_from("abc")
WORDS = st.lists(st.tuples(RUNS, st.sampled_from(["claim", "plan", "done"])), max_size=30)


@given(WORDS)
def test_however_runs_are_mixed_only_the_owners_words_count(words: list[tuple[str, str]]) -> None:
    """Told the slow way: the last claim before an entry must be of its own run."""
    entries = [
        Entry(run) if word == "claim" else Entry(run, _plan(number), word == "done")
        for number, (run, word) in enumerate(words)
    ]
    heeded = [
        entry
        for at, entry in enumerate(entries)
        if entry.plan is not None
        and [e.run for e in entries[:at] if e.plan is None][-1:] == [entry.run]
    ]
    found = _said(*entries)
    assert found.plan == (heeded[-1].plan if heeded else None)
    assert found.done == (heeded[-1].done if heeded else True)
