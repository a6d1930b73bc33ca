"""The local broker, for real: its data, its port and its process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from oncelake.local import LocalStackError, ports, topics
from oncelake.local.kafka import BrokerFailed, LocalKafka, PortTaken, create_topic
from oncelake.local.topics import TopicExists


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[LocalKafka]:
    """A broker of the test's own, in a folder whose name is not plain; none is left behind."""
    broker = LocalKafka(tmp_path / "a stack, of ours")
    yield broker
    broker.stop()
    assert processes_in(broker.folder) == []


def processes_in(folder: Path) -> list[int]:
    inside = (process for process in psutil.process_iter(["cwd"]) if process.info["cwd"])
    return [process.pid for process in inside if Path(process.info["cwd"]).is_relative_to(folder)]


def produce(bootstrap: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, value)
    assert producer.flush(30) == 0


def first_value(bootstrap: str, topic: str) -> bytes | None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        return message.value()
    finally:
        consumer.close()


def test_a_broker_comes_back_with_its_data_its_port_and_its_cluster_id(stack: LocalKafka) -> None:
    """One that was stopped, and one that was killed."""
    stack.start()
    address, cluster = stack.bootstrap, topics.cluster_id(stack.bootstrap, 30)
    create_topic(address, "kept", 1)
    produce(address, "kept", b"one")
    assert stack.stop()
    assert not stack.running()
    stack.start()
    assert (stack.bootstrap, topics.cluster_id(address, 30)) == (address, cluster)
    assert first_value(address, "kept") == b"one"
    pid = stack.pid
    LocalKafka(stack.folder).kill()
    assert processes_in(stack.folder) == []
    stack.start()
    assert stack.pid != pid
    assert first_value(stack.bootstrap, "kept") == b"one"


def test_a_taken_port_is_named_with_what_to_type(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind((ports.HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=rf"port {port} is taken.*\n.*--port N"):
            LocalKafka(tmp_path, port).start()
    assert processes_in(tmp_path) == []


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(LocalStackError, match="taken is a file"):
        LocalKafka(tmp_path / "taken").running()


def test_a_broker_that_cannot_start_shows_its_log_and_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "data").write_text("a file where a folder has to be")
    with pytest.raises(BrokerFailed, match=r"could not format(.|\n)*Its log: .*kafka\.log"):
        LocalKafka(tmp_path).start()
    assert processes_in(tmp_path) == []


def test_the_commands_start_once_tell_the_state_and_stop(stack: LocalKafka) -> None:
    assert local("status", stack).returncode == 3
    assert "is ready" in local("up", stack).stdout
    pid = stack.pid
    assert "runs already" in local("up", stack).stdout
    assert json.loads(local("up", stack, "--json").stdout)["kafka"]["pid"] == pid
    status = local("status", stack, "--json")
    told = json.loads(status.stdout)["kafka"]
    assert (told["running"], told["pid"], told["bootstrap"]) == (True, pid, stack.bootstrap)
    assert status.returncode == 0
    assert "is stopped" in local("down", stack).stdout
    assert "was not running" in local("down", stack).stdout
    assert json.loads(local("down", stack, "--json").stdout)["kafka"]["running"] is False
    refused = local("up", stack, "--port", "abc")
    assert (refused.returncode, "'abc' is no port: 1 to 65535" in refused.stderr) == (2, True)
    assert local("status", stack).returncode == 3


def local(action: str, stack: LocalKafka, *more: str) -> subprocess.CompletedProcess[str]:
    """`oncelake local …` as a person types it, in a process of its own."""
    program = str(Path(sys.executable).with_name("oncelake"))
    command = [program, "local", action, "--dir", str(stack.folder), *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_running_broker_is_not_moved_to_another_port(kafka: LocalKafka) -> None:
    with pytest.raises(LocalStackError, match=r"runs already, on port \d+"):
        LocalKafka(kafka.folder, ports.free_port()).start()


def test_a_pid_that_belongs_to_another_process_now_is_not_ours(tmp_path: Path) -> None:
    state = {"port": 1, "controller_port": 2, "since": "then"}
    state["process"] = {"pid": os.getpid(), "started": "long ago"}
    (tmp_path / "stack.json").write_text(json.dumps({"kafka": state}))
    broker = LocalKafka(tmp_path)
    assert not broker.running()
    assert not broker.stop()  # and this process lives to say so


def test_a_topic_is_there_with_all_its_partitions_once_created(kafka: LocalKafka) -> None:
    create_topic(kafka.bootstrap, "created-once", 6)
    assert topics._led_partitions(topics._admin(kafka.bootstrap), "created-once") == 6
    with pytest.raises(TopicExists, match="created-once exists already"):
        create_topic(kafka.bootstrap, "created-once", 6)
