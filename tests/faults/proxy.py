"""Between a client and an HTTP server: each request passes, or meets with the fault that is set.

    with FaultProxy(server_port) as proxy:
        proxy.set_fault(cut_after, is_commit)
        ...  # the next request that is a commit lands, and its answer is lost

A fault is a function of the request and of `forward`, which sends it on and gives the server's
answer. It returns what the client is to be answered, or None: then the connection is cut.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

HOST = "127.0.0.1"
HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


Forward = Callable[[], Answer]
Fault = Callable[[Request, Forward], Answer | None]
Matches = Callable[[Request], bool]


class ServerGone(Exception):
    """The server does not answer: neither does the proxy."""


class FaultProxy:
    """A server on a port of its own before the one at `port`."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._lock = threading.Lock()
        self._fault: tuple[Fault, Matches] | None = None
        self._left = 0
        self.met = 0
        self._broken: BaseException | None = None
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _handle(self) -> None:
                proxy._handle(self)

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _handle

            def log_message(self, *_: object) -> None:
                """Nothing: a test says what it did."""

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        if self._broken is not None:
            raise self._broken

    @property
    def uri(self) -> str:
        return f"http://{HOST}:{self._server.server_port}"

    def set_fault(self, fault: Fault, matches: Matches, times: int = 1) -> None:
        """The next `times` requests that match meet with it."""
        with self._lock:
            self._fault, self._left, self.met = (fault, matches), times, 0

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        headers = {k: v for k, v in handler.headers.items() if k.lower() not in HOP_BY_HOP}
        request = Request(handler.command, handler.path, headers, body)
        fault = self._taken(request)
        try:
            answer = fault(request, lambda: self._send(request))
        except ServerGone:
            answer = None
        except BaseException as broken:
            self._broken = broken
            raise
        if answer is None:
            handler.close_connection = True
            return
        handler.send_response(answer.status)
        for key, value in answer.headers.items():
            handler.send_header(key, value)
        handler.send_header("Content-Length", str(len(answer.body)))
        handler.end_headers()
        handler.wfile.write(answer.body)

    def _taken(self, request: Request) -> Fault:
        with self._lock:
            if self._fault and self._left and self._fault[1](request):
                self._left -= 1
                self.met += 1
                return self._fault[0]
        return passes

    def _send(self, request: Request) -> Answer:
        connection = http.client.HTTPConnection(HOST, self._port, timeout=60)
        try:
            connection.request(request.method, request.path, request.body, request.headers)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServerGone from error
        else:
            headers = {k: v for k, v in response.getheaders() if k.lower() not in HOP_BY_HOP}
            return Answer(response.status, headers, body)
        finally:
            connection.close()


def passes(request: Request, forward: Forward) -> Answer:
    return forward()


def cut_before(request: Request, forward: Forward) -> None:
    """It never reaches the server."""


def cut_after(request: Request, forward: Forward) -> None:
    """It is done, and nobody is told."""
    forward()


def replayed(request: Request, forward: Forward) -> Answer:
    """It is sent twice, as a gateway does that had no answer; the second one's answer is given."""
    forward()
    return forward()


def answered(status: int, headers: dict[str, str] | None = None) -> Fault:
    """It is done, and the answer is an error that somebody between makes up."""

    def fault(request: Request, forward: Forward) -> Answer:
        forward()
        body = b'{"error":{"message":"a gateway\'s words","type":"Gateway","code":%d}}' % status
        return Answer(status, {"Content-Type": "application/json", **(headers or {})}, body)

    return fault


class Held:
    """A fault: requests wait before the server until they are let go."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.go = threading.Event()

    def __call__(self, request: Request, forward: Forward) -> Answer:
        self.arrived.set()
        if not self.go.wait(120):
            raise TimeoutError("the test never let it go")
        return forward()
