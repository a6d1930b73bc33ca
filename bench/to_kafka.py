"""Into Kafka: ours, exactly once, against Spark's own sink, which is at-least-once.

Every side reads the same topic in one session, in batches of the same size, and sends each record,
key and value, to a fresh topic of as many partitions; what readers of committed records find there
must be equal. A side's rate in a round is that of its median batch, as Spark timed it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

from bench.content import Content, content_of, require_equal
from bench.results import Result
from bench.rounds import estimate, order_of, paired_ratios
from bench.sides import batch_seconds
from bench.stack import PARTITIONS, Load, Stack, stack
from bench.trend import growth_percent
from oncelake import events, outbound, pipeline, source
from oncelake.kafka_sink.target import Sending
from oncelake.local.kafka import create_topic

BATCH = 400_002
WARM_UPS = 2
LEAST_OF_DEFAULTS, LEAST_OF_TUNED = 1.3, 0.9
MOST_GROWTH_PERCENT = 5.0
SPARK, SPARK_TUNED, OURS, OURS_TUNED = "spark", "spark_tuned", "oncelake", "oncelake_tuned"
TUNED = {"linger.ms": "50", "batch.size": "1000000", "compression.type": "none"}
ANSWER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Lap:
    """`outside` is the share of the tasks' time in which nothing was being sent, `worker_bytes` the
    memory of the largest Python worker after it."""

    rows_per_second: float
    outside: float = 0.0
    worker_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Side:
    name: str
    about: str
    run: Callable[[Stack, str], Lap]


def run(rows: int, rounds: int, out: Console) -> list[Result]:
    sides = (
        Side(SPARK, "Spark's Kafka sink, defaults", _spark({})),
        Side(SPARK_TUNED, "Spark's Kafka sink, tuned", _spark(TUNED)),
        Side(OURS, "oncelake, exactly once", _oncelake({})),
        Side(OURS_TUNED, "oncelake, with the same settings", _oncelake(TUNED)),
    )
    laps: dict[str, list[Lap]] = {side.name: [] for side in sides}
    with stack(Load(rows, BATCH), out) as ground:
        for number in range(1 - WARM_UPS, rounds + 1):
            label = f"round {number} of {rounds}" if number > 0 else "warm-up"
            found: dict[str, Content] = {}
            for side in order_of(sides, number):
                lap, found[side.name] = _lap(ground, side, f"out.{side.name}.{number + WARM_UPS}")
                out.print(f"{label:<14} {side.about:<34} {lap.rows_per_second:>9,.0f} rows/s")
                if number > 0:
                    laps[side.name].append(lap)
            require_equal(found, rows)
    return _results(laps, {"rows": rows, "rounds": rounds, "batch": BATCH})


def _results(laps: Mapping[str, Sequence[Lap]], setting: Mapping[str, Any]) -> list[Result]:
    rates = {name: [lap.rows_per_second for lap in each] for name, each in laps.items()}
    outside = median(lap.outside for lap in laps[OURS])
    details = {
        **setting,
        "rows_per_second": {name: [round(rate) for rate in each] for name, each in rates.items()},
        "outside_sending": round(outside, 4),
    }
    found = []
    for name, ours, theirs, least in (
        ("to_kafka_vs_spark_defaults", OURS, SPARK, LEAST_OF_DEFAULTS),
        ("to_kafka_vs_spark_tuned", OURS_TUNED, SPARK_TUNED, LEAST_OF_TUNED),
    ):
        ratio = estimate(paired_ratios(rates[ours], rates[theirs]))
        found.append(
            Result(
                name=name,
                value=round(ratio.median, 3),
                target=f"at least {least:g} times its rows/s",
                holds=ratio.median >= least,
                shown=f"{ratio.median:.2f} times ({ratio.low:.2f} to {ratio.high:.2f}); "
                f"{median(rates[ours]):,.0f} rows/s, {100 * outside:.1f} % outside sending",
                details={**details, "ratio": asdict(ratio)},
            )
        )
    return [*found, _memory(laps[OURS])]


def _memory(laps: Sequence[Lap]) -> Result:
    """The workers live on from batch to batch and from round to round."""
    held = [lap.worker_bytes for lap in laps]
    growth = growth_percent(range(len(held)), held) if len(held) > 1 else 0.0
    return Result(
        name="to_kafka_worker_memory_growth",
        value=round(growth, 2),
        target=f"at most {MOST_GROWTH_PERCENT:g} % over {len(held)} rounds",
        holds=growth <= MOST_GROWTH_PERCENT,
        shown=f"{growth:+.1f} %; {held[-1] / 2**20:.0f} MiB at the end",
        details={"worker_bytes": held},
    )


def _lap(ground: Stack, side: Side, topic: str) -> tuple[Lap, Content]:
    bootstrap = ground.spec.source.bootstrap
    create_topic(bootstrap, topic, PARTITIONS)
    ground.collect_garbage()
    lap = side.run(ground, topic)
    found = _content(ground, topic)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    gone = [name for name in admin.list_topics(timeout=ANSWER_SECONDS).topics if topic in name]
    for future in admin.delete_topics(gone, request_timeout=ANSWER_SECONDS).values():
        future.result(ANSWER_SECONDS)
    shutil.rmtree(ground.folder / "checkpoints" / topic)
    return lap, found


def _spark(settings: Mapping[str, str]) -> Callable[[Stack, str], Lap]:
    def run(ground: Stack, topic: str) -> Lap:
        writer = (
            _stream(ground)
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", ground.spec.source.bootstrap)
            .option("topic", topic)
            .option("checkpointLocation", str(ground.folder / "checkpoints" / topic))
            .options(**{f"kafka.{key}": value for key, value in settings.items()})
        )
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return Lap(_rate(ground, query))

    return run


def _oncelake(settings: Mapping[str, str]) -> Callable[[Stack, str], Lap]:
    def run(ground: Stack, topic: str) -> Lap:
        told: list[events.Event] = []
        checkpoint = str(ground.folder / "checkpoints" / topic)
        running = pipeline.Running(checkpoint, once=True, tell=told.append)
        sending = Sending(topic, ground.spec.source.bootstrap, options=settings)
        query = outbound.write(_stream(ground), sending, running)
        query.wait()
        sent = [event.facts for event in told if event.name == "sent"]
        busy, sending_seconds = (sum(each[name] for each in sent) for name in ("busy", "sending"))
        return Lap(_rate(ground, query.query), 1 - sending_seconds / busy, ground.worker_bytes())

    return run


def _rate(ground: Stack, query: StreamingQuery) -> float:
    batches = batch_seconds(query)
    return ground.load.rows / len(batches) / median(batches)


def _stream(ground: Stack) -> DataFrame:
    """The same for every side, with our larger fetches: what is compared is the sending."""
    spec = ground.spec
    starts = source.describe_topic(spec.source).starts("earliest")
    stream = source.open_stream(ground.spark, spec.source, spec.limits, starts)
    return stream.select("key", "value")


def _content(ground: Stack, topic: str) -> Content:
    reader = ground.spark.read.format("kafka").options(
        **{
            "kafka.bootstrap.servers": ground.spec.source.bootstrap,
            "subscribe": topic,
            "kafka.isolation.level": "read_committed",
            **source.FETCH_OPTIONS,
        }
    )
    return content_of(reader.load().select("key", "value"))
