"""Apache's fixture of a REST catalog on this machine: a real server, for trying and for tests.

    with RestCatalog(Path("stack")) as catalog:
        ...  # catalog: {type: rest, uri: catalog.uri}

It keeps its tables in a SQLite database of the folder, and their files in the folder's warehouse.
It asks nobody for a password and listens on all interfaces: it is a fixture, and for a test's time.
"""

from __future__ import annotations

import os
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from oncelake.local import LocalStackError, jars, java, ports
from oncelake.local.process import Process

_READY_WITHIN_SECONDS = 60.0
_STOP_WITHIN_SECONDS = 10.0
_POLL_SECONDS = 0.1
_TAIL_LINES = 15
DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Asks servers of this machine, whatever proxy the environment names."""


class RestCatalog:
    """The server of one folder, started as often as wanted, always on the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.database = self.folder / "catalog.db"
        self.warehouse = self.folder / "warehouse"
        self.log = self.folder / "rest.log"
        self.port = ports.free_port()
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RestCatalog:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def uri(self) -> str:
        return f"http://{ports.HOST}:{self.port}"

    def start(self) -> None:
        """Start the server and return when it answers."""
        self.warehouse.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                _command(self.folder / "tmp"),
                cwd=self.folder,
                env={**java.environment(), **self._settings()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            self._await_ready(self._child)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        self._end(lambda process: process.end(_STOP_WITHIN_SECONDS))

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(Process.kill)

    def _settings(self) -> dict[str, str]:
        """A catalog's properties, as the server reads them: _ is a dot, and __ a dash."""
        return {
            "CATALOG_URI": f"jdbc:sqlite:{self.database}",
            "CATALOG_WAREHOUSE": str(self.warehouse),
            "CATALOG_JDBC_SCHEMA__VERSION": "V1",
            "CATALOG_REST_PORT": str(self.port),
        }

    def _await_ready(self, child: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _READY_WITHIN_SECONDS
        while True:
            answers = self._answers()
            # Asked after it: another server at this port might have answered.
            if (code := child.poll()) is not None:
                raise self._failure(f"the REST catalog ended at its start (exit code {code})")
            if answers:
                return
            if time.monotonic() > deadline:
                raise self._failure(
                    f"no answer of the REST catalog in {_READY_WITHIN_SECONDS:.0f} s"
                )
            time.sleep(_POLL_SECONDS)

    def _answers(self) -> bool:
        try:
            with DIRECTLY.open(f"{self.uri}/v1/config", timeout=1):
                return True
        except OSError:
            return False

    def _failure(self, what: str) -> LocalStackError:
        lines = self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        tail = "".join(f"  {line}\n" for line in lines)
        return LocalStackError(f"{what}.\n{tail}Its log: {self.log}")

    def _end(self, how: Callable[[Process], object]) -> None:
        if self._child is not None:
            if process := Process.of(self._child.pid):
                how(process)
            self._child.wait()
            self._child = None


def _command(scratch: Path) -> list[str]:
    class_path = os.pathsep.join(str(jar) for jar in jars.rest_jars())
    options = ("-Xmx512m", java.scratch_option(scratch), "-cp", class_path)
    return [str(java.java_command()), *options, "org.apache.iceberg.rest.RESTCatalogServer"]
