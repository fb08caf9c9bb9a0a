"""The contract of `model.ports.Transport`, and the results of the real transport for each network fault."""

from __future__ import annotations

import gc
import itertools
import math
import time

import pytest

from contracts.wire_tools import carry, talker
from fakes import FakeClock, FakeTransport, Scripted
from periplus.acquire import transport as wire
from periplus.acquire.clock import SystemClock
from periplus.acquire.transport import ACCEPT, ACCEPT_ENCODING, header_of, resolve_entries, user_agent
from periplus.errors import UsageError
from periplus.model.visit import Cause, Cut, Request
from periplus.settings import FetchLimits, Identity

# every transport


class RealRig:
    def __init__(self, server, opened):
        self.good, self.slow, self.gone = (
            server.url("a.test", path) for path in ("/good.html", "/slow", "/empty-reply")
        )
        self.transport, self.elapsed = opened(server.resolve), time.monotonic


class FakeRig:
    def __init__(self, server, opened):
        self.good, self.slow, self.gone = (f"http://a.test/{path}" for path in ("good", "slow", "gone"))
        script = {
            self.good: Scripted(b"<h1>Good</h1>"),
            self.slow: Scripted(b"x", took_s=0.2),
            self.gone: Scripted(cause=Cause.RESET),
        }
        clock = FakeClock()
        self.transport, self.elapsed = FakeTransport(clock, script), clock.monotonic


@pytest.fixture(params=[RealRig, FakeRig], ids=["curl", "fake"])
def rig(request, server, opened):
    return request.param(server, opened)


def test_an_answer_is_a_response(rig):
    (response,) = carry(rig.transport, rig.good)
    assert (response.request, response.status, response.cut, response.cause, response.detail) == (
        Request(rig.good),
        200,
        Cut.NONE,
        None,
        "",
    )
    assert response.headers.get("content-type").startswith("text/html")
    assert response.body
    assert response.address
    assert response.started > 100_000
    assert 0 < response.first_byte_s <= response.took_s


def test_a_failure_is_a_response_too(rig):
    (response,) = carry(rig.transport, rig.gone)
    assert (response.status, response.cause, response.body) == (0, Cause.RESET, b"")
    assert response.detail
    assert not response.address


def test_each_answer_is_returned_once_when_it_ends(rig):
    rig.transport.start(Request(rig.slow))
    rig.transport.start(Request(rig.good))
    assert rig.transport.in_flight == 2
    order = []
    while rig.transport.in_flight:
        order += [response.request.url for response in rig.transport.wait(5.0)]
    assert order == [rig.good, rig.slow]
    assert rig.transport.wait(0.0) == ()


def test_waiting_has_a_time_limit_also_without_open_requests(rig):
    start = rig.elapsed()
    assert rig.transport.wait(0.05) == ()
    assert rig.elapsed() - start >= 0.045
    rig.transport.start(Request(rig.slow))
    assert rig.transport.wait(0.0) == ()
    assert rig.transport.in_flight == 1


@pytest.mark.parametrize("second", [b"/b", b"//c.test/"])
def test_ours_the_first_of_two_locations_is_taken(opened, second):
    head = b"HTTP/1.1 301 Moved\r\nContent-Length: 0\r\nLocation: /a\r\nLocation: %s\r\n\r\n" % second
    with talker(head, "127.0.0.1") as served:
        (response,) = carry(opened(()), f"http://127.0.0.1:{served.port}/")
    assert (response.status, response.cause, response.headers.get("location")) == (301, None, "/a")


def test_a_hundred_at_once(rig):
    requests = [Request(rig.slow if at % 2 else rig.good, attempt=at) for at in range(100)]
    start = rig.elapsed()
    responses = carry(rig.transport, *requests)
    assert [response.request for response in responses] == requests
    assert {response.cause for response in responses} == {None}
    assert rig.elapsed() - start < 20.0


def test_closing_ends_open_requests(rig):
    for url in (rig.slow, rig.good, rig.gone):
        rig.transport.start(Request(url))
    rig.transport.wait(0.0)
    rig.transport.close()
    gc.collect()


# bounds


def test_a_header_is_read_to_its_limit(ask):
    for path in ("/long-header", "/many-headers"):
        response = ask(path, FetchLimits(header_bytes=4096))
        assert (response.cause, response.body) == (Cause.HEADER_LIMIT, b"")
    assert ask("/headers", FetchLimits(header_bytes=4096)).status == 200


def test_ours_the_header_limit_is_ours_and_not_libcurls(opened):
    """libcurl itself stops at about 100 kB with the same cause, so the test uses a header between the two limits."""
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
        + b"".join(b"X-%d: %s\r\n" % (number, b"x" * 90) for number in range(100))
        + b"\r\nok"
    )
    with talker(head, "127.0.0.1") as served:
        url = f"http://127.0.0.1:{served.port}/"
        (over,) = carry(opened((), FetchLimits(header_bytes=len(head) - 3)), url)
        (within,) = carry(opened((), FetchLimits(header_bytes=len(head) - 2)), url)
    assert (over.cause, over.status, over.body) == (Cause.HEADER_LIMIT, 200, b"")
    assert (within.cause, within.status, within.body) == (None, 200, b"ok")


def test_a_body_is_read_to_its_limit_exactly(ask):
    whole = bytes(range(256)) * 400
    for size, cut in ((len(whole), Cut.NONE), (len(whole) - 1, Cut.BODY_LIMIT), (2000, Cut.BODY_LIMIT)):
        response = ask("/big", FetchLimits(body_bytes=size))
        assert (response.body, response.cut, response.cause) == (whole[:size], cut, None)
    assert len(ask("/flood", FetchLimits(body_bytes=100_000)).body) == 100_000


def test_a_missing_first_byte_ends_the_exchange(ask):
    response = ask("/silent", FetchLimits(first_byte_timeout_s=0.2, total_timeout_s=600.0))
    assert (response.cause, response.status) == (Cause.FIRST_BYTE, 0)
    assert "0.2 s" in response.detail


def test_the_total_time_is_limited_and_the_received_part_is_kept(ask):
    response = ask("/drip", FetchLimits(total_timeout_s=2.0))
    assert (response.status, response.cut, response.cause) == (200, Cut.TIME_LIMIT, None)
    assert b"Drip" in response.body
    silent = ask("/silent", FetchLimits(total_timeout_s=0.3, first_byte_timeout_s=5.0))
    assert (silent.cause, silent.status) == (Cause.TIMEOUT, 0)


def test_an_incomplete_header_is_a_failure(ask):
    assert ask("/late-header", FetchLimits(total_timeout_s=0.3)).cause is Cause.TIMEOUT
    assert (ask("/half-header").cause, ask("/half-header").detail) == (Cause.RESET, "the header ended early")


def test_a_body_that_is_not_parsed_is_fetched_only_in_part(server, ask):
    def reads(media_type):
        return media_type == "text/html"

    for path in ("/film", "/long-film"):
        response = ask(path, reads=reads)
        assert (response.status, response.body, response.cut, response.cause) == (200, b"", Cut.NOT_WANTED, None)
        assert response.headers.get("content-type") == "video/mp4"
    assert ask("/good.html", reads=reads).body
    assert ask("/film").body


def test_a_body_is_left_if_its_first_bytes_have_an_unsupported_type(ask):
    begun = []

    def reads_start(media_type, start):
        begun.append((media_type, len(start) > 0))
        return False

    for path in ("/film", "/long-film"):
        response = ask(path, reads_start=reads_start)
        assert (response.status, response.body, response.cut, response.cause) == (200, b"", Cut.NOT_WANTED, None)
    assert begun == [("video/mp4", True)] * 2


# misfortunes


@pytest.mark.parametrize(
    ("path", "cut", "cause"),
    [
        ("/truncated", Cut.SHORT, None),
        ("/truncated-chunks", Cut.SHORT, None),
        ("/reset-within", Cut.SHORT, None),
        ("/reset", Cut.NONE, Cause.RESET),
        ("/empty-reply", Cut.NONE, Cause.RESET),
        ("/not-http", Cut.NONE, Cause.NOT_HTTP),
    ],
)
def test_each_fault_has_its_cause(ask, path, cut, cause):
    response = ask(path)
    assert (response.cut, response.cause) == (cut, cause)
    assert bool(response.body) == (cause is None)
    assert bool(response.detail) == (cause is not None)


def test_a_missing_name_and_a_closed_port(server, opened):
    with talker(b"") as nobody:
        port = nobody.port
    transport = opened((f"a.test:{port}:127.0.0.1",))
    refused, nameless = carry(transport, f"http://a.test:{port}/", "http://no-such-name.invalid/")
    assert (refused.cause, nameless.cause) == (Cause.CONNECT, Cause.NAME)


def test_the_transport_works_after_any_fault(server, opened):
    """Handles are reused: an aborted exchange must not affect the next."""
    transport = opened(
        server.resolve, FetchLimits(header_bytes=4096, body_bytes=50_000, first_byte_timeout_s=0.2, total_timeout_s=0.6)
    )
    good = server.url("a.test", "/good.html")
    (plain,) = carry(transport, good)
    for path in (
        "/flood",
        "/long-header",
        "/silent",
        "/drip",
        "/truncated",
        "/reset",
        "/not-http",
        "/empty-reply",
        "/late-header",
    ):
        carry(transport, server.url("a.test", path))
        (again,) = carry(transport, good)
        assert (again.status, again.body, again.cut, again.cause, again.detail) == (
            200,
            plain.body,
            Cut.NONE,
            None,
            "",
        ), path
    mixed = carry(
        transport,
        *[
            server.url("a.test", path)
            for path in ("/good.html", "/silent", "/flood", "/reset", "/good.html?2", "/not-http")
        ],
    )
    assert [response.cause for response in mixed] == [None, Cause.FIRST_BYTE, None, Cause.RESET, None, Cause.NOT_HTTP]


def test_one_exchange_is_one_request_even_if_a_kept_connection_dies(server, opened):
    """libcurl would ask again at once, on a new connection: the host's delay would not hold."""
    for path in ("/reset", "/empty-reply"):
        transport, before = opened(server.resolve), server.log.count(path)
        answers = [carry(transport, server.url("a.test", asked))[0] for asked in ("/good.html", path, path)]
        assert [answer.cause for answer in answers] == [None, Cause.STALE, Cause.RESET]
        assert answers[-1].detail == "the connection was lost before an answer"
        assert server.log.count(path) == before + 2


def test_headers_come_in_order_with_names_in_lower_case_and_latin_1_values(ask):
    headers = ask("/headers").headers
    assert headers.all("x-twice") == ["1", "2"]
    assert headers.get("x-latin") == "café"


def test_early_hints_are_not_the_answer(ask):
    response = ask("/continue")
    assert (response.status, response.body, response.headers.get("link")) == (200, b"ok", "")


def test_statuses_outside_the_standard_are_handed_on(ask):
    assert ask("/odd-status").status == 999


def test_redirects_are_answers(server, ask):
    response = ask("/chain")
    assert (response.status, response.headers.get("location")) == (302, "/chain/1")


# what is sent


def entry(server, path):
    return (
        server.log.of("a.test")[-1]
        if path is None
        else [one for one in server.log.of("a.test") if one.target == path][-1]
    )


def test_a_kept_connection_is_used_again(server, opened):
    transport = opened(server.resolve)
    for at in range(5):
        carry(transport, server.url("a.test", f"/good.html?{at}"))
    assert len({entry(server, f"/good.html?{at}").connection for at in range(5)}) == 1


def test_paths_are_sent_as_they_are(server, opened):
    carry(opened(server.resolve), server.url("a.test", "/a/../b//c?x=%7e&y=|"))
    assert server.log.count("/a/../b//c?x=%7e&y=|")


def test_validators_make_a_conditional_request_and_only_that_one(server, opened):
    transport, url = opened(server.resolve), server.url("a.test", "/good.html")
    (first,) = carry(transport, url)
    etag, changed = first.headers.get("etag"), first.headers.get("last-modified")
    assert carry(transport, Request(url, etag=etag))[0].status == 304
    assert carry(transport, Request(url, last_modified=changed))[0].status == 304
    assert carry(transport, Request(url, etag='"other"', last_modified=changed))[0].status == 200
    assert carry(transport, url)[0].status == 200
    assert not {"if-none-match", "if-modified-since"} & dict(entry(server, "/good.html").headers).keys()
    assert carry(transport, Request(url, etag='"caf\xe9"', last_modified="\xe9t\xe9"))[0].status == 200, (
        "a server wrote such validators"
    )


@pytest.mark.parametrize("sign", ["\r\n", "\n", "\r", "\0", "\x1f", "\x7f"])
def test_a_control_character_in_a_header_line_is_a_bug_and_is_not_sent(server, opened, sign):
    url, before = server.url("a.test", "/good.html"), server.log.count("/good.html")
    with pytest.raises(ValueError, match="control character"):
        opened(server.resolve).start(Request(url, fields=(f"X-A: a{sign}X-Evil: 1",)))
    for name in ("user_agent", "contact"):
        with pytest.raises(ValueError, match="control character"):
            opened(server.resolve, **{name: f"a{sign}X-Evil: 1"}).start(Request(url))
    assert server.log.count("/good.html") == before
    # values from servers or foreign collections are outcomes, not bugs
    (answer,) = carry(opened(server.resolve), Request(url, etag=f'"a{sign}X-Evil: 1"', last_modified=f"a{sign}b"))
    assert answer.status == 200
    assert not {"x-evil", "if-none-match", "if-modified-since"} & dict(entry(server, "/good.html").headers).keys()


def test_the_password_is_sent_to_its_hosts_only(server, opened):
    transport = opened(server.resolve, auth="pilot:lantern", auth_hosts=frozenset({f"a.test:{server.port}"}))
    (known, other) = carry(transport, server.url("a.test", "/login"), server.url("b.test", "/"))
    assert (known.status, other.status) == (200, 200)
    carry(transport, server.url("b.test", "/again"))
    assert all("authorization" not in dict(one.headers) for one in server.log.of("b.test"))
    assert carry(opened(server.resolve), server.url("a.test", "/login"))[0].status == 401


def test_a_header_of_a_host_is_sent_to_it_only(server, opened):
    transport = opened(server.resolve, header=("a.test Accept: text/plain", "*.b.test X-Other: 1"))
    carry(transport, server.url("a.test", "/good.html?own"), server.url("b.test", "/?own"))
    carry(transport, server.url("a.test", "/good.html?twice"))
    for target in ("/good.html?own", "/good.html?twice"):
        sent = dict(entry(server, target).headers)
        assert (sent["accept"], sent["accept-encoding"]) == ("text/plain", ACCEPT_ENCODING)
    assert dict(server.log.of("b.test")[-1].headers)["accept"] == ACCEPT
    for faulty in ("a.test", "a.test X-A", "a.test Host: b.test", "a.test X A: 1", "a.test X-A: \u017e"):
        with pytest.raises(UsageError, match="header"):
            header_of(faulty)


def test_cookies_are_read_from_a_file_and_kept_by_the_transport(server, opened, tmp_path):
    jar = tmp_path / "cookies.txt"
    jar.write_text("# Netscape HTTP Cookie File\na.test\tFALSE\t/\tFALSE\t0\tsession\told\n")
    transport = opened(server.resolve, cookie_file=str(jar))

    def sent(path):
        carry(transport, *[server.url("a.test", f"{path}{at}") for at in range(6)])  # six handles, some of them new
        return {dict(entry(server, f"{path}{at}").headers).get("cookie") for at in range(6)}

    carry(transport, server.url("a.test", "/good.html?first"))
    assert dict(entry(server, "/good.html?first").headers)["cookie"] == "session=old"
    carry(transport, server.url("a.test", "/cookie"))
    assert sent("/good.html?c") == {"session=new"}
    carry(transport, Request(server.url("a.test", "/good.html?redirected"), fields=("Cookie: session=new",)))
    assert dict(entry(server, "/good.html?redirected").headers)["cookie"] == "session=new", (
        "what a redirect set is in the jar: sent once"
    )
    carry(opened(server.resolve), Request(server.url("a.test", "/good.html?alone"), fields=("Cookie: seen=1",)))
    assert dict(entry(server, "/good.html?alone").headers)["cookie"] == "seen=1"
    carry(opened(server.resolve), server.url("a.test", "/cookie"), server.url("a.test", "/good.html?none"))
    assert "cookie" not in dict(entry(server, "/good.html?none").headers)


def test_nothing_is_sent_to_a_blocked_address(server, opened):
    """Also over a kept connection."""
    asked, may = [], [True, False, True]

    def admits(host, address):
        asked.append((host, address))
        return may[len(asked) - 1]

    transport, url = opened(server.resolve, admits=admits), server.url("a.test", "/good.html?turns")
    answers = [carry(transport, url)[0] for _ in range(3)]
    assert [(answer.status, answer.cause) for answer in answers] == [(200, None), (0, Cause.CANCELLED), (200, None)]
    assert asked == [(f"a.test:{server.port}", "127.0.0.1")] * 3
    assert server.log.targets("a.test").count("/good.html?turns") == 2


def test_the_user_agent_identifies_the_crawler(server, ask):
    assert user_agent(Identity(contact="ops@a.test")).endswith(" (+ops@a.test)")
    ask("/good.html?agent", user_agent="pilot/1")
    assert entry(server, "/good.html?agent").user_agent == "pilot/1"


# names and addresses


def test_names_are_resolved_by_entries_wildcards_and_files(server, opened, tmp_path):
    lines = tmp_path / "hosts"
    lines.write_text(f"b.test:{server.port}:127.0.0.1\na.test:{server.port}:127.0.0.1\n")
    for resolve in ((f"a.test:{server.port}:127.0.0.1",), (f"*:{server.port}:127.0.0.1",), (f"@{lines}",)):
        assert carry(opened(resolve), server.url("a.test", "/good.html"))[0].status == 200


@pytest.mark.parametrize("entry", ["a.test", "a.test:80", "@/no/such/file"])
def test_invalid_entries_are_refused(entry):
    with pytest.raises(UsageError):
        resolve_entries([entry])


SPELLINGS = (
    "a.test localhost 127.0.0.1 2130706433 0x7f000001 0177.0.0.1 127.1 0.0.0.0 [::1] [::] [::ffff:127.0.0.1] "
    "[::ffff:7f00:1] 10.0.0.1 192.168.1.1"
)
SPECIAL = (
    "169.254.169.254 168.63.129.16 192.0.0.192 100.64.0.1 [fe80::1] [fd00::1] [64:ff9b::7f00:1] "
    "[64:ff9b:1::7f00:1] [::127.0.0.1]"
)


@pytest.mark.parametrize("host", [*SPELLINGS.split(), *SPECIAL.split()])
def test_private_addresses_are_refused_before_a_packet_is_sent(server, opened, host):
    before = len(server.log)
    (response,) = carry(
        opened(server.resolve[:1] if host == "a.test" else (), allow_private=False),
        f"http://{host}:{server.port}/good.html",
    )
    # without IPv6 this code may not run: see unit/test_addresses.py
    if response.cause is not Cause.PRIVATE and ":" in host:
        assert response.cause is Cause.CONNECT
    else:
        assert response.cause is Cause.PRIVATE
    assert (response.status, response.body) == (0, b"")
    assert len(server.log) == before


def test_a_refused_address_is_reported_with_its_network(opened):
    for address, network in (("127.0.0.1", "loopback"), ("169.254.169.254", "cloud metadata")):
        (response,) = carry(opened((f"a.test:80:{address}",), allow_private=False), "http://a.test/")
        assert response.detail == f"{address}: {network}"


def test_a_name_with_private_and_public_addresses_is_requested_at_the_public_one(opened, monkeypatch):
    monkeypatch.setattr(wire, "special_network", lambda address: "loopback" if address == "127.0.0.1" else "")
    with talker(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "127.0.0.2") as public:
        (response,) = carry(
            opened((f"a.test:{public.port}:127.0.0.1,127.0.0.2",), allow_private=False),
            (f"http://a.test:{public.port}/"),
        )
    assert (response.cause, response.body, response.address) == (None, b"ok", "127.0.0.2")


@pytest.mark.parametrize("asked_before", [[], ["/good.html?before"]], ids=["new connection", "open connection"])
def test_a_request_withdrawn_before_sending_is_not_sent(server, opened, asked_before):
    transport = opened(server.resolve)
    for target in asked_before:
        assert carry(transport, server.url("a.test", target))[0].status == 200
    target = f"/good.html?withdrawn-{len(asked_before)}"
    unsent, other = (Request(server.url(host, target)) for host in ("a.test", "b.test"))
    transport.start(unsent)
    transport.start(other)
    transport.withdraw({unsent})
    responses = {}
    while len(responses) < 2:
        responses |= {response.request: response for response in transport.wait(60.0)}
    assert responses[unsent].cause is Cause.CANCELLED and responses[other].cause is None
    transport.withdraw({unsent})
    assert carry(transport, server.url("a.test", "/good.html?after"))[0].status == 200
    assert [entry.host for entry in server.log if entry.target == target] == ["b.test"]


@pytest.mark.parametrize("asked_before", [[], ["/good.html?before"]], ids=["new connection", "open connection"])
@pytest.mark.parametrize("stopped_in", ["between start and wait", "while connecting"])
def test_a_stopped_process_does_not_send_late_requests(server, opened, asked_before, stopped_in):
    """Another worker may have leased its host by then.

    The process is stopped for half a minute at any time before the first byte is sent.
    """
    patient = FetchLimits(connect_timeout_s=60.0, first_byte_timeout_s=60.0, total_timeout_s=60.0)
    real, looks, stops_at = SystemClock(), itertools.count(), math.inf

    class Stopped:
        now = staticmethod(real.now)

        @staticmethod
        def monotonic():
            return real.monotonic() + 30.0 * (next(looks) >= stops_at)

    transport = opened(server.resolve, limits=patient, clock=Stopped())
    for target in asked_before:
        assert carry(transport, server.url("a.test", target))[0].status == 200
    transport.start(Request(server.url("a.test", "/good.html?late")), real.monotonic() + 10.0)
    stops_at = next(looks) + {"between start and wait": 1, "while connecting": 3}[stopped_in]
    (late,) = transport.wait(60.0)
    assert (late.cause, late.status, late.detail) == (Cause.TIMEOUT, 0, "not sent in time")
    assert carry(transport, server.url("a.test", "/good.html?after"))[0].status == 200
    assert server.log.count("/good.html?late") == 0
