"""The audit of an upsert's table: just the rows that later versions replaced are gone."""

from __future__ import annotations

from dataclasses import replace

from oncelake.ops.audit.judge import judge
from oncelake.ops.audit.report import Verdict
from tests.unit.audit_history import P0, P1, Scene, kinds


def _scene() -> Scene:
    made = Scene()
    made.batch({0: 10, 1: 10})
    made.batch({0: 10}, replaces=[(P0, 3), (P0, 4), (P1, 7)])
    made.claim()
    made.batch({1: 10}, bad=[(P1, 12)], replaces=[(P0, 5), (P0, 12)])
    return made


def test_replaced_rows_are_gone_and_that_is_clean() -> None:
    report = judge(_scene().evidence())
    assert report.findings == ()
    assert report.verdict is Verdict.CLEAN


def test_it_stays_clean_when_the_first_stamps_are_expired() -> None:
    made = _scene()
    made.main.expire(3)
    assert judge(made.evidence()).findings == ()


def test_a_row_that_nobody_replaced_is_lost() -> None:
    made = _scene()
    made.main.lose((P0, 8))
    assert kinds(made.evidence()) == {"rows-missing"}


def test_a_row_of_the_newest_batch_cannot_have_been_replaced() -> None:
    """As many rows are gone as were replaced, but of a batch that nothing came after."""
    made = _scene()
    made.main.lose((P1, 15))
    made.main.rows[P0, 3] += 1
    assert kinds(made.evidence()) == {"rows-missing"}


def test_a_row_that_should_be_gone_is_found() -> None:
    made = _scene()
    made.main.rows[P0, 4] += 1
    assert kinds(made.evidence()) == {"rows-not-replaced"}


def test_a_row_deleted_by_hand_is_explained_beside_the_replaced_ones() -> None:
    made = _scene()
    made.main.delete((P0, 8))
    assert kinds(made.evidence()) == set()
    assert kinds(made.evidence(), Verdict.EXPLAINED) == {"rows-deleted"}
    [finding] = judge(made.evidence()).findings
    said = "1 rows of ours are not in demo.news.t, besides 5 that later versions replaced."
    assert finding.message.startswith(said)


def test_a_key_that_stands_twice_is_named() -> None:
    evidence = _scene().evidence()
    rows = replace(evidence.rows, keys_twice=2, repeated=("id=a", "id=b"))
    [finding] = judge(replace(evidence, rows=rows)).findings
    assert finding.kind == "key-twice"
    assert finding.severity is Verdict.VIOLATED
    assert "2 keys have more than one row, such as id=a, id=b" in finding.message


def test_a_key_may_stand_twice_where_it_is_looked_for_only_so_far_back() -> None:
    evidence = replace(_scene().evidence(), bounded=True)
    assert judge(evidence).findings == ()
    rows = replace(evidence.rows, keys_twice=2, repeated=("id=a", "id=b"))
    [finding] = judge(replace(evidence, rows=rows)).findings
    assert (finding.kind, finding.severity) == ("key-twice", Verdict.EXPLAINED)
    assert "such as id=a, id=b. The pipeline looks for a key only as far back" in finding.message


def test_rows_that_tombstones_took_away_are_gone_and_the_tombstones_kept() -> None:
    made = _scene()
    made.batch({0: 5}, deleted=[(P0, 21), (P0, 22), (P0, 23)], removes=[(P0, 8), (P1, 8)])
    report = judge(made.evidence())
    assert report.findings == ()
    assert report.sides == {"quarantined": 1, "late": 0, "deleted": 3}
    made.main.lose((P0, 9))
    assert kinds(made.evidence()) == {"rows-missing"}
