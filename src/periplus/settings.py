"""The table of settings: each field below is a row; `about` of its group has its range, unit and description.

The flags, the file reader, the reference in `docs/settings.md` and a test use the table. Names are unique over all
groups, so that files and command lines need no group names. The values are frozen and passed on by group: `FetchLimits`
to the transport, `Politeness` to politeness, and so on. No package below `api` reads the environment.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from periplus.errors import UnknownSetting, UsageError
from periplus.features import features
from periplus.values import frozen, nearest

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

VERSION = "0.1.0"
SUFFIX = ".periplus"  # of the folders that hold collections
SETTINGS_FILE = "periplus.toml"  # in such a folder: its settings and rules
PRODUCT_TOKEN = "periplus"  # the name in robots.txt groups (RFC 9309, 2.2.1)
DELAY_FLOOR_S = 0.5  # the minimum delay for hosts that are not declared as the user's own


CONTROL = re.compile(r"[\x00-\x1f\x7f]")  # not allowed in settings and header lines
# a row in `about` of a group: name, optionally LOW..HIGH, unit and CHOICE|CHOICE, then the description
_ROW = re.compile(
    r"^ {8}(\w+)(?: (-?[\d.]+)\.\.([\d.]+))?(?: ([^\s|:]+))?(?: (\w+(?:\|\S+)+))?: (.+(?:\n {12}.+)*)", re.MULTILINE
)
# tables of periplus.toml, beside those of features; [[site]] and [[script]]: see `urls.parameters`; [segments]:
# `analyse.segments`
FILE_TABLES = ("settings", "site", "script", "segments", "presets")
ABOUT = "about"  # key of a preset's description


@frozen
class FetchLimits:
    """Limits of one exchange."""

    header_bytes: int = 65_536
    body_bytes: int = 10_485_760
    inflated_bytes: int = 33_554_432
    inflation_ratio: int = 200
    connect_timeout_s: float = 10.0
    first_byte_timeout_s: float = 20.0
    total_timeout_s: float = 30.0
    redirect_hops: int = 20

    about = """
        header_bytes 1024..16777216 bytes: Longest response header that is read.
        body_bytes 1024..4294967296 bytes: Longest body that is read, as it travels.
        inflated_bytes 1024..4294967296 bytes: Longest body after decompression.
        inflation_ratio 2..100000 times: Greatest inflated size per byte received, once 1 MiB is passed.
        connect_timeout_s 0.1..600 s: Longest wait for a connection.
        first_byte_timeout_s 0.1..600 s: Longest wait for the first byte of an answer.
        total_timeout_s 0.1..3600 s: Longest time for one exchange as a whole.
        redirect_hops 0..100 hops: Longest chain of redirects that is followed.
    """


@frozen
class Identity:
    """Our identity and connection."""

    user_agent: str = ""
    contact: str = ""
    proxy: str = ""
    cookie_file: str = ""
    auth: str = ""
    header: tuple[str, ...] = ()
    login: tuple[str, ...] = ()
    ca_file: str = ""
    insecure: bool = False
    allow_private: bool = False
    resolve: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    about = """
        user_agent: The User-Agent sent; empty: periplus with its version and the contact.
        contact: An address or URL where a site's owner reaches you; part of the User-Agent.
        proxy: Proxy as a URL (http://, https://, socks5h://), or a reference to it: env:NAME, file:PATH,
            keyring:NAME/USER.
        cookie_file: Netscape cookie file to start from; cookies then live as long as the run.
        auth: user:password, sent to the start's site only (HTTP basic authentication), or a reference to it:
            env:NAME, file:PATH, keyring:NAME/USER.
        header: HOST NAME: VALUE, a header line for one host (*.example.org: and below); the value may be a
            reference: env:NAME, file:PATH, keyring:NAME/USER.
        login: TOML file with a login (a form, header, token or cookies), or the NAME of [login.NAME] in
            periplus.toml; docs/sessions.md.
        ca_file: File of certificate authorities to trust instead of the system's.
        insecure: Accept certificates that do not verify; each visit is as good as unencrypted.
        allow_private: Allow loopback, private and link-local addresses (intranets, tests).
        resolve: HOST:PORT:ADDRESS instead of a name look-up, or @FILE of such lines; * for any host.
        folders: NAME.alt=/FOLDER: a local folder that is read as a host; `crawl ./folder` sets it.
    """


@frozen
class PastSource:
    """The web archive to crawl instead of the web."""

    from_archive: str = ""
    at: str = ""

    about = """
        from_archive: A web archive that answers in place of the web: a WARC, ARC or WACZ file, a folder of
            them, cdx:URL of a CDX server, or memento:URL of a TimeGate; docs/warc.md.
        at: Date of which an archive's captures are wanted (2019-05-31), the nearest; empty: the latest.
    """


@frozen
class Politeness:
    """Delays, retries and limits per host."""

    delay_s: float = 0.5
    max_crawl_delay_s: float = 120.0
    max_retry_after_s: float = 300.0
    per_host: int = 1
    per_address: int = 8
    concurrency: int = 128
    mine: tuple[str, ...] = ()
    ignore_robots: bool = False
    retries: int = 2
    retry_wait_s: float = 5.0
    recheck_wait_s: float = 30.0
    net_probe: str = "https://example.com/"
    host_strikes: int = 4

    about = """
        delay_s 0..86400 s: Shortest time between the starts of two requests to one host.
        max_crawl_delay_s 1..86400 s: Longest Crawl-delay that is obeyed; beyond it the host is left alone.
        max_retry_after_s 1..86400 s: Longest Retry-After that is waited for; beyond it the host is left for
            this run.
        per_host 1..64 requests: Requests at once to one host; more than 1 only for hosts of your own.
        per_address 1..1000000 names: Host names on one IP address that are fetched in parallel; more names
            there share the limits of one host.
        concurrency 1..2000 requests: Requests at once in one worker, over all hosts.
        mine: Hosts declared your own (`*.example.org`: all below): only they may have a delay under 0.5 s,
            per-host above 1, or robots ignored.
        ignore_robots: Do not ask for robots.txt of hosts that are your own; stored with the run.
        retries 0..20 attempts: Further attempts after a failure that may pass (5xx, timeouts, lost
            connections).
        retry_wait_s 0..3600 s: Wait before a further attempt and before a failing host is asked again; doubled
            each time.
        recheck_wait_s 0..604800 s: Shortest time between two failures before a link is called broken.
        net_probe: URL that a check requests when almost no host of other sites answers, to distinguish a broken
            connection of our own from broken links; empty: never.
        host_strikes 1..100 times: Suspensions in a row after which a host is given up for this run.
    """


@frozen
class Scope:
    """Scope of the crawl."""

    scope: str = "site"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_depth: int = -1
    sitemaps: bool = True
    wiki_links: bool = False
    url_bytes: int = 4096
    learn_parameters: bool = False
    trap_window: int = 10
    max_doubtful: int = 20_000

    about = """
        scope site|domain|prefix|any: Where links are followed: the start's host (site), its registered domain,
            below the start's path (prefix), or anywhere.
        include: Only URLs that match one of these regular expressions (docs/rules.md) are fetched, and the
            start.
        exclude: URLs that match one of these (docs/rules.md) are not fetched.
        max_depth -1..1000000 clicks: How many clicks from the start pages are fetched, and only pages that
            clicks reach; -1: no limit.
        sitemaps: Read sitemap.xml as a further source of URLs.
        wiki_links: Read [[page]] in Markdown as a link; in a local folder to the file of that name in any
            subfolder.
        url_bytes 64..65536 bytes: Longest URL that is fetched.
        learn_parameters: Learn while crawling which addresses lead to one page (session ids, orders, www,
            slashes), and fetch it once.
        trap_window 0..1000000 pages: Pages fetched from one URL pattern without new content before the pattern
            is treated as an endless series (trap); 0: no limit.
        max_doubtful 0..1000000000 pages: Pages of endless series fetched from one host when nothing else is
            left: a sample of each series, and more while they have new numbers.
    """


@frozen
class Budget:
    """Limits of a run."""

    max_pages: int = 0
    max_time_s: float = 0.0
    quantum: int = 50

    about = """
        max_pages 0..10000000000 pages: Pages to fetch in this run; 0: no limit.
        max_time_s 0..31536000 s: Longest run; 0: no limit.
        quantum 1..1000000 pages: Pages fetched from a site before the next site's turn, if several are crawled.
    """


@frozen
class Storage:
    """What is stored of a page."""

    keep_bodies: bool = True
    keep_text: bool = True
    keep_xml: bool = False
    keep_parts: bool = False
    part_sizes: str = "none"
    # 200 takes 1 % less time per page, but a kill loses four times as many pages: benchmarks/killed.py. 15, with which
    # a kill loses at most 16 pages, takes 6 % more CPU per page (3,000 pages of 8 kB, 15 runs each): keys are hashes,
    # so a commit writes rows all over the file
    commit_pages: int = 50
    commit_interval_s: float = 0.5
    workers: int = 0
    lease_s: float = 60.0
    index: bool = True

    about = """
        keep_bodies: Keep the bytes of each page.
        keep_text: Keep the text of each page.
        keep_xml: Store each page as canonical XML too; otherwise it is computed on demand.
        keep_parts: Fetch and keep what pages are shown with too (images, styles, scripts, fonts; from other
            hosts as well): for copies, archives and the pages as they were.
        part_sizes none|head: Sizes of images, styles and scripts of pages: head: a check asks for them by HEAD,
            or by GET without the body if HEAD has no length.
        commit_pages 1..10000 pages: Pages in one transaction.
        commit_interval_s 0.01..60 s: Longest time that a fetched page waits to be stored.
        workers 0..256 processes: Worker processes; 0: one per core, started as there is work for them.
        lease_s 1..3600 s: Time after which a silent worker loses its hosts.
        index: Make pages searchable while they are crawled; without, the first search does it, as after a
            check and after the refresh of a job.
    """


@frozen
class RenderSettings:
    """Rendering of pages in a browser."""

    render: str = "never"
    browser: str = ""
    browsers: int = 1
    scroll: int = 0
    script_posts: bool = False
    screenshots: bool = False

    about = """
        render never|auto|always: Render pages in a browser: never; auto: pages that are empty until a script
            fills them, and pages of the same URL pattern; always: every HTML page.
        browser: Path of Chromium or Chrome for rendering; empty: the installed one.
        browsers 1..32 browsers: Browsers at once, each of which renders up to 4 pages.
        scroll 0..1000 times: How often a rendered page is scrolled to its end, and its button that loads more
            pressed.
        script_posts: Let the scripts of a rendered page send JSON by POST to its own origin, as GraphQL reads;
            without, what they send is refused. Never within a login.
        screenshots: Keep a picture of each rendered page; images and fonts are then fetched for it.
    """


@frozen
class Auditing:
    """The user's changes to severities."""

    ignore: tuple[str, ...] = ()
    severity: tuple[str, ...] = ()

    about = """
        ignore: Issues that are not listed: CODE, or CODE REGEX for those whose page or target matches; * in
            codes.
        severity: CODE=error, warning, notice or off: another severity for a kind of issue.
    """


@frozen
class Searching:
    """Weights of hits by the position of the word; read from the collection's periplus.toml."""

    weight_title: float = 8.0
    weight_anchor: float = 4.0
    weight_heading: float = 3.0
    weight_text: float = 1.0
    weight_navigation: float = 0.1
    weight_url: float = 1.5
    weight_spelling: float = 0.5
    weight_diacritics: float = 100.0
    weight_phrase: float = 1.0
    weight_definition: float = 30.0
    weight_whole_title: float = 1000.0
    weight_rank: float = 0.3

    about = """
        weight_title 0..1000 times: Weight of a word in the title.
        weight_anchor 0..1000 times: Weight of a word in the links to the page.
        weight_heading 0..1000 times: Weight of a word in a heading.
        weight_text 0..1000 times: Weight of a word in paragraphs, lists and tables.
        weight_navigation 0..1000 times: Weight of a word in menus and other navigation.
        weight_url 0..1000 times: Weight of a word in the URL.
        weight_spelling 0..1000 times: Added for a word spelled exactly as in the query, with ending and
            diacritics.
        weight_diacritics 0..1000000 points: Added for a word with exactly these diacritics, if it occurs with
            different ones elsewhere.
        weight_phrase 0..1000 times: Further, for each word after the first, of all words one after another.
        weight_definition 0..100000 points: Added for a page that defines a name of the query; half if it is the
            last part of a longer name.
        weight_whole_title 0..1000000 points: Added if the title or main heading equals the query.
        weight_rank 0..100 times: Added to the score of the page with the greatest rank, compared with the
            lowest rank.
    """


@frozen
class Settings:
    """All settings, by group."""

    limits: FetchLimits = FetchLimits()
    identity: Identity = Identity()
    past: PastSource = PastSource()
    politeness: Politeness = Politeness()
    scope: Scope = Scope()
    budget: Budget = Budget()
    storage: Storage = Storage()
    rendering: RenderSettings = RenderSettings()
    auditing: Auditing = Auditing()
    searching: Searching = Searching()


@frozen
class SettingRow:
    """One row of the table, for the flags and the reference."""

    group: str
    name: str
    kind: Any  # type of a value: str, int, float, bool
    many: bool
    default: Any
    unit: str
    low: float | None
    high: float | None
    choices: tuple[str, ...]
    sentence: str

    @property
    def flag(self) -> str:
        """The command-line flag: the name with dashes, without the `_s` of seconds (`--delay 2`)."""
        return "--" + self.name.removesuffix("_s").replace("_", "-")


@cache
def rows() -> tuple[SettingRow, ...]:
    """The rows of the table, in the order of the groups."""
    table: list[SettingRow] = []
    for group, of_group in get_type_hints(Settings).items():
        kinds = get_type_hints(of_group)
        for name, low, high, unit, choices, sentence in _ROW.findall(of_group.about):
            default = getattr(of_group(), name)
            many = isinstance(default, tuple)
            limits = json.loads(low or "null"), json.loads(high or "null")
            words = tuple(choices.split("|")) if choices else ()
            kind = str if many else kinds[name]
            table.append(SettingRow(group, name, kind, many, default, unit, *limits, words, " ".join(sentence.split())))
    return tuple(table)


def _checked(row: SettingRow, value: Any) -> Any:
    """The value in its row's type. Raises UnknownSetting for other types and values out of range."""
    if row.many and not (isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value)):
        raise UnknownSetting(f"{row.name} must be a list of texts, not {value!r}")
    if control := CONTROL.search("".join(value) if row.many else str(value)):
        raise UnknownSetting(f"{row.name} must not contain the control character {control[0]!r}")
    if row.many:
        return tuple(value)
    if row.kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, row.kind) or (row.kind is int and isinstance(value, bool)):
        raise UnknownSetting(f"{row.name} must be of type {row.kind.__name__}, not {value!r}")
    # in this form the condition refuses NaN too
    if row.low is not None and row.high is not None and not row.low <= value <= row.high:
        raise UnknownSetting(f"{row.name} must be between {row.low} and {row.high} {row.unit}, not {value}")
    if row.choices and value not in row.choices:
        raise UnknownSetting(f"{row.name} must be one of {', '.join(row.choices)}, not {value!r}")
    return value


def settings_from(values: Mapping[str, Any], base: Settings | None = None) -> Settings:
    """Settings with these values over base (or the defaults). Raises UnknownSetting, and nothing else."""
    base = base or Settings()
    table = {row.name: row for row in rows()}
    changes: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        row = table.get(name)
        if row is None:
            raise UnknownSetting(f"there is no setting {name!r}{nearest(name, table)}; `periplus settings` lists them")
        changes.setdefault(row.group, {})[name] = _checked(row, value)
    parts = {group: dataclasses.replace(getattr(base, group), **named) for group, named in changes.items()}
    return dataclasses.replace(base, **parts)


def last_settings(stored: Mapping[str, object]) -> Settings:
    """The stored settings of a run, with masked secrets; names that no longer exist are ignored."""
    names = {row.name for row in rows()}
    return settings_from({name: value for name, value in stored.items() if name in names})


def as_values(settings: Settings) -> dict[str, Any]:
    """The settings as a flat mapping for JSON; the inverse of `settings_from`."""
    flat: dict[str, Any] = {}
    for row in rows():
        value = getattr(getattr(settings, row.group), row.name)
        flat[row.name] = list(value) if row.many else value
    return flat


def read_tables(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; none without a file. Raises UnknownSetting for invalid TOML."""
    if not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnknownSetting(f"{path} is not valid TOML: {error}") from None


def toml_document(text: str, where: str = SETTINGS_FILE) -> TOMLDocument:
    """A TOML text that can be edited: comments and order stay. Raises UsageError for invalid TOML."""
    import tomlkit  # 30 ms, only to write into a periplus.toml

    try:
        return tomlkit.parse(text)
    except tomlkit.exceptions.TOMLKitError as error:
        raise UsageError(f"{where} is not valid TOML: {error}") from None


def edited_toml(text: str, edit: Callable[[TOMLDocument], object]) -> str:
    """The text of a periplus.toml after an edit of its document. Raises UsageError."""
    document = toml_document(text)
    try:
        edit(document)
    except (AttributeError, TypeError):  # not a table
        raise UsageError("periplus.toml has a form that cannot be edited automatically: change it by hand") from None
    return document.as_string().rstrip("\n") + "\n"


def segments_written(text: str) -> str:
    """The lines of the segments tables in a periplus.toml. Raises UsageError."""
    if "segments" not in text:
        return ""
    document, segments = toml_document(""), toml_document(text).get("segments")
    if segments is not None:
        document["segments"] = segments
    return document.as_string().strip()


def rules_table(text: str, name: str, where: str, example: str, most: int) -> dict[str, Any]:
    """The named table of a TOML text, with one rule per line.

    example: a line, for the error message; most: limit of rules. Raises UsageError.
    """
    try:
        table = tomllib.loads(text).get(name, {})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where} is not valid TOML: {error}") from None
    if not isinstance(table, dict):
        raise UsageError(f"{where}: write rules below a line [{name}], such as {example}")
    if len(table) > most:
        raise UsageError(f"{where}: {len(table)} rules in [{name}]: at most {most}")
    return table


def read_values(path: Path) -> dict[str, Any]:
    """The `[settings]` table of a TOML file; empty without a file.

    Raises UnknownSetting for a file that is not TOML, and for tables that neither the core nor a feature reads.
    """
    content = read_tables(path)
    tables = (*FILE_TABLES, *(table for feature in features().values() for table in feature.file_tables))
    for name in content:
        if name in {row.name for row in rows()} and not isinstance(content[name], dict):
            raise UnknownSetting(f"{path}: {name} is outside of a table: write it below the line [settings]")
        if name not in tables:
            raise UnknownSetting(
                f"{path}: unknown table {name!r}{nearest(name, tables)}: the installed packages read the tables "
                f"{', '.join(tables)}"
            )
    values = content.get("settings", {})
    if not isinstance(values, dict):
        raise UnknownSetting(f"{path}: settings must be a table [settings]")
    if not isinstance(content.get("presets", {}), dict):
        raise UnknownSetting(f"{path}: presets must be tables [presets.NAME]")
    return values


def read_settings(path: Path, base: Settings | None = None) -> Settings:
    """The `[settings]` table of a TOML file over base. A missing file changes nothing. Raises as `read_values`."""
    try:
        values = read_values(path)
        return settings_from(values, base) if values else base or Settings()
    except UnknownSetting as error:
        raise error if str(error).startswith(str(path)) else UnknownSetting(f"{path}: {error}") from None


def read_files(paths: Iterable[Path], base: Settings | None = None) -> tuple[Settings, dict[str, str]]:
    """(settings of several files over base, later files over earlier ones; the last file that sets each setting).

    Raises as `read_values`.
    """
    settings, sources = base or Settings(), dict[str, str]()
    for path in paths:
        settings = read_settings(path, settings)
        sources.update(dict.fromkeys(read_values(path), str(path)))
    return settings, sources


@frozen
class SettingPreset:
    """A named set of settings. source: its file; empty: built in."""

    name: str
    sentence: str
    values: Mapping[str, Any]
    source: str = ""


PRESETS = (
    SettingPreset(
        "gentle",
        "For small servers, and for sites whose owners did not ask for a crawl.",
        {"delay_s": 3.0, "per_address": 1, "concurrency": 8, "retries": 1, "retry_wait_s": 30.0, "host_strikes": 2},
    ),
    SettingPreset(
        "own-site",
        "For your own site: give its host with --mine, or the consent in a form.",
        {"delay_s": 0.0, "per_host": 4},
    ),
    SettingPreset(
        "archive",
        "To get everything: large files, slow or temporarily unavailable sites, canonical XML too.",
        {
            "body_bytes": 1_073_741_824,
            "inflated_bytes": 2_147_483_648,
            "total_timeout_s": 600.0,
            "retries": 5,
            "retry_wait_s": 15.0,
            "max_retry_after_s": 3600.0,
            "host_strikes": 10,
            "keep_xml": True,
        },
    ),
    SettingPreset(
        "quick-look",
        "A first impression in two minutes: some pages near the start, without an index.",
        {"max_pages": 200, "max_depth": 3, "max_time_s": 120.0, "retries": 0, "total_timeout_s": 10.0, "index": False},
    ),
)
"""Built-in presets. A user's presets are in periplus.toml, as [presets.NAME], and override built-in
ones of the same name."""


def read_presets(paths: Iterable[Path]) -> dict[str, SettingPreset]:
    """Every preset by name: the built-in ones, then the files', each overriding the ones before.

    Raises UnknownSetting with file and preset for a table [presets.NAME] with invalid settings.
    """
    presets = {preset.name: preset for preset in PRESETS}
    for path in paths:
        for name, table in read_tables(path).get("presets", {}).items():
            where = f"{path}, preset {name!r}"
            if not isinstance(table, dict) or not isinstance(table.get(ABOUT, ""), str):
                raise UnknownSetting(f"{where}: it must be a table [presets.{name}] of settings, perhaps with {ABOUT}")
            values = {key: value for key, value in table.items() if key != ABOUT}
            try:
                settings_from(values)
            except UnknownSetting as error:
                raise UnknownSetting(f"{where}: {error}") from None
            presets[name] = SettingPreset(name, table.get(ABOUT, ""), values, str(path))
    return presets


def preset_named(name: str, presets: Mapping[str, SettingPreset]) -> SettingPreset:
    """The preset of this name. Raises UnknownSetting with the existing names."""
    if name not in presets:
        matches = nearest(name.replace("-", "_"), [other.replace("-", "_") for other in presets]).replace("_", "-")
        raise UnknownSetting(f"there is no preset {name!r}{matches}: choose among {', '.join(presets)}")
    return presets[name]
