"""What `oncelake recover` says it has done, or would do."""

from __future__ import annotations

import pytest

from oncelake.cli.recover import _sentences
from oncelake.ops.recover import Recovery


@pytest.mark.parametrize(("dry_run", "be"), [(True, "would be"), (False, "is")])
def test_side_tables_that_are_renamed_are_told_also_where_no_checkpoint_is(
    dry_run: bool, be: str
) -> None:
    found = Recovery("d.n.t", "/chk", None, {}, sides={"d.n.q": "d.n.q_aside"}, dry_run=dry_run)
    first, *_ = _sentences(found)
    assert first == f"d.n.q holds rows of the table that is gone: it {be} renamed to d.n.q_aside"


def test_without_a_table_the_next_run_begins_at_the_topics_beginning() -> None:
    found = Recovery("d.n.t", "/chk", None, {}, fault="its table is gone", aside="/chk.aside")
    (said,) = _sentences(found)
    assert "is set aside as /chk.aside" in said
    assert "from the topic's beginning" in said
