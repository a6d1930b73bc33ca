"""A real Apache Kafka broker on this machine: KRaft mode, one process, its data in a folder.

    with LocalKafka(Path("stack")) as kafka:
        create_topic(kafka.bootstrap, "articles.raw.v1", partitions=6)

The folder keeps the data, the cluster id and the port, so a broker started on it again is the
same broker. It runs in a session of its own: a Ctrl+C meant for its starter does not reach it.
"""

from __future__ import annotations

import fcntl
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from oncelake.local import LocalStackError, java, kraft, ports, state, topics
from oncelake.local.process import Process
from oncelake.local.topics import create_topic

__all__ = ["BrokerFailed", "LocalKafka", "PortTaken", "create_topic"]

_READY_WITHIN_SECONDS = 90.0
_STOP_WITHIN_SECONDS = 30.0
_TAIL_LINES = 15


class PortTaken(LocalStackError):
    pass


class BrokerFailed(LocalStackError):
    pass


class LocalKafka:
    """The broker of one folder. `port` is chosen at the first start unless given.

    With `joins` it is a second broker in the cluster of another, which must be running.
    """

    def __init__(self, folder: Path, port: int | None = None,
                 joins: LocalKafka | None = None) -> None:  # fmt: skip
        self._joins = joins
        self.folder = folder.absolute()
        self.log = self.folder / "logs" / "kafka.log"
        self._wanted_port = port
        self._home = self.folder / "kafka"
        self._state_file = self.folder / "stack.json"
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> LocalKafka:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def broker(self) -> state.Broker | None:
        """What the folder says of its broker; None before the first start."""
        return state.read(self._state_file)

    @property
    def bootstrap(self) -> str:
        return self._started().bootstrap

    @property
    def pid(self) -> int:
        process = self._started().process
        if process is None:
            raise LocalStackError(f"the broker of {self.folder} is stopped.\n{self._hint()}")
        return process.pid

    def running(self) -> bool:
        broker = self.broker
        return broker is not None and broker.running()

    def start(self) -> None:
        """Start the broker and return when it answers; nothing to do if it runs already."""
        self._home.mkdir(parents=True, exist_ok=True)
        self.log.parent.mkdir(exist_ok=True)
        with self._alone():
            if not self.running():
                self._reap()
                broker = self._plan()
                (self._home / "server.properties").write_text(
                    kraft.properties(broker.port, broker.controller_port, bool(self._joins))
                )
                self._format()
                self._spawn(broker)
            elif self._wanted_port not in (None, self._started().port):
                raise LocalStackError(
                    f"the broker of {self.folder} runs already, on port {self._started().port}.\n"
                    f"Type `oncelake local down --dir {shlex.quote(str(self.folder))}` first to "
                    "move it."
                )

    def stop(self) -> bool:
        """Stop the broker cleanly, by force if it hangs; False if it was not running."""
        return self._end(lambda process: process.end(_STOP_WITHIN_SECONDS))

    def kill(self) -> bool:
        """End the broker as a crash would, by SIGKILL; False if it was not running."""
        return self._end(Process.kill)

    def _started(self) -> state.Broker:
        if broker := self.broker:
            return broker
        raise LocalStackError(f"no broker was ever started in {self.folder}.\n{self._hint()}")

    def _hint(self) -> str:
        return f"Type `oncelake local up --dir {shlex.quote(str(self.folder))}`."

    def _another_port(self) -> str:
        folder = shlex.quote(str(self.folder))
        return f"Type `oncelake local up --dir {folder} --port N` with a free port N."

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Two processes that start or stop the same broker take turns."""
        with (self.folder / "stack.lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield

    def _plan(self) -> state.Broker:
        """The port given, else the one it had, else a free one."""
        before = self.broker
        port = self._wanted_port or (before.port if before else ports.free_port())
        if not ports.is_free(port):
            raise PortTaken(f"port {port} is taken by another program.\n{self._another_port()}")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        joined = self._joins._started().controller_port if self._joins else None
        return state.Broker(port, joined or ports.free_port(), now, process=None)

    def _format(self) -> None:
        """Give the storage its cluster id, once: Kafka writes meta.properties last."""
        if (self._home / "data" / "meta.properties").exists():
            return
        said = self._log_size()
        tool = ("kafka.tools.StorageTool", "format", "-c", "server.properties")
        cluster = self._joins._cluster_id() if self._joins else kraft.new_cluster_id()
        with self._begun(*tool, "-t", cluster) as child:
            code = child.wait()
        if code:
            raise self._failure(f"Kafka could not format its storage (exit code {code})", said)

    def _spawn(self, broker: state.Broker) -> None:
        """Start the broker and see it answer."""
        said = self._log_size()
        try:
            with self._begun("kafka.Kafka", "server.properties") as child:
                self._child = child
                state.write(self._state_file, replace(broker, process=Process.of(child.pid)))
                self._await_ready(child, broker.bootstrap, said)
        except BaseException:
            state.write(self._state_file, broker)
            raise

    @contextmanager
    def _begun(self, main_class: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """A process, which is not left behind where something goes wrong meanwhile."""
        with self.log.open("ab") as log:
            child = subprocess.Popen(
                kraft.command(self._home / "tmp", main_class, *arguments),
                cwd=self._home,
                env=java.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield child
        except BaseException:
            child.kill()
            child.wait()
            raise

    def _await_ready(self, child: subprocess.Popen[bytes], bootstrap: str, said: int) -> None:
        """Wait for an answer to a metadata request, from this broker and no other."""
        deadline = time.monotonic() + _READY_WITHIN_SECONDS
        while topics.cluster_id(bootstrap, timeout_seconds=1.0) != self._cluster_id():
            if (code := child.poll()) is not None:
                raise self._failure(f"the broker ended at its start (exit code {code})", said)
            if time.monotonic() > deadline:
                raise self._failure(f"no answer after {_READY_WITHIN_SECONDS:.0f} s", said)

    def _cluster_id(self) -> str:
        meta = (self._home / "data" / "meta.properties").read_text()
        return next(line[11:] for line in meta.splitlines() if line.startswith("cluster.id="))

    def _log_size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0

    def _failure(self, what: str, said: int) -> LocalStackError:
        """`what`, with the end of what the log says since it had the size `said`."""
        lines = self.log.read_bytes()[said:].decode(errors="replace").splitlines()
        if any("Address already in use" in line for line in lines):
            broker = self._started()
            ports_of_it = f"{broker.port} or, of its controller, {broker.controller_port}"
            return PortTaken(f"{what}: port {ports_of_it} is taken.\n{self._another_port()}")
        tail = "".join(f"  {line}\n" for line in lines[-_TAIL_LINES:])
        return BrokerFailed(f"{what}.\n{tail}Its log: {self.log}\n{self._hint()}")

    def _end(self, how: Callable[[Process], object]) -> bool:
        if self.broker is None:
            return False
        with self._alone():
            broker = self._started()
            was_running = broker.process is not None and broker.process.alive()
            if broker.process is not None:
                how(broker.process)
                state.write(self._state_file, replace(broker, process=None))
            self._reap()
        return was_running

    def _reap(self) -> None:
        """A dead process stays listed until its own parent has asked for it."""
        if self._child is not None:
            self._child.wait()
            self._child = None
