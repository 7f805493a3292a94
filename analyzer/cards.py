"""Rule cards: dated facts on how one provider caches one model's prompts, read from ``rules/*.toml``.

A file rules the provider ids it lists (genai-prices' ids). Its vendor's models keep the file's rules when a reseller
that has no row for them serves them (``resold``); open weights do not, since their cache is their host's. A file::

    providers = [ids]   models = [globs]   except = [globs]   resold = bool
    [defaults]          RuleCard fields for all of the file's own cards
    [[change]]          since: the fields of [defaults] that changed on that day
    [[card]]            name, models, except, since, until, like, source, checked, notes, and RuleCard fields
    [latest]            glob = card name: what a model falls to that no card lists; first fit

``like`` takes another provider's card for the same model and day as the base instead of ``[defaults]``. Cards of one
name follow each other in time without gap or overlap; ``until`` is the first day the card no longer holds.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Literal

from prefixscope.analyzer.model_names import bare_name
from prefixscope.otel_plugin.providers import canonical, identify
from prefixscope.otel_plugin.record import Level

CacheKind = Literal["automatic", "explicit", "none", "unknown"]


@dataclass(frozen=True, slots=True)
class RuleCard:
    """How a provider caches one model's prompts. Sizes are tokens, times are seconds.

    A read refreshes its entry's lifetime for free everywhere, so no card says so.
    """

    provider: str  # whose rules: the first id of the file
    name: str
    cache: CacheKind = "unknown"  # "unknown": no rule is known, nothing is predicted
    keeps: Literal["prefixes", "units", "last_prompt"] = "prefixes"
    """What an automatic cache keeps of a prompt: every prefix of it; whole units, of which no part can be read; or the
    prompt of a slot, until the next one takes its place."""
    always_processed: int = 0  # tokens at the end of a prompt that are never read
    min_tokens: int = 0  # shortest prefix that is cached
    granularity: int = 1  # reads are floored to a multiple; 1 = exact
    default_ttl: str = ""  # a key of ttl_seconds
    ttl_seconds: Mapping[str, int] = field(default_factory=dict)
    max_markers: int = 0  # breakpoints that write per request, the latest ones; 0 = there are none
    lookback: int = 0  # positions searched back from a marker for an entry, the marker's own included
    lookback_unit: Literal["block", "message"] = "block"
    """``message``: only the implicit marker looks back, to where eligible messages end; explicit ones stand for
    themselves, and the end of the first developer messages is looked up too."""
    first_lookups: int = 0  # explicit markers looked up although they do not write: the first ones of the request…
    latest_lookups: int = 0  # …and the latest ones
    collapse_tool_runs: bool = False  # a run of tool calls (or of tool results) is one lookback position
    implicit_marker: bool = False  # the latest eligible message's end is a marker even if the request sets none
    charges_writes: bool = False
    deterministic: bool = False  # False: best effort, a live entry may be missed at random
    read_is_entry: bool = False  # True: a read ends where a write ended; False: anywhere in an earlier prompt
    stored_contents: bool = False  # a request may name a stored prefix that it does not hold
    switched_off_by: str = ""  # the setting whose presence in a request says that nothing is to be read
    invalidates: Mapping[str, Level] = field(default_factory=dict)
    """Setting -> first level that a change of it invalidates. A setting that is not listed invalidates nothing."""
    isolation: str = ""  # what does not share: "workspace", "organization", "account+region"…
    key_separates: bool = False  # the cache key keeps entries apart; False: it only routes
    since: date | None = None
    until: date | None = None  # exclusive
    source: str = ""
    checked: date | None = None
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """A card and, where it is not simply the one for this model, why it was taken."""

    card: RuleCard
    note: str = ""


UNKNOWN = RuleCard(provider="", name="unknown", notes="No rule card: nothing is predicted.")

_CARD_FIELDS = frozenset(f.name for f in fields(RuleCard)) - {"provider"}
_ROW_ONLY = frozenset({"models", "except", "like"})


@dataclass(frozen=True, slots=True)
class Row:
    """One ``[[card]]`` as written: ``values`` are RuleCard fields."""

    models: tuple[str, ...]
    excluded: tuple[str, ...]
    like: str
    values: Mapping[str, Any]

    def fits(self, name: str, on: date) -> bool:
        """Whether this row holds for the bare model name on that day."""
        since, until = self.values.get("since"), self.values.get("until")
        in_force = (since is None or since <= on) and (until is None or on < until)
        return in_force and _globbed(name, self.models) and not _globbed(name, self.excluded)


@dataclass(frozen=True, slots=True)
class RuleBook:
    """One rules file."""

    providers: tuple[str, ...]
    models: tuple[str, ...]
    excluded: tuple[str, ...]
    resold: bool
    defaults: Mapping[str, Any]
    changes: tuple[Mapping[str, Any], ...]
    rows: tuple[Row, ...]
    latest: Mapping[str, str]

    def owns(self, name: str) -> bool:
        """Whether the bare model name is of this file's vendor."""
        return _globbed(name, self.models) and not _globbed(name, self.excluded)

    def find(self, name: str, on: date) -> Match | None:
        """The row for the name and day, else the family's latest card with a note, else None."""
        for row in self.rows:
            if row.fits(name, on):
                return self._card(row, name, on)
        for pattern, card_name in self.latest.items():
            if fnmatchcase(name, pattern):
                newest = [row for row in self.rows if row.values["name"] == card_name][-1]
                found = self._card(newest, name, on)
                return replace(found, note=f"no card for {name}: taken from {card_name}, the latest for {pattern}")
        return None

    def _card(self, row: Row, name: str, on: date) -> Match:
        if not row.like:
            return Match(RuleCard(provider=self.providers[0], **{**self._defaults_on(on), **row.values}))
        base = books()[row.like].find(name, on) or Match(UNKNOWN, f"{row.like} has no card for {name}")
        return replace(base, card=replace(base.card, provider=self.providers[0], **row.values))

    def _defaults_on(self, on: date) -> dict[str, Any]:
        values = dict(self.defaults)
        for change in self.changes:
            if change["since"] <= on:
                values |= {key: value for key, value in change.items() if key not in {"since", "source", "checked"}}
        return values


def card_for(provider: str, model: str, on: date) -> Match:
    """The rule card for a model as sent or served, on a UTC day.

    The provider's own row wins; then the rules of the model's vendor, if it is one whose rules resellers pass on; then
    nothing is known. ``provider`` is genai-prices' id or a name telemetry gives it; "" goes by the model alone.
    """
    if provider:
        return _card_for(canonical(provider) or provider.strip().lower(), bare_name(model), on)
    found = _card_for(identify(model=model), bare_name(model), on)
    return replace(found, note="; ".join(filter(None, ("no provider was named", found.note))))


@lru_cache(maxsize=8192)
def _card_for(provider: str, name: str, on: date) -> Match:
    host = books().get(provider)
    if host and (found := host.find(name, on)):
        return found
    vendor = next((book for book in _distinct_books() if book.resold and book.owns(name)), None)
    if vendor and (found := vendor.find(name, on)):
        whose = f"{vendor.providers[0]}'s rules, as resold by {provider or 'somebody'}"
        return replace(found, note="; ".join(filter(None, (whose, found.note))))
    return Match(UNKNOWN, f"no card for {name or 'an unnamed model'} at {provider or 'an unnamed provider'}")


@cache
def books() -> Mapping[str, RuleBook]:
    """Every rules file by each of its provider ids.

    Raises:
        ValueError: two files claim one provider, or a file holds a key that no card knows.
    """
    by_provider: dict[str, RuleBook] = {}
    for file_name, text in _files():
        book = _parse(tomllib.loads(text), file_name)
        if taken := by_provider.keys() & set(book.providers):
            raise ValueError(f"rules/{file_name}: {sorted(taken)} belong to another file")
        by_provider |= dict.fromkeys(book.providers, book)
    return by_provider


def _distinct_books() -> Sequence[RuleBook]:
    return list({id(book): book for book in books().values()}.values())


def _files() -> Iterator[tuple[str, str]]:
    for entry in sorted(resources.files("prefixscope.analyzer.rules").iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".toml"):
            yield entry.name, entry.read_text(encoding="utf-8")


def _parse(data: Mapping[str, Any], file_name: str) -> RuleBook:
    return RuleBook(
        providers=tuple(data["providers"]),
        models=tuple(data["models"]),
        excluded=tuple(data.get("except", ())),
        resold=data.get("resold", False),
        defaults=_known(data.get("defaults", {}), _CARD_FIELDS, file_name),
        changes=tuple(_known(change, _CARD_FIELDS, file_name) for change in data.get("change", ())),
        rows=tuple(_row(row, file_name) for row in data["card"]),
        latest=data.get("latest", {}),
    )


def _row(row: Mapping[str, Any], file_name: str) -> Row:
    _known(row, _CARD_FIELDS | _ROW_ONLY, file_name)
    return Row(
        models=tuple(row["models"]),
        excluded=tuple(row.get("except", ())),
        like=row.get("like", ""),
        values={key: value for key, value in row.items() if key in _CARD_FIELDS},
    )


def _known(table: Mapping[str, Any], known: frozenset[str], file_name: str) -> Mapping[str, Any]:
    if strange := table.keys() - known:
        raise ValueError(f"rules/{file_name}: no card has {sorted(strange)}")
    return table


def _globbed(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
