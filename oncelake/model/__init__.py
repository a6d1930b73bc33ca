"""The frozen values of the protocol: ranges, counts, stamps and progress.

A *batch* is a set of half-open offset ranges. A *stamp* travels in the summary of each
snapshot we write and says which ranges it holds. *Progress* is a property of the main table,
changed in the same commit, and says where the next batch must begin. Stamps form a chain: each
names the digest of the one before it, so a stamp that is altered or missing shows.

Everything here is pure and turns to JSON and back without loss.
"""

from oncelake.model.counts import BESIDES, SIDE_FATES, Counts
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
)
from oncelake.model.records import (
    FOLLOWED_PREFIX,
    FORMAT,
    PROGRESS_PREFIX,
    STAMP_KEY,
    Origin,
    Pending,
    Progress,
    Stamp,
    compact,
)

__all__ = [
    "BESIDES",
    "FOLLOWED_PREFIX",
    "FORMAT",
    "PROGRESS_PREFIX",
    "SIDE_FATES",
    "STAMP_KEY",
    "Counts",
    "Json",
    "Origin",
    "Pending",
    "Progress",
    "Ranges",
    "Span",
    "Stamp",
    "TopicPartition",
    "compact",
    "non_empty",
    "offsets_in",
    "show_ranges",
    "spans_from_json",
    "spans_to_json",
]
