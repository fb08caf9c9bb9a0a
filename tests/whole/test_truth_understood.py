"""What `document` reads in the pages of the synthetic web is what their makers wrote: every link with all its traits, and the titles."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

import pytest

from periplus.document.understand import understand
from periplus.model.visit import Fetched, Headers
from periplus.model.web import Url
from testweb import Server, recipes, serve


def fetched(server: Server, url: str) -> Fetched:
    """The page as its server sends it; no redirects, no compression."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        connection.request("GET", url.partition(place.netloc)[2], headers={"Host": place.netloc})
        answer = connection.getresponse()
        return Fetched(answer.status, Headers(tuple((name.lower(), value) for name, value in answer.getheaders())), answer.read())
    finally:
        connection.close()


@pytest.mark.parametrize("recipe", ["graph pages=40", "linked", "page-rules", "kinds", "identity", "mixed"])
def test_every_link_is_found_with_kind_place_anchor_and_number(recipe):
    with serve(recipes.web_of(recipe)) as server:
        for url, links in server.truth.links.items():
            document = understand(Url(url), fetched(server, url))
            assert set(document.links) == set(links), url
            assert len(document.links) == len(links), url


@pytest.mark.parametrize("recipe", ["graph pages=20", "page-rules"])
def test_titles_and_texts_are_those_written(recipe):
    with serve(recipes.web_of(recipe)) as server:
        for url, page in server.truth.pages.items():
            document = understand(Url(url), fetched(server, url))
            assert (document.title, document.language) == (page.title, page.language), url
            assert all(paragraph in document.text for paragraph in page.text.split("\n")), url
