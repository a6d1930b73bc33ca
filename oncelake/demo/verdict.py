"""PASS or FAIL, and why. Pure: what was produced, what the runs said, what others counted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from oncelake.demo.tally import Tally
from oncelake.samples.articles import Expected


@dataclass(frozen=True, slots=True)
class Audited:
    """What `oncelake audit --json` found: its exit code and its own counts."""

    exit_code: int
    verdict: str
    read: int
    written: int
    quarantined: int
    batches: int
    gaps: int
    overlaps: int
    duplicates: int

    @classmethod
    def from_json(cls, exit_code: int, report: dict[str, Any]) -> Audited:
        totals = report["totals"]
        doubled = [f for f in report["findings"] if "duplicate" in f["kind"]]
        return cls(
            exit_code=exit_code,
            verdict=report["verdict"],
            read=totals["read"],
            written=totals["written"],
            quarantined=totals["quarantined"],
            batches=report["batches"],
            gaps=report["gaps"],
            overlaps=report["overlaps"],
            duplicates=len(doubled),
        )


@dataclass(frozen=True, slots=True)
class Counted:
    """Rows by the files of the two tables."""

    main: int
    quarantine: int


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold: `found` is `wanted`."""

    name: str
    wanted: str
    found: str

    @property
    def holds(self) -> bool:
        return self.wanted == self.found


@dataclass(frozen=True, slots=True)
class Outcome:
    """All there is to say at the end."""

    produced: int
    expected: Expected
    tally: Tally
    audited: Audited
    counted: Counted
    seconds: float

    @property
    def checks(self) -> tuple[Check, ...]:
        audited, expected = self.audited, self.expected
        facts = (
            ("the audit's verdict", "clean (exit 0)",
             f"{audited.verdict} (exit {audited.exit_code})"),
            ("read = produced", self.produced, audited.read),
            ("written = good ones", expected.good, audited.written),
            ("quarantined = corrupt ones", expected.corrupt, audited.quarantined),
            ("rows in the table's files", expected.good, self.counted.main),
            ("rows in the quarantine's files", expected.corrupt, self.counted.quarantine),
            ("gaps", 0, audited.gaps),
            ("overlaps", 0, audited.overlaps),
            ("duplicates", 0, audited.duplicates),
        )  # fmt: skip
        return tuple(Check(name, _text(wanted), _text(found)) for name, wanted, found in facts)

    @property
    def passed(self) -> bool:
        return all(check.holds for check in self.checks)

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """The closing table."""
        values: tuple[tuple[str, int], ...] = (
            ("produced", self.produced),
            ("read", self.audited.read),
            ("written", self.audited.written),
            ("quarantined", self.audited.quarantined),
            ("committed batches", self.audited.batches),
            ("kills", self.tally.kills),
            ("refused replays", self.tally.refused_replays),
            ("gaps", self.audited.gaps),
            ("overlaps", self.audited.overlaps),
            ("duplicates", self.audited.duplicates),
        )
        return tuple((name, _text(value)) for name, value in values)

    def to_json(self) -> dict[str, Any]:
        return {
            "verdict": "PASS" if self.passed else "FAIL",
            "produced": self.produced,
            "expected": asdict(self.expected),
            "kills": self.tally.kills,
            "refused_replays": self.tally.refused_replays,
            "audit": asdict(self.audited),
            "counted": asdict(self.counted),
            "checks": [{**asdict(check), "holds": check.holds} for check in self.checks],
            "seconds": round(self.seconds, 1),
        }


def _text(value: int | str) -> str:
    return value if isinstance(value, str) else f"{value:,}"
