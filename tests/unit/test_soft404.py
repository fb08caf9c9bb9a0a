"""Soft 404s: error pages with status 200."""

import pytest

from periplus.analyse.duplicates import shingles
from periplus.analyse.verdicts import HostHabits, PageProbe, looks_missing, probe_url, says_missing

MENU = (
    "Home News Products About us Contact Imprint Privacy Sitemap Help Jobs Press Partners Shop Cart Login Register "
    "Search Map Archive Blog Events Forum"
)
ERROR = (
    f"{MENU}\nWe are sorry but there is nothing here. Please use the search or go to our home page to find what you "
    "want. Thank you for your patience."
)
ARTICLE = f"{MENU}\n" + " ".join(f"sentence {number} about sailing and ports" for number in range(80))


def look(url, text, title="", h1="", final_url=""):
    return PageProbe(url, final_url or url, title, h1, text, shingles(text))


HOME = look(
    "http://h.example/",
    (
        f"{MENU}\nWelcome to our company which sells ropes and sails to all who go to sea "
        "since the year 1846 in the old port"
    ),
    "Ropes",
)
PROBE = look("http://h.example/periplus-no-such-page-x1", ERROR, "Ropes")


@pytest.mark.parametrize(
    "title",
    [
        "404 Not Found",
        "404",
        "Error 404",
        "Page not found | Ropes & Sails",
        "Ropes – Page Not Found",
        "Oops! Page not found",
        "404: Page not found",
        "Error 404 - Page not found - Example",
        "Stránka nenalezena",
        "Požadovaná stránka nebyla nalezena – Město",
        "Seite nicht gefunden",
        "Page introuvable - Mairie",
        "Página no encontrada",
        "Página não encontrada",
        "Strona nie została znaleziona",
        "Страница не найдена",
        "Сторінку не знайдено",
        "Az oldal nem található",
        "Sivua ei löydy",
        "Sayfa bulunamadı",
        "页面不存在",
        "ページが見つかりません",
        "페이지를 찾을 수 없습니다",
        "Η σελίδα δεν βρέθηκε",
        "الصفحة غير موجودة",
        "HTTP Error 404 - Not Found",
    ],
)
def test_the_title_of_an_error_page_is_recognized(title):
    assert says_missing(title)
    assert looks_missing(look("http://h.example/a/b", "Short text.", title), HostHabits())


@pytest.mark.parametrize(
    "title",
    [
        "",
        "Ropes",
        "How to make a good 404 page",
        "Peugeot 404",
        "Custom error pages: page not found and others in nginx",
        "Room 404",
        "Lost and found",
        "Status codes",
        "404 million years ago",
        "Not found in Europe: rare birds",
        "The file was not found guilty",
    ],
)
def test_ours_titles_that_only_mention_errors_are_not_recognized(title):
    assert not says_missing(title)


def test_ours_a_long_page_is_an_article_with_any_title():
    assert (
        looks_missing(
            look("http://h.example/wiki/HTTP_404", "words and more " * 300, "HTTP 404 - Encyclopedia"), HostHabits()
        )
        == ""
    )


def test_a_page_with_the_text_of_a_nonexistent_page_is_missing():
    gone = look("http://h.example/old/item", ERROR, "Ropes")
    assert "nonexistent URLs" in looks_missing(gone, HostHabits([PROBE], HOME))
    assert looks_missing(look("http://h.example/sailing", ARTICLE, "Ropes"), HostHabits([PROBE], HOME)) == ""


def test_a_short_error_page_that_repeats_the_url_is_recognized():
    def answer(url):
        return look(url, f"Nothing at {url} today", "Shop")

    habits = HostHabits([answer("http://h.example/periplus-no-such-page-x1")], HOME)
    assert looks_missing(answer("http://h.example/gone"), habits)
    assert looks_missing(look("http://h.example/cart", "Nothing in the cart today", "Shop"), habits) == ""


def test_ours_a_host_with_the_same_text_for_every_url_proves_nothing():
    shell = "Loading the application please wait " * 8
    home, probe = (
        look("http://h.example/", shell, "App"),
        look("http://h.example/periplus-no-such-page-x1", shell, "App"),
    )
    assert looks_missing(look("http://h.example/inbox", shell, "App"), HostHabits([probe], home)) == ""


def test_a_redirect_to_the_home_page_counts_only_if_a_probe_is_redirected_too():
    gone = look("http://h.example/old/item", HOME.text, "Ropes", final_url="http://h.example/")
    probe = look("http://h.example/periplus-no-such-page-x1", HOME.text, "Ropes", final_url="http://h.example/")
    assert looks_missing(gone, HostHabits((), HOME)) == ""
    assert "home page" in looks_missing(gone, HostHabits([probe], HOME))
    assert (
        looks_missing(
            look("http://h.example/index.html", HOME.text, "Ropes", final_url="http://h.example/"),
            HostHabits([probe], HOME),
        )
        == ""
    )
    assert looks_missing(look("http://h.example/about", ARTICLE, "About"), HostHabits([probe], HOME)) == ""


def test_ours_a_not_found_heading_on_a_page_about_its_url_is_no_proof():
    assert (
        looks_missing(
            look("http://h.example/search-results", "No results.", "Search results", "Not found"), HostHabits()
        )
        == ""
    )
    assert looks_missing(look("http://h.example/x/78", "No.", "Ropes", "Page not found"), HostHabits())


def test_a_probe_is_in_the_folder_of_the_page():
    assert probe_url("http://h.example/a/b.html?x=1", "k7") == "http://h.example/a/periplus-no-such-page-k7.html"
    assert probe_url("https://h.example/", "k7") == "https://h.example/periplus-no-such-page-k7"
