"""What a broker in KRaft mode is started with: its settings, its command, its cluster id."""

from __future__ import annotations

import base64
import os
import uuid
from pathlib import Path

from oncelake.local import jars, java, ports

_JAVA_OPTIONS = (
    "-Xms256m",
    "-Xmx1g",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
    "-Dorg.slf4j.simpleLogger.showThreadName=false",
)

# `data` is relative to the broker's working folder: Kafka would split a path with a comma.
# After a crash the controller keeps the broker out for a session: 4 s, where Kafka's default is 9.
_ALONE = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
"""
_JOINED = """\
process.roles=broker
node.id=2
listeners=PLAINTEXT://{host}:{port}
"""
_PROPERTIES = """\
controller.quorum.voters=1@{host}:{controller_port}
controller.listener.names=CONTROLLER
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=data
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=1000
auto.create.topics.enable=false
log.retention.ms=-1
log.retention.bytes=-1
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4
group.initial.rebalance.delay.ms=0
"""


def properties(port: int, controller_port: int, joined: bool = False) -> str:
    """The text of server.properties; of a second broker, if it has `joined` the first's cluster."""
    text = (_JOINED if joined else _ALONE) + _PROPERTIES
    return text.format(host=ports.HOST, port=port, controller_port=controller_port)


def command(scratch: Path, main_class: str, *arguments: str) -> list[str]:
    """A Java command with Kafka's own jars and no others; its temporary files are in `scratch`."""
    class_path = os.pathsep.join(str(jar) for jar in jars.kafka_jars())
    options = (*_JAVA_OPTIONS, java.scratch_option(scratch), "-cp", class_path)
    return [str(java.java_command()), *options, main_class, *arguments]


def new_cluster_id() -> str:
    """As Kafka's own tool makes them; none starts with a dash, which tools take for an option."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith(
        "-"
    ):
        pass
    return text
