"""Page columns defined by the user's rules in the table [extract] of periplus.toml."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from periplus.api.page_columns import ExtraColumns
from periplus.api.page_segments import applied_rules, rules_file
from periplus.model.web import UrlId
from periplus.store.reader import CollectionReader
from periplus.values import Place, Row


def page_columns(place: Place) -> ExtraColumns | None:
    """A column `x:NAME` per extraction rule of a collection. Raises UsageError for invalid rules."""
    text = applied_rules(place)
    if "extract" not in text:  # avoids importing the parser
        return None
    from periplus_agents.extraction import columns_of, extract_rules, extract_values

    rules = extract_rules(text, str(rules_file(place)))
    columns = columns_of(rules)

    def values(reader: CollectionReader, names: Sequence[str]) -> Callable[[UrlId], Row]:
        """All None if the body is not stored."""
        asked = [rule for rule, column in zip(rules, columns, strict=True) if column.name in names]

        def values_of(page_id: UrlId) -> Row:
            as_read, body = reader.read_as(page_id), reader.body(page_id)
            return extract_values(asked, body, as_read[1], as_read[0]) if as_read and body else (None,) * len(asked)

        return values_of

    return ExtraColumns(columns, values)
