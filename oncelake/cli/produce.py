"""`oncelake produce`: sample articles into a topic, good and bad ones by choice."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import replace

from oncelake.cli import Verbs
from oncelake.meter import Meter, console
from oncelake.samples.articles import Load, events
from oncelake.samples.producer import Produced, Target, ensure_topic, offsets_taken, produce

BOOTSTRAP = "localhost:9092"
TOPIC = "articles.raw.v1"


def add(verbs: Verbs) -> None:
    parser = verbs.add_parser(
        "produce",
        help="send sample articles to Kafka",
        description="Send Avro articles of about 530 bytes to a topic, as an idempotent producer. "
        "The stream goes on where the topic ends: with other articles and later times.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    option, environment = parser.add_argument, os.environ.get
    option("--bootstrap", default=environment("KAFKA_BOOTSTRAP_SERVERS") or BOOTSTRAP,
           metavar="HOST:PORT", help="Kafka to send to (KAFKA_BOOTSTRAP_SERVERS)")  # fmt: skip
    option("--topic", default=environment("KAFKA_TOPIC") or TOPIC, help="(KAFKA_TOPIC)")
    option("--count", type=count, default=10_000, metavar="N", help="how many to send")
    option("--rate", type=rate, default=0.0, metavar="N", help="messages a second, 0: no limit")
    option("--duplicates", type=share, default=0.05, metavar="SHARE",
           help="share that is a later version of an article sent before")  # fmt: skip
    option("--corrupt", type=share, default=0.001, metavar="SHARE",
           help="share that does not decode")  # fmt: skip
    option("--late", type=share, default=0.01, metavar="SHARE",
           help="share published 3 to 12 hours behind the stream")  # fmt: skip
    option("--seed", type=int, default=argparse.SUPPRESS, metavar="N",
           help="not where the topic ends, but the very articles of this seed")  # fmt: skip
    option("--partitions", type=partitions, default=6, metavar="N",
           help="of the topic, where it has to be created")  # fmt: skip
    option("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(handler=_handler(parser))


def _handler(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    def handle(args: argparse.Namespace) -> int:
        try:
            load = Load(args.count, args.duplicates, args.corrupt, args.late)
        except ValueError as error:
            parser.error(str(error))
        return _produce(load, args)

    return handle


def _produce(load: Load, args: argparse.Namespace) -> int:
    out = console(args.json)
    target = Target(args.bootstrap, args.topic, args.rate)
    created = ensure_topic(target.bootstrap, target.topic, args.partitions)
    if created:
        out.print(f"created topic {target.topic} with {args.partitions} partitions")
    if "seed" in args:
        load = replace(load, seed=args.seed)
    elif not created:
        load = load.after(offsets_taken(target.bootstrap, target.topic))
    with Meter(out, f"sending to {target.topic}", load.count) as meter:
        produced = produce(events(load), target, meter.at)
    if args.json:
        print(json.dumps({"topic": target.topic, **produced.to_json()}))
    else:
        out.print(_sentence(produced, target))
    return 0


def _sentence(produced: Produced, target: Target) -> str:
    pace = produced.sent / produced.seconds if produced.seconds else 0
    ends = ", ".join(f"{partition}: {end}" for partition, end in produced.ends.items())
    return (
        f"sent {produced.sent:,} articles to {target.topic} at {target.bootstrap} in "
        f"{produced.seconds:.1f} s ({pace:,.0f}/s): {produced.corrupt:,} corrupt, "
        f"{produced.duplicates:,} duplicates, {produced.late:,} late\n"
        f"next offset per partition: {ends or 'none sent'}"
    )


# argparse names these in its errors: "invalid share value: 'x'".
def count(text: str) -> int:
    return _at_least(0, int(text))


def partitions(text: str) -> int:
    return _at_least(1, int(text))


def rate(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a rate: give 0 or more")
    return number


def share(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a share: give 0 to 1, such as 0.05")
    return number


def _at_least(least: int, number: int) -> int:
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is less than {least}")
    return number
