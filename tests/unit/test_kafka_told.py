"""What slots tell: a fault of one is raised, whoever did its work."""

from __future__ import annotations

import pytest
from pyspark.sql import Row

from oncelake.errors import Unaccounted
from oncelake.kafka_sink.told import Report, Rows, with_idle


def _failing(slot: int) -> Rows:
    report = Report(slot)

    def fail() -> None:
        raise Unaccounted(f"slot {slot} gives other rows")

    report.of(fail)
    yield report.row()


def _fine(slot: int) -> Rows:
    yield Report(slot).row()


def test_a_slot_of_which_no_task_saw_a_row_tells_its_fault_too() -> None:
    with pytest.raises(Unaccounted, match="slot 1 gives other rows"):
        with_idle([Row(slot=0)], (0, 1), _failing)


def test_slots_that_tasks_have_spoken_of_are_left_alone() -> None:
    told = with_idle([Row(slot=0)], (0, 1), _fine)
    assert [row.slot for row in told] == [0, 1]
