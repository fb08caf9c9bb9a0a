"""The real transport and servers that close kept connections without notice: HTTP/1.1, TLS, HTTP/2."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import ssl
import threading

import pytest

from contracts.wire_tools import carry, curl
from periplus.model.visit import Cause, Purpose, Request
from testweb import tls

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nok"
WAIT_S = 60.0


class ClosingServer(socketserver.ThreadingTCPServer):
    """Closes each connection after `answers` answers.

    idle_s: seconds after the last answer; None: at the next request, without an answer.
    requests: number per connection with requests. ended: set while no kept connection is open.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, answers: int, idle_s: float | None, context: ssl.SSLContext | None = None) -> None:
        self.answers, self.idle_s, self.context = answers, idle_s, context
        self.requests: list[int] = []
        self.ended = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def url(self, number: int) -> str:
        return f"{'https' if self.context else 'http'}://a.test:{self.server_address[1]}/{number}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that disconnects in the handshake is not an error."""


class Handler(socketserver.BaseRequestHandler):
    server: ClosingServer

    def handle(self) -> None:
        context, connection = self.server.context, self.request
        connection.settimeout(WAIT_S)
        with contextlib.suppress(OSError):
            if context is None:
                self.serve(Http1(connection))
            else:
                with context.wrap_socket(connection, server_side=True) as secured:
                    self.serve(Http2(secured) if secured.selected_alpn_protocol() == "h2" else Http1(secured))

    def serve(self, talk: Http1 | Http2) -> None:
        server, asked, place = self.server, 0, 0
        while talk.takes_request():
            if not asked:
                place = len(server.requests)
                server.requests.append(0)
            asked += 1
            server.requests[place] = asked
            if asked > server.answers:
                break
            talk.answer()
            if asked == server.answers and server.idle_s is not None:
                threading.Event().wait(server.idle_s)
                break
        talk.close()
        server.ended.set()
        while talk.connection.recv(65_536):  # closed with unread bytes, a socket resets the connection and the answer
            pass


class Http1:
    def __init__(self, connection) -> None:
        self.connection = connection

    def takes_request(self) -> bool:
        heard = b""
        while b"\r\n\r\n" not in heard:
            if not (more := self.connection.recv(65_536)):
                return False
            heard += more
        return True

    def answer(self) -> None:
        self.connection.sendall(ANSWER)

    def close(self) -> None:
        self.connection.shutdown(socket.SHUT_WR)


class Http2:
    """The part of RFC 9113 needed for an answer `ok`. Closes by GOAWAY with the last accepted request."""

    def __init__(self, connection) -> None:
        self.connection, self.stream, self.answered = connection, 0, 0
        self.read(24)  # the client's preface
        self.send(4, 0, 0)  # SETTINGS

    def read(self, size: int) -> bytes:
        heard = b""
        while len(heard) < size:
            if not (more := self.connection.recv(size - len(heard))):
                raise ConnectionError
            heard += more
        return heard

    def send(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> None:
        head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
        self.connection.sendall(head + payload)

    def takes_request(self) -> bool:
        while True:
            head = self.read(9)
            self.read(int.from_bytes(head[:3], "big"))
            if head[3] == 4 and not head[4]:
                self.send(4, 1, 0)
            if head[3] == 1:  # HEADERS
                self.stream = int.from_bytes(head[5:], "big")
                return True

    def answer(self) -> None:
        self.send(1, 4, self.stream, b"\x88")  # `:status: 200`
        self.send(0, 1, self.stream, b"ok")
        self.answered = self.stream

    def close(self) -> None:
        self.send(7, 0, 0, self.answered.to_bytes(4, "big") + bytes(4))
        self.connection.shutdown(socket.SHUT_WR)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return tls.authority(tmp_path_factory.mktemp("tls")) if tls.AVAILABLE else None


@pytest.fixture
def served(authority):
    """Makes (server, transport to it): `served(wire, answers, idle_s)`."""
    ends = []

    def make(wire: str, answers: int, idle_s: float | None):
        context, identity = None, {}
        if wire != "http":
            if authority is None:
                pytest.skip("needs the openssl program")
            context, identity = tls.context(authority.sign("good")), {"ca_file": str(authority.trusted)}
            context.set_alpn_protocols(["h2"] if wire == "http2" else ["http/1.1"])
        server = ClosingServer(answers, idle_s, context)
        transport = curl((f"a.test:{server.server_address[1]}:127.0.0.1",), **identity)
        ends.extend((transport.close, server.shutdown, server.server_close))
        return server, transport

    yield make
    for end in ends:
        end()


WIRES = ["http", "tls", "http2"]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("answers", [1, 5])
def test_rfc9112_a_request_lost_with_a_kept_connection_is_repeated_once_on_a_new_one(served, wire, answers):
    server, transport = served(wire, answers, None)
    losses = 0
    for number in range(20):
        (response,) = carry(transport, server.url(number))
        if response.cause is Cause.STALE:
            losses += 1
            (response,) = carry(transport, response.request)
        assert (response.status, response.body, response.cause) == (200, b"ok", None)
    assert losses == 2, "then connections to it are kept no longer"
    assert sum(server.requests) == 20 + losses, "the transport itself repeats nothing"
    assert server.requests[-5:] == [1] * 5


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("answers", [1, 5])
@pytest.mark.parametrize("idle_s", [0.0, 0.3])
def test_a_connection_closed_before_the_next_request_costs_no_answer(served, wire, answers, idle_s):
    server, transport = served(wire, answers, idle_s)
    losses = 0
    for number in range(12):
        server.ended.clear()
        (response,) = carry(transport, server.url(number))
        if response.cause is Cause.STALE:
            losses += 1
            (response,) = carry(transport, response.request)
        assert (response.status, response.body, response.cause) == (200, b"ok", None)
        if answers == 1:
            assert server.ended.wait(WAIT_S)
    assert losses <= 2


def test_a_new_connection_that_is_lost_is_a_failure(served):
    server, transport = served("http", 0, None)
    responses = [carry(transport, server.url(number))[0] for number in range(3)]
    assert [response.cause for response in responses] == [Cause.RESET] * 3


def test_a_form_is_not_sent_twice(served):
    server, transport = served("http", 1, None)
    carry(transport, server.url(1))
    (lost,) = carry(transport, Request(server.url(2), Purpose.LOGIN, body=b"a=1"))
    assert (lost.cause, lost.detail) == (Cause.RESET, "the connection was lost before an answer")
    assert server.requests == [1 + 1]


def test_ours_a_loss_in_more_than_twenty_answers_does_not_end_keep_alive(served):
    server, transport = served("http", 30, None)
    losses = 0
    for number in range(100):
        (response,) = carry(transport, server.url(number))
        if response.cause is Cause.STALE:
            losses += 1
            (response,) = carry(transport, response.request)
    assert losses == 3
    assert len(server.requests) == 1 + 2 * losses, "after each loss one for the repetition, and one that is kept"
