"""Topics of a broker, and who the broker is, by real requests to it."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from oncelake.local import LocalStackError

_VISIBLE_WITHIN_SECONDS = 30.0
_POLL_SECONDS = 0.05


class TopicExists(LocalStackError):
    pass


def cluster_id(bootstrap: str, timeout_seconds: float) -> str | None:
    """The id of the cluster that answers at `bootstrap`; None if none does, or not in time."""
    try:
        metadata = _admin(bootstrap).list_topics(timeout=timeout_seconds)
    except KafkaException:
        return None
    return metadata.cluster_id if metadata.brokers else None


def create_topic(
    bootstrap: str, topic: str, partitions: int, config: Mapping[str, str] | None = None
) -> None:
    """Create the topic and return when every partition of it has a leader."""
    admin = _admin(bootstrap)
    new = NewTopic(topic, partitions, 1, config=dict(config or {}))
    try:
        admin.create_topics([new])[topic].result()
    except KafkaException as refusal:
        raise _explained(refusal, bootstrap, topic) from refusal
    deadline = time.monotonic() + _VISIBLE_WITHIN_SECONDS
    while _led_partitions(admin, topic) != partitions:
        if time.monotonic() > deadline:
            raise LocalStackError(
                f"topic {topic} was created at {bootstrap}, but its {partitions} partitions have"
                f" no leader after {_VISIBLE_WITHIN_SECONDS:.0f} s.\nLook at the broker's log."
            )
        time.sleep(_POLL_SECONDS)


def _admin(bootstrap: str) -> AdminClient:
    # Its own log would fill the screen while a broker starts.
    quickly = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 250, "log_level": 0}
    return AdminClient({"bootstrap.servers": bootstrap, **quickly})


def _led_partitions(admin: AdminClient, topic: str) -> int:
    found = admin.list_topics(topic, timeout=_VISIBLE_WITHIN_SECONDS).topics[topic]
    return sum(partition.leader >= 0 for partition in found.partitions.values())


def _explained(refusal: KafkaException, bootstrap: str, topic: str) -> LocalStackError:
    error = refusal.args[0]
    if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
        return TopicExists(f"topic {topic} exists already at {bootstrap}.\nChoose another name.")
    return LocalStackError(
        f"topic {topic} could not be created at {bootstrap}: {error.str()}.\n"
        "Type `oncelake local status` to see whether the broker runs."
    )
