"""The protocol: how one batch becomes one commit, whatever is killed in between.

1. Claim    Raise the generation by an empty append: older runs are fenced from here on.
2. Finish   Publish what progress names as pending for the side tables.
3. Place    Compare the batch with progress: skip, write, trim, or stop at a gap.
4. Stage    Write data files; nothing is visible.
5. Publish  One conditional commit on main: files, stamp and progress.
6. Settle   Whatever was answered, look the attempt up; then let the side tables follow.

Main decides and the side tables follow, so nothing is decided twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from threading import Event

from oncelake import ledger
from oncelake.amend import Change
from oncelake.errors import CommitUnknown, TransientError
from oncelake.follow import Followers, refuse_ahead
from oncelake.lake import LakeTable, Publication, Staged, Unanswered
from oncelake.model import (
    Counts,
    Epochs,
    Mark,
    Origin,
    Progress,
    Ranges,
    Stamp,
    TopicPartition,
)
from oncelake.refusals import given_up, progress_key, refuse_same_topic_twice


class Step(Enum):
    CLAIM = "claim"
    FINISH = "finish"
    PLACE = "place"
    STAGE = "stage"
    PUBLISH = "publish"
    SETTLE = "settle"


OnStep = Callable[[str, Step], None]
BACK_OFF_SECONDS = (0.2, 0.5, 1.0, 2.0, 4.0)
# How long a catalog that is away is waited for, once a run has begun: about a minute.
OUTAGE_SECONDS = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)


@dataclass(frozen=True, slots=True)
class Staging:
    """A batch's staged files, for main and for side tables by fate, and its counts.

    `watermark` is that of the batch after it. `read_to`: the snapshot that was read, where the
    source is a table. `marks`: what became of rows in quarantine.
    """

    main: Staged
    counts: Counts
    sides: Mapping[str, Staged]
    watermark: int | None = None
    read_to: int | None = None
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a batch: written, trimmed or skipped."""

    kind: str
    ranges: Ranges
    counts: Counts
    progress: Progress


Look = Callable[[LakeTable, str], ledger.View]
Stager = Callable[[ledger.Placement], Staging]


@dataclass(frozen=True, slots=True)
class _Draft:
    """What is to be published, and progress once it is."""

    staging: Staging
    stamp: Stamp
    landed: Progress


class Committer:
    """The protocol for one run of one pipeline on one main table and its side tables.

    `look`: how the table is read, and what is refused then (see `ledger.look`).
    """

    def __init__(self, pipeline: str, main: LakeTable, sides: Mapping[str, LakeTable],
                 on_step: OnStep = lambda when, step: None,
                 look: Look = ledger.look) -> None:  # fmt: skip
        self._pipeline = pipeline
        self._main = main
        self._sides = Followers(main.name, sides)
        self._on_step = on_step
        self._look_at = look
        self._generation = 0
        self._epochs = Epochs()

    @property
    def table(self) -> str:
        return self._main.name

    @property
    def epochs(self) -> Epochs:
        """The topics that were made anew, as the claim has found them."""
        return self._epochs

    def claim(self, origin: Origin, starts: Mapping[TopicPartition, int]) -> Progress:
        """Step 1: from here on this run, and no older one, may write."""
        followed = self._sides.followed(self._pipeline)

        def change(view: ledger.View, attempt: str) -> tuple[Stamp, Progress]:
            refuse_same_topic_twice(self._main, self._pipeline, origin)
            come = 0 if view.progress is None else view.progress.sequence
            refuse_ahead(followed, self._pipeline, come)
            return ledger.claim(view, self._pipeline, origin, starts, attempt)

        return self.amend(change)

    def amend(self, change: Change) -> Progress:
        """Step 1 with whatever else is to change in progress: a person's word (see `amend`)."""
        with self._step(Step.CLAIM):
            for pause in (*BACK_OFF_SECONDS, None):
                view = self._look_at(self._main, self._pipeline)
                attempt = str(uuid.uuid4())
                stamp, progress = change(view, attempt)
                error = self._publish(view, stamp, progress, Staged())
                if error is None or self._look_up(view, attempt)[0]:
                    self._generation = progress.generation
                    self._epochs = progress.origin.epochs
                    return progress
                # Another run claimed in between: read what it left, and claim after it.
                _wait(pause, error, f"claiming {self._main.name}")
        raise AssertionError("unreachable: the last pause raises")

    def commit(self, ranges: Ranges, stage: Stager) -> Outcome:
        """Steps 2 to 6 for one batch. It returns only where main holds it."""
        view, placement = self._place(ranges)
        if not placement.todo:
            progress = ledger.claimed(view)
            return Outcome(placement.outcome, placement.ranges, Counts(), progress)
        return self._land(view, placement, stage)

    def replay(self, stage: Stager) -> Outcome:
        """The same for rows in quarantine, whose offsets were dealt with before."""
        return self._land(*self._place({}), stage, "replay")

    def _place(self, ranges: Ranges) -> tuple[ledger.View, ledger.Placement]:
        view = self._look()
        progress = ledger.claimed(view)
        with self._step(Step.FINISH):
            self._sides.follow(progress)
        with self._step(Step.PLACE):
            return view, ledger.place(progress, self._generation, ranges, view.head)

    def _land(self, view: ledger.View, placement: ledger.Placement, stage: Stager,
              kind: str = "batch") -> Outcome:  # fmt: skip
        draft = self._draft(view, placement, stage, kind)
        for pause in (*BACK_OFF_SECONDS, None):
            with self._step(Step.PUBLISH):
                error = self._publish(view, draft.stamp, draft.landed, draft.staging.main)
            with self._step(Step.SETTLE):
                if error is None or self._settled(view, draft.stamp.attempt):
                    self._sides.follow(draft.landed)
                    counts = draft.staging.counts
                    return Outcome(placement.outcome, placement.todo, counts, draft.landed)
            _wait(pause, error, f"committing to {self._main.name}")
            if draft.staging.main.base is not None:
                # It fits one snapshot only. Somebody else's is main's head by now: once more.
                view, ranges = self._look(), placement.ranges
                placement = ledger.place(ledger.claimed(view), self._generation, ranges, view.head)
                draft = self._draft(view, placement, stage, kind)
        raise AssertionError("unreachable: the last pause raises")

    def _draft(self, view: ledger.View, placement: ledger.Placement, stage: Stager,
               kind: str) -> _Draft:  # fmt: skip
        with self._step(Step.STAGE):
            staging = stage(placement)
        progress, attempt = ledger.claimed(view), str(uuid.uuid4())
        stamp = ledger.batch_stamp(
            progress,
            placement.todo,
            staging.counts,
            attempt,
            watermark=staging.watermark,
            read_to=staging.read_to,
        )
        stamp = replace(stamp, kind=kind)
        pending = self._sides.pending(staging.sides, staging.marks, stamp)
        return _Draft(staging, stamp, progress.after(stamp, pending))

    def require_ownership(self) -> None:
        """Raise Fenced if a newer run owns the pipeline."""
        progress = ledger.claimed(self._look())
        if progress.generation != self._generation:
            raise ledger.fenced(progress, self._generation)

    def finish(self) -> None:
        """Step 2 on its own: a run may end without a further batch."""
        with self._step(Step.FINISH):
            self._sides.follow(ledger.claimed(self._look()))

    def _publish(self, view: ledger.View, stamp: Stamp, progress: Progress,
                 staged: Staged) -> Unanswered | None:  # fmt: skip
        key = progress_key(self._pipeline)
        publication = Publication(
            stamp=stamp.to_text(),
            properties={key: progress.to_text()},
            guard=ledger.guard(view, key, stamp.attempt, unmoved=staged.base is not None),
            files=staged.files,
            deletes=staged.deletes,
            base=staged.base,
        )
        try:
            self._main.publish(publication)
        except Unanswered as error:
            return error
        return None

    def _settled(self, view: ledger.View, attempt: str) -> bool:
        """True: landed. False: try again. Raises where somebody else moved progress."""
        landed, now = self._look_up(view, attempt)
        if not landed and now.text != view.text:
            raise ledger.fenced(ledger.claimed(now), self._generation)
        return landed

    def _look_up(self, view: ledger.View, attempt: str) -> tuple[bool, ledger.View]:
        try:
            now = self._look()
        except TransientError as error:
            raise CommitUnknown(
                f"{self._main.name}: attempt {attempt} may or may not have landed, and the "
                "catalog cannot be asked. Nothing is lost: run again when it is back, the table "
                f"then tells. Cause: {error}"
            ) from error
        return ledger.has_landed(self._main, view, attempt), now

    def _look(self) -> ledger.View:
        """Progress as it is now; a catalog that is away is waited for."""
        for pause in OUTAGE_SECONDS:
            try:
                return self._look_at(self._main, self._pipeline)
            except TransientError:
                Event().wait(pause)
        return self._look_at(self._main, self._pipeline)

    @contextmanager
    def _step(self, step: Step) -> Iterator[None]:
        self._on_step("before", step)
        yield
        self._on_step("after", step)


def _wait(pause: float | None, error: Exception | None, doing: str) -> None:
    if pause is None:
        raise given_up(doing, error) from error
    Event().wait(pause)
