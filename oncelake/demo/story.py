"""Plays the script for real: a broker, 200,000 articles, three runs of the pipeline, an audit."""

from __future__ import annotations

import json
import time

from rich.console import Console

from oncelake.demo.count import rows_of
from oncelake.demo.folder import CATALOG, NAMESPACE, TABLE, TOPIC, DemoFolder
from oncelake.demo.report import short
from oncelake.demo.run import PipelineRun, RunFailed
from oncelake.demo.script import SCENES, Ending, Scene, batch_size
from oncelake.demo.tally import Event, Tally, line_of
from oncelake.demo.verdict import Audited, Counted, Outcome
from oncelake.local.kafka import LocalKafka, create_topic
from oncelake.meter import Meter
from oncelake.samples.articles import Load, events
from oncelake.samples.producer import Produced, Target, produce

PARTITIONS = 6
DUPLICATES, CORRUPT, LATE = 0.05, 0.0005, 0.01


class Story:
    """One demo. `play` leaves no process behind, however it ends."""

    def __init__(self, folder: DemoFolder, count: int, out: Console) -> None:
        self._folder = folder
        self._out = out
        self._load = Load(count, duplicates=DUPLICATES, corrupt=CORRUPT, late=LATE)
        self._tally = Tally()
        self._began = time.monotonic()

    def play(self) -> Outcome:
        self._folder.make_fresh()
        self._say("starting a Kafka broker")
        with LocalKafka(self._folder.stack) as kafka:
            create_topic(kafka.bootstrap, TOPIC, PARTITIONS)
            self._say(f"topic {TOPIC} with {PARTITIONS} partitions at {kafka.bootstrap}")
            produced = self._produce(kafka.bootstrap)
            self._folder.write_spec(kafka.bootstrap, batch_size(produced.sent))
            self._play_scenes(produced.sent)
            audited = self._audit()
        return Outcome(
            produced.sent,
            self._load.expected(),
            self._tally,
            audited,
            self._count(),
            time.monotonic() - self._began,
        )

    def _say(self, line: str) -> None:
        self._out.print(f"{time.monotonic() - self._began:6.1f} s  {line}")

    def _produce(self, bootstrap: str) -> Produced:
        with Meter(self._out, "articles produced", self._load.count) as meter:
            produced = produce(events(self._load), Target(bootstrap, TOPIC), meter.at)
        self._say(
            f"produced {produced.sent:,} articles, among them {produced.corrupt:,} corrupt, "
            f"{produced.duplicates:,} sent again as a later version, {produced.late:,} late"
        )
        return produced

    def _play_scenes(self, produced: int) -> None:
        with Meter(self._out, "rows committed", produced, lines=False) as meter:
            for number, scene in enumerate(SCENES, start=1):
                self._say(f"run {number}: {scene.title}")
                try:
                    if not self._play_scene(scene, meter):
                        # A busy machine has let Spark write its log before the kill came.
                        self._say(f"run {number} again: the kill came too late")
                        self._play_scene(scene.again, meter)
                except RunFailed as error:
                    raise RunFailed(f"in run {number}: {error}") from error

    def _play_scene(self, scene: Scene, meter: Meter) -> bool:
        """False: a kill that was to come before Spark's own log knew of the batch came after."""
        words = ("--once",) if scene.once else ()
        with PipelineRun(self._folder.spec, self._folder.log, words=words) as run:
            last = self._follow(run, scene, meter)
            if scene.cue and last is None:
                raise run.failed(f"ended by itself (exit code {run.ended()}) before its cue")
            if last is not None and scene.ending is Ending.KILL:
                return not self._folder.spark_knows(last["batch"])
            if (code := run.ended()) != 0:
                raise run.failed(f"ended with exit code {code}")
        if scene.delete_checkpoint:
            self._folder.delete_checkpoint()
            self._say(f"deleted the checkpoint {short(self._folder.checkpoint)}")
        return True

    def _follow(self, run: PipelineRun, scene: Scene, meter: Meter) -> Event | None:
        """Show the events until the scene's end; the event that gave the cue."""
        cue_event = None
        for event in run.events():
            self._tally = self._tally.after(event)
            given = scene.cue is not None and scene.cue.given(event, self._tally)
            if given and cue_event is None:
                cue_event = event
                self._end(run, scene.ending)
            if line := line_of(event):
                self._say(f"       {line}")
            if cue_event is event:
                self._say(f"       {self._told(scene, event['batch'])}")
            meter.at(self._tally.read)
            if cue_event is not None and scene.ending is Ending.KILL:
                break
        return cue_event

    def _told(self, scene: Scene, batch: int) -> str:
        late = scene.ending is Ending.KILL and self._folder.spark_knows(batch)
        return (scene.says_late if late else scene.says).format(batch=batch)

    def _end(self, run: PipelineRun, ending: Ending) -> None:
        if ending is Ending.KILL:
            run.kill()
            self._tally = self._tally.killed()
        else:
            run.interrupt()

    def _audit(self) -> Audited:
        self._say("audit: the stamps, the rows and the topic's offsets, by a process of its own")
        program = ("oncelake", "audit")
        with PipelineRun(self._folder.spec, self._folder.audit_log, program) as run:
            report = "".join(run.lines())
            code = run.ended()
            try:
                return Audited.from_json(code, json.loads(report))
            except (ValueError, KeyError, TypeError) as error:
                raise run.failed(f"gave no report (exit code {code})") from error

    def _count(self) -> Counted:
        table = f"{CATALOG}.{NAMESPACE}.{TABLE}"
        return Counted(
            main=rows_of(self._folder.catalog, table),
            quarantine=rows_of(self._folder.catalog, f"{table}_quarantine"),
        )
