"""What happens in the demo, as values: each scene is one run of the pipeline and its end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from oncelake.demo.tally import Event, Tally


class Ending(Enum):
    """How a scene's run ends."""

    KILL = "kill -9"
    INTERRUPT = "Ctrl+C"
    BY_ITSELF = "by itself"


@dataclass(frozen=True, slots=True)
class Cue:
    """The moment to end a run: at this event, once so many batches were written in it."""

    event: str
    written: int

    def given(self, event: Event, tally: Tally) -> bool:
        """`tally` includes the event; a refused replay gives no cue."""
        return (
            event["event"] == self.event
            and tally.written_here >= self.written
            and event.get("outcome") != "skipped"
        )


@dataclass(frozen=True, slots=True)
class Scene:
    """`says` may name the `{batch}` of the cue; `says_late`, where Spark was quicker."""

    title: str
    ending: Ending
    says: str = ""
    says_late: str = ""
    cue: Cue | None = None
    once: bool = False
    delete_checkpoint: bool = False

    @property
    def again(self) -> Scene:
        """The same, at the next batch."""
        return self if self.cue is None else replace(self, cue=replace(self.cue, written=1))


SCENES = (
    Scene(
        "first run",
        Ending.KILL,
        "kill -9 in mid-batch {batch}: the table has its rows, Spark's checkpoint does not know",
        "kill -9 after batch {batch}: Spark's checkpoint knows of it already",
        Cue("batch", written=3),
    ),
    Scene(
        "restart: Spark replays the batch it knows nothing of",
        Ending.INTERRUPT,
        "Ctrl+C after batch {batch}",
        cue=Cue("batch", written=2),
        delete_checkpoint=True,
    ),
    Scene(
        "restart without a checkpoint: the table knows where to go on",
        Ending.BY_ITSELF,
        once=True,
    ),
)

# The scenes write 3 + 2 batches, one more where a kill came late, and may overshoot by three: this
# leaves some for the last.
BATCHES = 10


def batch_size(count: int) -> int:
    """Offsets a batch, so that the whole is ten of them, though Spark rounds each share down."""
    return count // BATCHES + BATCHES
