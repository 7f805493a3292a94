"""What a token costs: USD per token for each bucket of a call, exact, at the call's own time.

Prices are genai-prices' (pydantic, MIT) by provider, model, timestamp, tier and input size, plus the dated overlay. A
model without a price is unpriced, never free. Every set of rates says where it comes from and what was assumed.

A call whose input crosses a size threshold pays the higher rate for all of its tokens, output included, so rates depend
on ``input_total`` (all input tokens of the call: uncached + read + written).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from prefixscope.analyzer.model_names import bare_name
from prefixscope.analyzer.prices.overlay import Overlay, overlay
from prefixscope.otel_plugin.providers import canonical, identify
from prefixscope.otel_plugin.record import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice

BUCKETS: Final = ("uncached", "read", "write_5m", "write_30m", "write_1h", "write_12h", "write_unknown", "output")

# Bucket -> the list's price keys, most specific first; the last resort of all input buckets is the plain input price.
_PRICE_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "uncached": ("input_mtok",),
    "read": ("cache_read_mtok", "input_mtok"),
    "write_5m": ("cache_write_5m_mtok", "cache_write_mtok", "input_mtok"),
    "write_30m": ("cache_write_mtok", "input_mtok"),
    "write_1h": ("cache_write_1h_mtok", "cache_write_mtok", "input_mtok"),
    "write_12h": ("cache_write_mtok", "input_mtok"),
    "write_unknown": ("cache_write_mtok", "input_mtok"),  # the list's plain write price is that of the default TTL
    "output": ("output_mtok",),
}
_LISTED_SEPARATELY: Final[Mapping[str, str]] = {"read": "cache_read_mtok", "write_1h": "cache_write_1h_mtok"}
_PLAIN: Final = frozenset({"", "default", "standard", "auto", "standard_only", "on_demand", "global", "not_available"})
_TOKENS_PER_UNIT: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Rates:
    """USD per token, by bucket, and where the figures come from.

    ``source`` names the price list, its entry and, after semicolons, each assumption; ``as_of`` is the day the list was
    last compared with the vendors' pages.
    """

    uncached: Decimal
    read: Decimal
    write_5m: Decimal
    write_30m: Decimal
    write_1h: Decimal
    write_12h: Decimal
    write_unknown: Decimal
    output: Decimal
    source: str
    as_of: date

    def cost(self, usage: Usage) -> Decimal:
        """USD for one call's billed tokens. Exact: a sum of products of decimals and integers."""
        return sum((getattr(self, bucket) * getattr(usage, bucket) for bucket in BUCKETS), Decimal(0))

    def times(self, factor: Decimal, note: str) -> "Rates":
        """These rates multiplied, with the reason added to the source."""
        scaled: dict[str, Any] = {bucket: getattr(self, bucket) * factor for bucket in BUCKETS}
        return replace(self, **scaled, source=f"{self.source}; {note}")


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """A model's entry in the price list and how it was found. Entries are cached, so they compare by identity."""

    provider: str  # whose list was asked
    name: str  # the model's name there
    own: bool  # False: that list has none and fell back on the vendor's, whose price variants do not apply
    listed: "ModelInfo"  # genai-prices' record: dated prices, variants, size thresholds
    note: str

    def price(self, at: datetime, context: Mapping[str, str]) -> "ModelPrice":
        """The list's prices at a moment under a price_context."""
        return self.listed.get_prices(at, context if self.own else None)

    def has_variant(self, context: Mapping[str, str], at: datetime) -> bool:
        """Whether the list has a price of its own for this condition at that moment."""
        return self.own and any(
            variant.when == context and (variant.constraint is None or variant.constraint.active(at))
            for variant in self.listed.price_variants or ()
        )


class PriceBook:
    """genai-prices and the overlay behind one question: what does a token of this call cost."""

    def __init__(self, rows: Overlay | None = None) -> None:
        """Uses the packaged overlay unless given another."""
        self.overlay = rows or overlay()
        self._list = f"genai-prices {version('genai-prices')}"
        self._as_of = self.overlay.compared_on(version("genai-prices"))
        self.entry = lru_cache(maxsize=65536)(self._entry)

    def rates(  # noqa: PLR0913 - what a price depends on
        self,
        provider: str,
        model: str,
        at: datetime,
        *,
        tier: str = "",
        speed: str = "",
        geo: str = "",
        input_total: int = 0,
    ) -> Rates | None:
        """The rates of one call, or None if its model has no price.

        Args:
            provider: genai-prices' id or a name telemetry gives it; "" goes by the model alone.
            model: as served, or as requested.
            at: when the call was sent; naive means UTC.
            tier: the provider's service tier: flex, priority, batch…
            speed: Anthropic's ``speed``.
            geo: Anthropic's ``inference_geo``.
            input_total: all input tokens of the call, which decides the context band.
        """
        entry = self.entry(provider, model)
        if entry is None:
            return None
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        served = {"tier": tier.lower(), "speed": speed.lower(), "geo": geo.lower()}
        price = entry.price(self._off_peak(entry, at), _context(served))
        rates = self._listed(entry, price, input_total)
        if rates is None:
            return None
        rates = self._with_overlay_rates(rates, entry, price, at.date())
        rates = self._with_conditions(rates, entry, served, at)
        return self._with_peak(rates, entry, at)

    def _entry(self, provider: str, model: str) -> Entry | None:
        asked = canonical(provider) or provider.strip().lower() or identify(model=model)
        if asked in self.overlay.self_hosted or not model:
            return None
        if _has_list(asked):
            return self._in_list(asked, model, "")
        vendor = identify(model=model)
        return self._in_list(vendor, model, f"the vendor's price: {asked} has no list") if vendor else None

    def _in_list(self, provider: str, model: str, note: str) -> Entry | None:
        for name in dict.fromkeys((model, model.rsplit("/", 1)[-1], bare_name(model))):
            if entry := _look_up(provider, name, note):
                return entry
        alias = self.overlay.alias(provider, model)
        return _look_up(provider, alias, _joined(note, f"priced as {alias}")) if alias else None

    def _listed(self, entry: Entry, price: "ModelPrice", input_total: int) -> Rates | None:
        found = {bucket: _per_token(price, bucket, input_total) for bucket in BUCKETS}
        if found["uncached"] is None:
            return None
        source = _joined(
            f"{self._list} {entry.provider}/{entry.listed.id}",
            entry.note,
            "" if entry.own else f"the vendor's price: {entry.provider} lists none",
            "no price for output is listed" if found["output"] is None else "",
        )
        known = {bucket: Decimal(0) if value is None else value for bucket, value in found.items()}
        return Rates(**known, source=source, as_of=self._as_of)

    def _with_overlay_rates(self, rates: Rates, entry: Entry, price: "ModelPrice", on: date) -> Rates:
        unlisted = {bucket for bucket, key in _LISTED_SEPARATELY.items() if getattr(price, key) is None}
        for row in self.overlay.rates:
            if row.span.covers(entry.provider, entry.name, on) and (row.bucket in unlisted or not row.unless_listed):
                changed: dict[str, Any] = {row.bucket: rates.uncached * row.factor}
                rates = replace(rates, source=_joined(rates.source, row.name), **changed)
                unlisted.discard(row.bucket)
        if "read" in unlisted:
            rates = replace(rates, source=_joined(rates.source, "no price for reads is listed: charged as uncached"))
        return rates

    def _with_conditions(self, rates: Rates, entry: Entry, served: Mapping[str, str], at: datetime) -> Rates:
        for field, value in served.items():
            if value in _PLAIN or entry.has_variant(_context({field: value}), at):
                continue
            if surcharge := self.overlay.surcharge(entry.provider, entry.name, at.date(), field, value):
                rates = rates.times(surcharge.factor, surcharge.name)
            else:
                note = f"no price for {field} {value} is listed: standard price"
                rates = replace(rates, source=_joined(rates.source, note))
        return rates

    def _off_peak(self, entry: Entry, at: datetime) -> datetime:
        peak = self.overlay.peak(entry.provider, entry.name)
        return at.replace(hour=peak.off_peak_hour) if peak else at

    def _with_peak(self, rates: Rates, entry: Entry, at: datetime) -> Rates:
        peak = self.overlay.peak(entry.provider, entry.name)
        return rates.times(peak.factor, peak.name) if peak and peak.is_peak(at) else rates


def _look_up(provider: str, name: str, note: str) -> Entry | None:
    from genai_prices import Usage as NoUsage  # noqa: PLC0415 - slow to import, and not every command prices
    from genai_prices import calc_price  # noqa: PLC0415

    try:
        found = calc_price(NoUsage(), name, provider_id=provider)
    except LookupError:
        return None
    own = any(found.model is model for model in found.provider.models)
    return Entry(found.provider.id, name, own, found.model, note)


def _has_list(provider: str) -> bool:
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    try:
        get_snapshot().find_provider(None, provider or None, None)
    except LookupError:
        return False
    return True


def _per_token(price: "ModelPrice", bucket: str, input_total: int) -> Decimal | None:
    from genai_prices.types import calc_unit_price  # noqa: PLC0415

    listed = next((value for key in _PRICE_KEYS[bucket] if (value := getattr(price, key)) is not None), None)
    return None if listed is None else calc_unit_price(listed, 1, input_total, _TOKENS_PER_UNIT)


def _context(served: Mapping[str, str]) -> dict[str, str]:
    """genai-prices' price_context for a tier and a speed; a geo has none."""
    context = {}
    tier, speed = served.get("tier", ""), served.get("speed", "")
    if tier not in _PLAIN:
        context["processing" if tier == "batch" else "service_tier"] = tier
    if speed not in _PLAIN:
        context["speed"] = speed
    return context


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))
