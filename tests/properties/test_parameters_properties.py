"""Properties of parameter rules for any URL and many rules."""

from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.urls.canonical import canonical
from periplus.urls.parameters import NO_RULES, apply, rules_of

NAMES = ("a", "b", "sid", "á", "utm_x")
PIECES = ["/", "a", "b", ".", "..", ";", "sid", "=", "&", "?", "%61", "á", "+", "1", "index.html", "x.php", "%2F"]
URLS = st.tuples(
    st.sampled_from(["http://", "https://"]),
    st.sampled_from(["www.", "", "docs."]),
    st.sampled_from(["example.org", "co.uk", "127.0.0.1", "h:8080", "[::1]"]),
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
).map(lambda parts: f"{parts[0]}{parts[1] if parts[2] == 'example.org' else ''}{parts[2]}/{parts[3]}")
SOME = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)


@st.composite
def rule_texts(draw):
    site = [f'www = "{draw(st.sampled_from(["drop", "add"]))}"', f'slash = "{draw(st.sampled_from(["drop", "add"]))}"']
    site += [
        f"ignored = {draw(SOME)}",
        f"path_ignored = {draw(SOME)}",
        "index = ['index.html', 'a']",
        'scheme = "https"',
        "sort = true",
    ]
    tables = [
        "\n".join(["[[site]]", *draw(st.lists(st.sampled_from(site), unique=True))])
        for _ in range(draw(st.integers(0, 2)))
    ]
    names = draw(st.permutations(NAMES))
    script = [f"required = ['{names[0]}']", f"optional = ['{names[1]}']", f"default = {{ '{names[2]}' = 'x &' }}"]
    script += [f"one_of = {{ '{names[3]}' = ['1', 'a'] }}", f"ignored = ['{names[4]}']", "sort = false"]
    path = draw(st.sampled_from(["/**", "/*", "/a", "/*.php"]))
    tables.append("\n".join(["[[script]]", f"path = '{path}'", *draw(st.lists(st.sampled_from(script), unique=True))]))
    return "\n".join(tables)


@given(URLS, rule_texts())
@settings(max_examples=133)
def test_applying_twice_is_applying_once_and_the_result_is_canonical(text, rules_text):
    rules = rules_of(rules_text)
    applied = apply(canonical(text), rules)
    if applied.url is None:
        assert applied.rule
        return
    assert canonical(applied.url) == applied.url
    again = apply(applied.url, rules)
    assert again.url == applied.url, (applied, again)
    assert not again.rule


@given(URLS)
def test_no_rules_change_nothing(text):
    assert apply(canonical(text), NO_RULES).url == canonical(text)


@given(st.permutations(["clanek=1", "jazyk=en", "x=2", "y"]))
def test_the_order_of_parameters_does_not_matter_to_a_script(parts):
    rules = rules_of("[[script]]\npath = '/t'\nrequired = ['clanek']\noptional = ['y']\ndefault = { jazyk = 'cz' }")
    assert apply(canonical("http://h.cz/t?" + "&".join(parts)), rules).url == "http://h.cz/t?clanek=1&jazyk=en&y"
