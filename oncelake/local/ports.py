"""TCP ports of this machine, on the loopback address only."""

from __future__ import annotations

import random
import socket

HOST = "127.0.0.1"
# Below the range that systems take for outgoing connections: none of those can be in the way.
_CHOICE = range(20_000, 32_000)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def free_port() -> int:
    for port in random.sample(_CHOICE, k=200):
        if is_free(port):
            return port
    raise OSError(f"no free port between {_CHOICE.start} and {_CHOICE.stop} on {HOST}")


def port_option(bootstrap: str) -> str:
    """Of `oncelake local up`, to be at this address: else it takes any free port."""
    port = bootstrap.rpartition(":")[2]
    return f" --port {port}" if port.isdigit() else ""
