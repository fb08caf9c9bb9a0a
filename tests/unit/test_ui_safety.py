"""Security of the interface: access, response headers, forms, tokens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from interface import COMMANDS, client, token_of
from periplus.errors import UsageError
from periplus.jobs.presets import folder_name, job_request, resume_order, starts_of
from periplus.store.sqlite.job_file import folder_queue
from periplus.ui.routes import application
from periplus.ui.safety import (
    FILE_BYTES,
    FORM_BYTES,
    WRONG_ADDRESSES,
    WRONG_FORGOTTEN_S,
    WRONG_MOST_S,
    Locks,
    is_ours,
    needs_token,
    parts_of_form,
)
from periplus.ui.state import AppState, places
from stored import copied, page, stored

OURS = "127.0.0.1:8321"
POLICY = (  # exact text, since every addition allows something
    "default-src 'none'; script-src 'nonce-N'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self';"
    " frame-ancestors 'none'; base-uri 'none'"
)
DRAWING_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("safety")
    stored(
        where / "e.periplus", {"https://e.org/": page("Home", "/a"), "https://e.org/a": page("A")}, ["https://e.org/"]
    )
    return where


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path)


@pytest.mark.parametrize(
    ("host", "needed"),
    [
        ("127.0.0.1", False),
        ("::1", False),
        ("localhost", False),
        ("127.9.9.9", False),
        ("0.0.0.0", True),
        ("::", True),
        ("10.0.0.1", True),
    ],
)
def test_only_loopback_addresses_need_no_token(host, needed):
    assert needs_token(host) is needed


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8321", "localhost:8321", "[::1]:8321", "192.168.1.7", "crawls.example.org"]
)
def test_own_addresses_and_names_are_accepted(host):
    assert is_ours(host, ("crawls.example.org",))


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "[",
        "127.0.0.1@evil.example",
        "evil.example@127.0.0.1",
        "127.0.0.1:1.evil.example",
        "127.0.0.1:8321:1",
        "127.0.0.1:70000",
        "127.0.0.1/x",
        "xcrawls.example.org",
    ],
)
def test_a_foreign_host_name_is_refused(host, folder):
    assert not is_ours(host, ("crawls.example.org",))
    assert client(folder).get("/", headers={"host": host}).status_code == 421


def test_every_response_has_security_headers(folder):
    for path in (
        "/",
        "/jobs",
        "/c/e/live",
        "/c/e/t/pages",
        "/nothing",
        "/c/none/live",
        "/static/ui.js",
        "/c/e/t/pages.csv",
        "/c/e/picture.svg",
    ):
        answer = client(folder).get(path)
        policy = re.sub("'nonce-[^']+'", "'nonce-N'", answer.headers["content-security-policy"])
        assert policy == (DRAWING_POLICY if path.endswith(".svg") else POLICY), path
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "same-origin"


def test_scripts_need_a_new_nonce_for_each_response(folder):
    asking = client(folder)
    first, second = asking.get("/"), asking.get("/")
    nonces = [answer.headers["content-security-policy"].split("'nonce-")[1].split("'")[0] for answer in (first, second)]
    assert nonces[0] != nonces[1]
    assert f'nonce="{nonces[0]}"' in first.text
    assert first.text.count("<script") == 1
    assert " style=" not in first.text
    assert " on" + "click" not in first.text


def test_screens_load_nothing_from_other_hosts(folder):
    text = client(folder).get("/c/e/t/pages").text
    assert "//" not in text.replace("https://e.org", "").replace("https%3A//", "")


def test_a_form_without_a_valid_csrf_token_is_refused(folder):
    asking = client(folder)
    for form in ({}, {"csrf_token": "x" * 32}, {"csrf_token": ""}):
        assert asking.post("/new", data={"url": "example.org"} | form).status_code == 403
    assert folder_queue(folder).open_jobs() == 0


def test_a_form_from_another_origin_is_refused(folder):
    asking = client(folder)
    form = {"url": "example.org", "csrf_token": token_of(asking)}
    assert asking.post("/new", data=form, headers={"origin": "https://evil.example"}).status_code == 403
    assert asking.post("/new", data=form, headers={"origin": "null"}).status_code == 403
    assert asking.post("/new", data=form, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert (
        asking.post(
            "/new", data=form, headers={"origin": f"http://{OURS}", "sec-fetch-site": "same-origin"}
        ).status_code
        == 303
    )


def test_a_csrf_token_of_another_process_is_refused(folder):
    assert (
        client(folder).post("/new", data={"url": "example.org", "csrf_token": token_of(client(folder))}).status_code
        == 403
    )


def test_a_form_is_limited_in_size_and_must_be_valid(folder):
    asking = client(folder)
    csrf_token = token_of(asking)
    assert asking.post("/new", data={"csrf_token": csrf_token, "url": "x" * FORM_BYTES}).status_code == 413
    assert asking.post("/new", content=b"\xff\xfe=%ff").status_code == 400
    assert asking.post("/new", content="&".join(f"a{number}=1" for number in range(500))).status_code == 400


KIND = 'multipart/form-data; boundary="x-y"'


def part(head: str, content: bytes) -> bytes:
    return f"--x-y\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + content + b"\r\n"


def test_a_multipart_form_is_read_exactly(folder):
    body = part('name="words"', "žluť".encode()) + part(
        'name="f"; filename="a;b=\u010d.png"\r\nContent-Type: image/png', PARTS
    )
    body += part('name="none"; filename=""\r\nContent-Type: application/octet-stream', b"") + b"--x-y--\r\n"
    assert parts_of_form(KIND, body) == ({"words": "žluť"}, {"f": PARTS})
    assert parts_of_form(KIND, b"--x-y--\r\n") == ({}, {})


PARTS = b"\r\n\r\n\0\xff--x-y\n\r\n--x-\r"  # similar to a boundary on its own line, but none


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", part('name="a"', b"1") + b"--x-y--"),
        (KIND, part('name="a"', b"1")),
        (KIND, b"before" + part('name="a"', b"1") + b"--x-y--"),
        (KIND, part("", b"1") + b"--x-y--"),
        (KIND, part('name="a"', b"\xff") + b"--x-y--"),
        (KIND, b"--x-y\r\nname\r\n--x-y--"),
        (KIND, part('name="a"', b"1") * 300 + b"--x-y--"),
        (KIND, b""),
    ],
)
def test_an_invalid_multipart_form_is_refused(kind, body, folder):
    with pytest.raises(ValueError):
        parts_of_form(kind, body)
    answer = client(folder).post("/new", content=body, headers={"content-type": kind})
    assert answer.status_code == 400


def test_a_multipart_form_is_limited_and_needs_a_csrf_token(folder):
    asking = client(folder)
    assert asking.post("/new", files={"f": b"x" * FILE_BYTES}).status_code == 413
    assert asking.post("/new", files={"f": b"x" * FORM_BYTES}).status_code == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(method, folder):
    assert client(folder).request(method, "/").status_code == 405


def test_get_never_changes_anything(folder):
    asking = client(folder)
    for path in ("/jobs/change", "/c/e/again", "/c/e/stop", "/c/e/resume"):
        assert asking.get(path).status_code in (404, 405), path


def test_without_the_token_only_the_login_page_answers(folder):
    asking = client(folder, token="lantern-at-sea")
    for path in ("/", "/jobs", "/c/e/live", "/c/e/t/pages.csv", "/c/e/events", "/search?q=a", "/nothing"):
        answer = asking.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login"), path
    assert asking.get("/login").status_code == 200
    assert asking.post("/new", data={"url": "example.org"}).status_code == 403


def test_the_token_gives_access_with_a_strict_cookie(folder):
    asking = client(folder, token="lantern-at-sea")
    assert (
        asking.post("/login", data={"token": "wrong-one", "csrf_token": token_of(asking, "/login")}).status_code == 403
    )
    answer = asking.post("/login", data={"token": "lantern-at-sea", "csrf_token": token_of(asking, "/login")})
    cookie = answer.headers["set-cookie"].lower()
    assert answer.status_code == 303
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "lantern" not in cookie
    assert asking.get("/").status_code == 200
    assert (
        client(folder, token="another-token")
        .get("/", headers={"cookie": answer.headers["set-cookie"].split(";")[0]})
        .status_code
        == 303
    )


def visitors(folder: Path, waits: list[float], *addresses: str) -> list[TestClient]:
    """Clients from different addresses. Their waits are recorded instead of waited."""

    async def noted(seconds: float) -> None:
        waits.append(seconds)

    state = AppState(
        places([folder]), Locks("lantern-at-sea", sleep=noted, clock=lambda: 1000.0 + sum(waits)), COMMANDS
    )
    app = application(state)
    return [
        TestClient(app, base_url=f"http://{OURS}", follow_redirects=False, client=(address, 4000))
        for address in addresses
    ]


def test_the_right_token_always_works_after_any_number_of_wrong_ones(folder):
    waits: list[float] = []
    guesser, owner = visitors(folder, waits, "203.0.113.9", "203.0.113.10")
    csrf_token = token_of(guesser, "/login")
    for number in range(20):
        assert guesser.post("/login", data={"token": f"guess {number}", "csrf_token": csrf_token}).status_code == 403
    assert waits[:6] == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0]
    assert set(waits[6:]) == {WRONG_MOST_S}
    assert guesser.post("/login", data={"token": "lantern-at-sea", "csrf_token": csrf_token}).status_code == 303
    assert waits[-1] == WRONG_MOST_S, "else silence would be a no"
    assert (
        owner.post("/login", data={"token": "lantern-at-sea", "csrf_token": token_of(owner, "/login")}).status_code
        == 303
    )
    assert waits[-1] == 0.0


def test_a_wrong_token_slows_only_its_address():
    locks = Locks("lantern-at-sea", clock=lambda: 1000.0)
    assert [locks.wait_s("203.0.113.9", right=False) for _ in range(3)] == [0.0, 0.5, 1.0]
    assert [locks.wait_s("203.0.113.9", right=True) for _ in range(2)] == [2.0, 2.0]
    assert locks.wait_s("203.0.113.10", right=False) == 0.0
    assert [locks.wait_s(address, right=False) for address in ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1")] == [
        0.0,
        0.5,
        0.0,
    ]


def test_wrong_tokens_expire_and_are_limited_in_number():
    now = [1000.0]
    locks = Locks("lantern-at-sea", clock=lambda: now[0])
    assert [locks.wait_s("a", right=False) for _ in range(3)] == [0.0, 0.5, 1.0]
    now[0] += WRONG_FORGOTTEN_S + 1
    assert locks.wait_s("a", right=False) == 0.0
    for number in range(WRONG_ADDRESSES):
        locks.wait_s(f"10.0.{number >> 8}.{number & 255}", right=False)
    assert len(locks.wrong) == WRONG_ADDRESSES
    assert "a" not in locks.wrong


@pytest.mark.parametrize("token", ["", "lantern-at-se", "lantern-at-sea ", "Lantern-at-sea", "ů" * 1000])
def test_any_other_text_is_not_the_token(token):
    assert not Locks("lantern-at-sea").opens(token)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "mailto:a@b.c",
        "--allow-private",
        "http://user:pass@e.org/",
        "user@e.org",
        "e.org -o/tmp/x",
        "http://",
    ],
)
def test_only_urls_of_sites_become_starts(text):
    with pytest.raises(UsageError):
        job_request({"url": text})


@pytest.mark.parametrize("name", ["../x", "/etc", "a/b", "-o", "", ".hidden", "a..b", "x" * 200, "a\nb"])
def test_a_collection_stays_in_its_folder(name):
    with pytest.raises(UsageError):
        folder_name(name)


def test_a_form_becomes_the_equivalent_command():
    form = {
        "url": "example.org",
        "max_pages": "50",
        "delay": "2.5",
        "exclude": "/cal/",
        "include": "",
        "name": "my site",
    }
    assert (
        job_request(form).line
        == "periplus crawl https://example.org/ -o 'my site.periplus' --max-pages 50 --delay 2.5 --exclude=/cal/"
    )
    assert job_request({"url": "example.org", "preset": "check"}).order.command == (
        "check",
        "https://example.org/",
        "-c",
        "example.org.periplus",
    )
    assert job_request({"url": "a.org\nb.org", "preset": "set", "name": "two"}).order.command == (
        "crawl",
        "https://a.org/",
        "https://b.org/",
        "-o",
        "two.periplus",
    )


@pytest.mark.parametrize(
    "form",
    [
        {"delay": "0.01"},
        {"max_pages": "-1"},
        {"max_pages": "x"},
        {"exclude": "("},
        {"every": "second"},
        {"preset": "none"},
        {"url": "a.org b.org"},
    ],
)
def test_an_invalid_form_is_refused_with_a_message(form):
    with pytest.raises(UsageError):
        job_request({"url": "example.org"} | form)


def test_a_consent_applies_only_to_the_hosts_of_the_starts():
    form = {"url": "localhost:8000/a", "consent_mine": "yes", "consent_private": "yes", "delay": "0"}
    assert job_request(form).order.command[-4:] == ("--delay", "0", "--mine=localhost:8000", "--allow-private")
    assert "--allow-private" not in job_request(form | {"consent_private": "1"}).order.command
    with pytest.raises(UsageError):
        job_request({"url": "example.org", "delay": "0"})


def test_a_sentence_is_refused_as_a_url():
    with pytest.raises(UsageError, match="is not the address of a site"):
        job_request({"url": "not a url !!"})


def test_no_field_lifts_a_rule():
    form = dict.fromkeys(("allow_private", "ignore_robots", "mine", "insecure", "resolve", "per_host", "fresh"), "1")
    assert job_request({"url": "example.org"} | form).order.command == (
        "crawl",
        "https://example.org/",
        "-o",
        "example.org.periplus",
    )


def test_a_survey_is_created_immediately_and_run_by_a_job():
    planned = job_request({"url": "a.org b.org", "preset": "survey", "name": "two", "max_pages": "50"})
    assert planned.before == (
        "survey",
        "create",
        "-c",
        "two.periplus",
        "--pages",
        "50",
        "https://a.org/",
        "https://b.org/",
    )
    assert planned.order.command == ("survey", "run", "-c", "two.periplus")


def test_a_topical_crawl_is_a_chain_of_jobs():
    planned = job_request(
        {"url": "a.org", "preset": "follow", "words": "harbour, 'ship' --allow-private", "max_pages": "50"}
    )
    assert planned.order.command == ("crawl", "https://a.org/", "-o", "a.org.periplus", "--max-pages", "300")
    learn, crawl, judge = planned.order.then
    assert learn == (
        "topic",
        "train",
        "harbour-ship",
        "-c",
        "a.org.periplus",
        "-p",
        "words:harbour 'ship' --allow-private",
    )
    assert crawl == ("topic", "crawl", "harbour-ship", "https://a.org/", "-c", "a.org.periplus", "--max-pages", "50")
    assert judge == ("topic", "judge", "harbour-ship", "-c", "a.org.periplus", "--keep")
    assert len(planned.line.splitlines()) == 4
    for words in ("", " ,;", "x" * 600):
        with pytest.raises(UsageError):
            job_request({"url": "a.org", "preset": "follow", "words": words})


def test_resuming_replaces_only_the_given_limits():
    before = ("crawl", "https://e.org/", "-o", "e.periplus", "--max-pages", "10", "--exclude=/x", "--delay", "1")
    assert resume_order(before, {"max_pages": "20", "exclude": "/y"}).command == (
        "crawl", "https://e.org/", "-o", "e.periplus", "--delay", "1", "--max-pages", "20", "--exclude=/y",
    )  # fmt: skip
    assert resume_order(before, {}).command == before
    assert "--max-pages" not in resume_order(before, {"max_pages": " - "}).command


def test_starts_are_listed_once_and_in_order():
    assert starts_of("b.org a.org  https://b.org/") == ("https://b.org/", "https://a.org/")
