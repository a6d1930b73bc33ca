"""What happens: articles come in, the stages take turns and are killed, all is compared."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console

from examples.chain import GOOD_TOPIC, LAKE_TOPIC, RAW_TOPIC, check
from examples.chain.compare import Kills, Outcome
from examples.chain.stages import FROM_LAKE, PIPELINE, Folder, Stage
from oncelake.local.kafka import LocalKafka, create_topic
from oncelake.samples.articles import Event, Load, events
from oncelake.samples.producer import Target, produce

PARTITIONS = 2
DUPLICATES, CORRUPT, LATE = 0.05, 0.01, 0.01
BATCHES = 2
"""In each turn, at least: a kill after the first finds another begun."""
LONGEST_SECONDS = 2.0
"""A batch, or two."""


@dataclass(frozen=True, slots=True)
class Chain:
    """One play. It leaves no process behind, however it ends."""

    folder: Folder
    load: Load
    kills: int
    seed: int
    out: Console
    began: float

    @classmethod
    def of(cls, folder: Folder, articles: int, kills: int, seed: int, out: Console) -> Chain:
        load = Load(articles, DUPLICATES, CORRUPT, LATE)
        return cls(folder, load, kills, seed, out, time.monotonic())

    def play(self) -> Outcome:
        self._say(f"starting a Kafka broker; the kills are by --seed {self.seed}")
        with LocalKafka(self.folder.kafka) as kafka:
            for topic in (RAW_TOPIC, GOOD_TOPIC, LAKE_TOPIC):
                create_topic(kafka.bootstrap, topic, PARTITIONS)
            self.folder.write_spec(kafka.bootstrap, self._share // BATCHES + PARTITIONS)
            amid = self._take_turns(kafka.bootstrap)
            self._say("reading the topics and the table with clients that know nothing of oncelake")
            places = check.read(self.folder.where(kafka.bootstrap))
        good = self.load.expected().good
        return Outcome(good, places, Kills(self.kills, amid), time.monotonic() - self.began)

    def _take_turns(self, bootstrap: str) -> int:
        """Each stage in turn is killed, the table's first: the other one reads it. While the
        former is dead new articles come in. In the end each does all that is left. Gives how many
        kills came in the midst of a batch."""
        moments, stream, amid = random.Random(self.seed), events(self.load), 0
        for number, stage in enumerate(self._turns, start=1):
            if stage is PIPELINE:
                self._produce(itertools.islice(stream, self._share), bootstrap)
            amid += self._kill(number, stage, moments.uniform(0.0, LONGEST_SECONDS))
        self._produce(stream, bootstrap)
        for stage in (PIPELINE, FROM_LAKE):
            self._say(f"{stage.name}: to its end")
            stage.run_to_the_end(self.folder, self._detail)
        return amid

    @property
    def _turns(self) -> list[Stage]:
        """Whose turn it is to be killed."""
        return [(PIPELINE, FROM_LAKE)[number % 2] for number in range(self.kills)]

    @property
    def _share(self) -> int:
        """The articles that come in before each turn of the pipeline, the last one included."""
        return self.load.count // (self._turns.count(PIPELINE) + 1)

    def _kill(self, number: int, stage: Stage, seconds: float) -> bool:
        self._say(
            f"{stage.name}: kill {number} of {self.kills} comes {seconds:.1f} s after a batch"
        )
        amid = stage.run_and_kill(self.folder, seconds, self._detail)
        self._detail(f"kill -9 {'in the midst of a batch' if amid else 'between batches'}")
        return amid

    def _produce(self, some: Iterator[Event], bootstrap: str) -> None:
        sent = produce(some, Target(bootstrap, RAW_TOPIC))
        self._say(
            f"produced {sent.sent:,} articles, among them {sent.corrupt:,} corrupt, "
            f"{sent.duplicates:,} sent again as a later version"
        )

    def _detail(self, line: str) -> None:
        self._say(f"       {line}")

    def _say(self, line: str) -> None:
        self.out.print(f"{time.monotonic() - self.began:6.1f} s  {line}")
