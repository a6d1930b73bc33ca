"""As Kafka tests its own transactions: numbered messages, clients and brokers killed at random.

A reader beside it all must never see a message twice, out of order, or of an aborted transaction.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from oncelake.demo.run import PipelineRun
from oncelake.local.kafka import LocalKafka
from tests.outbox import PARTITIONS, Outbox

pytestmark = pytest.mark.chaos
MESSAGES, ROUNDS, BROKER_ROUNDS = 100_000, 20, (3, 7, 11, 15, 19)
KEYS = 50
READ_SECONDS = 60.0
AWAY = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
"""While the broker is killed; it comes back."""
SEED = 20261117


class Watch:
    """A reader of committed records, in a thread of its own, for as long as the test lasts."""

    def __init__(self, box: Outbox) -> None:
        self._box = box
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self.values: list[int] = []
        self.wrong: list[str] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._ends.set()
            self._thread.join()

    def await_all(self, count: int) -> None:
        deadline = time.monotonic() + READ_SECONDS
        while len(self.values) < count and not self.wrong:
            assert self._thread.is_alive(), "the reader has died"
            assert time.monotonic() < deadline, f"{len(self.values)} of {count} were seen"
            threading.Event().wait(0.1)

    def _read(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._box.bootstrap,
                "group.id": "watch",
                "isolation.level": "read_committed",
                "enable.auto.commit": "false",
                "log_level": "0",
            }
        )
        consumer.assign(
            [TopicPartition(self._box.target, p, OFFSET_BEGINNING) for p in range(PARTITIONS)]
        )
        last: dict[bytes | None, int] = defaultdict(lambda: -1)
        while not self._ends.is_set():
            for message in consumer.consume(1000, timeout=0.2):
                if (error := message.error()) is not None:
                    if error.code() not in AWAY:
                        self.wrong.append(str(error))
                    continue
                key, value = message.key(), int(message.value() or b"")
                if value <= last[key]:
                    self.wrong.append(f"{value} of {key!r} after {last[key]}")
                last[key] = value
                self.values.append(value)
        consumer.close()


def _end(run: PipelineRun, moments: random.Random) -> None:
    """Hard, or softly: as a terminal or a service manager would."""
    how = moments.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    os.killpg(run.pid, how)
    if how is not signal.SIGKILL:
        run.ended()
    run.kill()


def test_nobody_sees_a_message_twice_or_out_of_order(tmp_path: Path) -> None:
    moments = random.Random(SEED)
    with LocalKafka(tmp_path / "kafka") as broker:
        box = Outbox.make(broker, tmp_path)
        watch = Watch(box)
        with watch.watching():
            share = MESSAGES // ROUNDS
            for number in range(ROUNDS):
                box.produce(range(number * share, (number + 1) * share), KEYS)
                with box.run("--most", "1500") as run:
                    for _ in zip(range(moments.randint(1, 4)), run.events(), strict=False):
                        pass
                    # The moment is meant to be arbitrary: nothing is waited for.
                    threading.Event().wait(moments.uniform(0.0, 1.0))
                    if number in BROKER_ROUNDS:
                        broker.kill()
                        broker.start()
                        threading.Event().wait(moments.uniform(0.0, 3.0))
                    _end(run, moments)
                assert not watch.wrong, watch.wrong
                if moments.random() < 0.2:
                    shutil.rmtree(box.checkpoint, ignore_errors=True)
            box.run_to_the_end()
            box.assert_once(range(MESSAGES))
            watch.await_all(MESSAGES)
        assert not watch.wrong, watch.wrong
        assert sorted(watch.values) == list(range(MESSAGES))
