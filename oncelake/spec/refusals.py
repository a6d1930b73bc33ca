"""Settings that would break exactness, or be ignored without a word: refused with the reason."""

from __future__ import annotations

from collections.abc import Callable

from oncelake.spec.problems import Refused

FAIL_ON_DATA_LOSS = "failondataloss"
FAIL_ON_DATA_LOSS_WARNING = (
    "is ignored: offsets that are missing between the table and the topic always stop the"
    " pipeline, until a person accepts the gap"
)

_OFFSETS = "is not yours to set: the table says where to go on; source.start is for the first run"
_COMMITS = "is not yours to set: offsets count as read only when the table's commit has landed"
_TOPICS = "is set by source.topic"
_BYTES = "is not yours to set: records arrive as bytes and are decoded by the decode section"
_SPARK = "is an option of Spark's source, not of the Kafka client, and would be ignored"
_SOURCE = {
    "startingoffsets": _OFFSETS,
    "startingoffsetsbytimestamp": _OFFSETS,
    "startingoffsetsbytimestampstrategy": _OFFSETS,
    "startingtimestamp": _OFFSETS,
    "endingoffsets": _OFFSETS,
    "endingoffsetsbytimestamp": _OFFSETS,
    "endingtimestamp": _OFFSETS,
    "auto.offset.reset": "would skip missing offsets without a word; use source.start",
    "enable.auto.commit": _COMMITS,
    "auto.commit.interval.ms": _COMMITS,
    "subscribe": _TOPICS,
    "subscribepattern": _TOPICS,
    "assign": _TOPICS,
    "bootstrap.servers": "is set by source.bootstrap",
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "interceptor.classes": "could change or drop records before they are counted",
    "maxoffsetspertrigger": "is set by limits.max_offsets",
    "minpartitions": "is set by limits.min_partitions",
    "minoffsetspertrigger": _SPARK,
    "maxtriggerdelay": _SPARK,
    "maxrecordsperpartition": _SPARK,
    "includeheaders": _SPARK + "; headers are always read",
    "groupidprefix": _SPARK + "; use group.id",
    "kafkaconsumer.polltimeoutms": _SPARK,
    "fetchoffset.numretries": _SPARK,
    "fetchoffset.retryintervalms": _SPARK,
}
_SPARK_SETTINGS = {
    "spark.master": "is set by spark.master, one level up: master: local[*]",
    "spark.remote": "is Spark Connect, which cannot reach Iceberg's commits",
    "spark.api.mode": "is Spark Connect's, which cannot reach Iceberg's commits",
}
_CATALOG_KEYS = ("type", "uri", "warehouse")
_RETRIES = "commit.retry.num-retries"
_FEWEST_RETRIES = 4
_FORMAT = "format-version"
_FORMAT_WITH_VECTORS = 3


def source_option(key: str, value: str) -> None:
    del value
    folded = key.lower()
    if folded.startswith("kafka."):
        raise Refused(f"has a prefix that is added for you: write {key[len('kafka.') :]}")
    if reason := _SOURCE.get(folded):
        raise Refused(reason)


def table_property(mode: str) -> Callable[[str, str], None]:
    """The check of a table's properties for a pipeline of this mode."""

    def check(key: str, value: str) -> None:
        if key.startswith("oncelake."):
            raise Refused("is kept by oncelake itself")
        if key == _RETRIES and not _at_least(_FEWEST_RETRIES, value):
            raise Refused(
                f"must be at least {_FEWEST_RETRIES}: with fewer a lost answer loses files"
            )
        if mode == "upsert" and key == _FORMAT and not _at_least(_FORMAT_WITH_VECTORS, value):
            raise Refused(
                f"must be at least {_FORMAT_WITH_VECTORS} for mode: upsert: deletion vectors, by "
                f"which rows are replaced, came with it. Leave it out for {_FORMAT_WITH_VECTORS}"
            )

    return check


def catalog_property(key: str, value: str) -> None:
    del value
    if key in _CATALOG_KEYS:
        raise Refused(f"is set by catalog.{key}, one level up")
    if key == "catalog-impl":
        raise Refused("is chosen by catalog.type: each type there compares and sets in one step")


def spark_setting(catalog: str) -> Callable[[str, str], None]:
    """The check of Spark's settings for a pipeline whose table is in `catalog`."""
    own = f"spark.sql.catalog.{catalog}"

    def check(key: str, value: str) -> None:
        del value
        if not key.startswith("spark."):
            raise Refused("is no Spark setting: their names begin with 'spark.'")
        if reason := _SPARK_SETTINGS.get(key):
            raise Refused(reason)
        if key == own or key.startswith(f"{own}."):
            raise Refused("is set by the catalog section: use catalog.properties")

    return check


def _at_least(least: int, text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= least
