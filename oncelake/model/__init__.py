"""The frozen values of the protocol: ranges, counts, stamps and progress.

A *batch* is a set of half-open offset ranges. A *stamp* travels in the summary of each
snapshot we write and says which ranges it holds. *Progress* is a property of the main table,
changed in the same commit, and says where the next batch must begin. Stamps form a chain: each
names the digest of the one before it, so a stamp that is altered or missing shows.

Everything here is pure and turns to JSON and back without loss.
"""

from oncelake.model.counts import BESIDES, QUARANTINED, SIDE_FATES, Counts
from oncelake.model.epochs import Epochs, epoch_number, kafka_name, next_epoch
from oncelake.model.marks import FAILED, FILTERED, TAKEN, Mark, marks_of
from oncelake.model.offsets import (
    Json,
    Ranges,
    Span,
    TopicPartition,
    non_empty,
    offsets_in,
    show_ranges,
    spans_from_json,
    spans_to_json,
    union,
)
from oncelake.model.progress import (
    FOLLOWED_PREFIX,
    PROGRESS_PREFIX,
    Accepted,
    Pending,
    Progress,
)
from oncelake.model.stamps import (
    CLAIMS,
    FORMAT,
    LOSSES,
    REWINDS,
    STAMP_KEY,
    Origin,
    Stamp,
    compact,
)

__all__ = [
    "BESIDES",
    "CLAIMS",
    "FAILED",
    "FILTERED",
    "FOLLOWED_PREFIX",
    "FORMAT",
    "LOSSES",
    "PROGRESS_PREFIX",
    "QUARANTINED",
    "REWINDS",
    "SIDE_FATES",
    "STAMP_KEY",
    "TAKEN",
    "Accepted",
    "Counts",
    "Epochs",
    "Json",
    "Mark",
    "Origin",
    "Pending",
    "Progress",
    "Ranges",
    "Span",
    "Stamp",
    "TopicPartition",
    "compact",
    "epoch_number",
    "kafka_name",
    "marks_of",
    "next_epoch",
    "non_empty",
    "offsets_in",
    "show_ranges",
    "spans_from_json",
    "spans_to_json",
    "union",
]
