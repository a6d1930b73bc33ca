"""`sinks`: where good rows go besides the table."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from oncelake.spec import durations, scalars
from oncelake.spec.document import is_null
from oncelake.spec.keys import SINKS
from oncelake.spec.section import Section
from oncelake.spec.values import DEFAULT_TRANSACTION_SECONDS, KafkaSinkSpec, SourceSpec

KINDS = ("kafka",)
KAFKA = (
    "topic", "bootstrap", "name", "key", "mode", "foreign", "too_large", "transaction_timeout",
    "options",
)  # fmt: skip
EXAMPLE = "- kafka: {topic: articles.good.v1}"
OURS = ("bootstrap.servers", "transactional.id", "enable.idempotence", "acks", "partitioner")
"""What a sink sets itself: each row once depends on it."""
_TIMEOUT = durations.between(1.0, "'2 minutes'")


def sinks(top: Section, pipeline: str, source: SourceSpec,
          columns: Mapping[str, str] | None) -> tuple[KafkaSinkSpec, ...]:  # fmt: skip
    node = top.nodes.get(SINKS)
    if node is None or is_null(node):
        return ()
    if not isinstance(node, yaml.SequenceNode):
        top.complain(SINKS, f"must be a list: {EXAMPLE}")
        return ()
    found: list[KafkaSinkSpec] = []
    for number, item in enumerate(node.value, 1):
        outer = Section(top.page, f"{SINKS}[{number}]", item, KINDS)
        if outer.usable and "kafka" not in outer.nodes:
            outer.complain("kafka", f"is missing: {EXAMPLE}")
            continue
        inner = Section(top.page, outer.dotted("kafka"), outer.nodes.get("kafka"), KAFKA)
        sink = _kafka(inner, pipeline, source, columns)
        if any((sink.topic, sink.name) == (other.topic, other.name) for other in found):
            inner.complain("name", f"is needed: another sink sends to {sink.topic} under that name")
        found.append(sink)
    return tuple(found)


def _kafka(section: Section, pipeline: str, source: SourceSpec,
           columns: Mapping[str, str] | None) -> KafkaSinkSpec:  # fmt: skip
    topic = section.text("topic", scalars.topic)
    bootstrap = section.text("bootstrap", scalars.bootstrap) or source.bootstrap
    if section.usable and not topic and "topic" not in section.nodes:
        section.complain("topic", "is missing: the topic to send to")
    if topic == source.topic and bootstrap == source.bootstrap:
        section.complain("topic", "is the topic that is read: what is sent would be read again")
    key = section.text("key", lambda text: text)
    if key and columns is not None and key not in columns:
        section.complain("key", f"{key!r} is no column of the rows: {', '.join(columns)}")
    options = section.settings("options")
    for name in [name for name in options if name in OURS]:
        section.page.report(options.pop(name), "is set by the sink itself")
    mode = section.text("mode", scalars.one_of("transactions", "offsets"), "transactions")
    too_large = section.text("too_large", scalars.one_of("stop", "quarantine"), "stop")
    if (mode, too_large) == ("offsets", "quarantine"):
        section.complain("too_large", "'quarantine' needs mode: transactions")
    return KafkaSinkSpec(
        topic=topic,
        bootstrap=bootstrap,
        name=section.text("name", scalars.pipeline_name) or pipeline,
        key_column=key,
        too_large=too_large,
        mode=mode,
        foreign=section.text("foreign", scalars.one_of("stop", "pass"), "stop"),
        transaction_timeout_seconds=section.parsed(
            "transaction_timeout",
            _TIMEOUT,
            DEFAULT_TRANSACTION_SECONDS,
        ),
        options={name: leaf.respelled(leaf.text) for name, leaf in options.items()},
    )
