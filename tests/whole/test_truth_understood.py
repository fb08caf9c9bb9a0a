"""`document` parses the pages of the synthetic web correctly: all links with their attributes, and titles."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

import pytest

from periplus.document.understand import understand
from periplus.model.visit import Fetched, Headers
from periplus.model.web import Url
from periplus.urls.canonical import identity
from testweb import Server, recipes, serve


def fetched(server: Server, url: str) -> Fetched:
    """The page as sent by its server, without redirects and compression."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request("GET", url.partition(place.netloc)[2], headers={"Host": place.netloc})
        answer = connection.getresponse()
        return Fetched(
            answer.status, Headers(tuple((name.lower(), value) for name, value in answer.getheaders())), answer.read()
        )
    finally:
        connection.close()


@pytest.mark.parametrize("recipe", ["graph pages=40", "linked", "page-rules", "kinds", "identity", "mixed"])
def test_every_link_is_found_with_kind_place_anchor_and_number(recipe):
    with serve(recipes.web_of(recipe)) as server:
        for url, links in server.truth.links.items():
            document = understand(Url(url), fetched(server, url))
            apart = first_spellings(links)
            assert set(document.links) == apart, url
            assert len(document.links) == len(apart), url


def first_spellings(links):
    """Links with spellings of a URL (RFC 3986, 6.2.2) merged: the first spelling with the sum of their numbers."""
    firsts = {}
    for link in links:
        key = (identity(Url(link.target)), link.kind, link.position, link.nofollow)
        first = firsts.get(key)
        firsts[key] = link if first is None else first._replace(times=first.times + link.times)
    return set(firsts.values())


@pytest.mark.parametrize("recipe", ["graph pages=20", "page-rules"])
def test_titles_and_texts_are_as_written(recipe):
    with serve(recipes.web_of(recipe)) as server:
        for url, page in server.truth.pages.items():
            document = understand(Url(url), fetched(server, url))
            assert (document.title, document.language) == (page.title, page.language), url
            assert all(paragraph in document.text for paragraph in page.text.split("\n")), url
