"""What runs in a folder of the local stack: `stack.json`, written whole or not at all."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from oncelake.local import LocalStackError, ports
from oncelake.local.process import Process


@dataclass(frozen=True, slots=True)
class Broker:
    """The broker of a folder: its port, which it keeps, and its process while it runs."""

    port: int
    controller_port: int
    since: str
    process: Process | None

    @property
    def bootstrap(self) -> str:
        return f"{ports.HOST}:{self.port}"

    def running(self) -> bool:
        return self.process is not None and self.process.alive()


def read(file: Path) -> Broker | None:
    """The broker last started, running or not; None if none ever was."""
    try:
        kafka = json.loads(file.read_text(encoding="utf-8"))["kafka"]
        process = Process(**kafka["process"]) if kafka["process"] else None
        return Broker(int(kafka["port"]), int(kafka["controller_port"]), kafka["since"], process)
    except FileNotFoundError:
        return None
    except NotADirectoryError as problem:
        raise LocalStackError(
            f"{file.parent} is a file, and what runs here needs a folder.\n"
            "Type the command with another --dir."
        ) from problem
    except (ValueError, KeyError, TypeError) as problem:
        raise LocalStackError(
            f"{file} is not a state file of ours: {problem!r}.\n"
            f"Type `rm {file}`; if a broker still runs, end it first."
        ) from problem


def write(file: Path, broker: Broker) -> None:
    kafka: dict[str, Any] = {"bootstrap": broker.bootstrap, **asdict(broker)}
    unfinished = file.with_suffix(".partial")
    unfinished.write_text(json.dumps({"kafka": kafka}, indent=2) + "\n", encoding="utf-8")
    unfinished.replace(file)
