"""`oncelake local up|down|status`: a real Kafka broker on this machine."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oncelake.local import jars
from oncelake.local.kafka import LocalKafka

if TYPE_CHECKING:
    from oncelake.cli import Verbs

STOPPED = 3


def add(verbs: Verbs) -> None:
    local = verbs.add_parser("local", help="a real Kafka broker on this machine: up, down, status")
    actions = local.add_subparsers(metavar="action", required=True)
    _add_up(actions)
    down = actions.add_parser("down", help="stop the broker; its data stays")
    down.set_defaults(handler=_down)
    status = actions.add_parser(
        "status",
        help="is the broker running, and where",
        epilog=f"exit codes: 0 running, {STOPPED} stopped or never started",
    )
    status.set_defaults(handler=_status)
    for action in (down, status):
        _add_shared(action)


def _add_up(actions: Verbs) -> None:
    up = actions.add_parser("up", help="start the broker; nothing to do if it runs already")
    up.add_argument("--port", type=_port, help="default: the one it had before, else a free one")
    up.set_defaults(handler=_up)
    _add_shared(up)


def _add_shared(action: argparse.ArgumentParser) -> None:
    action.add_argument("--json", action="store_true", help="one JSON document on stdout")
    action.add_argument(
        "--dir",
        type=Path,
        default=Path(".oncelake"),
        metavar="FOLDER",
        help="where its data, log and state are (default: %(default)s)",
    )


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 1 to 65535")
    return int(text)


def _up(args: argparse.Namespace) -> int:
    kafka = LocalKafka(args.dir, args.port)
    was_running = kafka.running()
    if not was_running:
        jars.ensure(lambda line: print(line, file=sys.stderr))
        print(f"starting Kafka in {args.dir} …", file=sys.stderr)
    kafka.start()
    if args.json:
        return _print_facts(kafka)
    said = "runs already" if was_running else "is ready"
    print(f"Kafka {said} at {kafka.bootstrap} (pid {kafka.pid}, log {kafka.log})")
    print(f"stop it with: oncelake local down{_folder_option(args.dir)}")
    return 0


def _down(args: argparse.Namespace) -> int:
    kafka = LocalKafka(args.dir)
    stopped = kafka.stop()
    if args.json:
        return _print_facts(kafka)
    print(f"Kafka in {args.dir} {'is stopped; its data stays' if stopped else 'was not running'}")
    return 0


def _status(args: argparse.Namespace) -> int:
    kafka = LocalKafka(args.dir)
    running = kafka.running()
    if args.json:
        _print_facts(kafka)
    elif running:
        since = kafka.broker.since if kafka.broker else ""
        print(f"Kafka is running at {kafka.bootstrap} (pid {kafka.pid}) since {since}")
        print(f"data and log: {kafka.folder}")
    else:
        print(f"Kafka in {args.dir} is stopped; start it with: ", end="")
        print(f"oncelake local up{_folder_option(args.dir)}")
    return 0 if running else STOPPED


def _print_facts(kafka: LocalKafka) -> int:
    print(json.dumps({"kafka": _facts(kafka)}, indent=2))
    return 0


def _facts(kafka: LocalKafka) -> dict[str, Any]:
    broker = kafka.broker
    running = kafka.running()
    return {
        "running": running,
        "bootstrap": broker.bootstrap if broker else None,
        "pid": kafka.pid if running else None,
        "since": broker.since if broker and running else None,
        "folder": str(kafka.folder),
        "log": str(kafka.log),
    }


def _folder_option(folder: Path) -> str:
    return "" if folder == Path(".oncelake") else f" --dir {shlex.quote(str(folder))}"
