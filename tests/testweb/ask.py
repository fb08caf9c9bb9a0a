"""Single requests to the synthetic web, without a crawler."""

from __future__ import annotations

import http.client
import socket

from testweb.server import Server


def get(server: Server, host: str, target: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """One exchange on a new connection: status, header fields (lower case), body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        fields = {"Host": f"{host}:{server.port}"} | {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", target, headers=fields)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def exchange(server: Server, host: str, target: str, *, most: int = 1 << 20) -> bytes:
    """Bytes received on a raw socket until it closes, at most `most`.

    Raises ConnectionResetError for a reset.
    """
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as plug:
        plug.sendall(
            (
                f"GET {target} HTTP/1.1\r\nHost: {host}:{server.port}\r\nAccept-Encoding: "
                "gzip\r\nConnection: close\r\n\r\n"
            ).encode()
        )
        got = b""
        while len(got) < most and (part := plug.recv(65_536)):
            got += part
        return got
