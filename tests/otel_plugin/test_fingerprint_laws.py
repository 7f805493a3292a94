"""Laws of fingerprints: a function of text and key alone, local changes stay local, and packing loses nothing."""

from hypothesis import given, settings
from hypothesis import strategies as st

from prefixscope.otel_plugin import codec, pieces
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import Prompt, Segment

_WORDS = st.sampled_from(
    ["When", "the ", "order ", "is late, ", "2026-11-30T10:00:00Z", "a\n", "# Part\n\n", "Ω", "\ud800"]
)
_TEXTS = st.lists(_WORDS, max_size=80).map("".join)


def _prompt(texts: list[str]) -> Prompt:
    first, *rest = [*texts, ""]
    segments = (
        Segment("tools", "tool", "", first, canonical=first.lower()),
        *(Segment("messages", "text", "user", text, marker="5m" if i % 2 else "") for i, text in enumerate(rest)),
    )
    return Prompt("openai.chat", "m", segments, settings={"tool_choice": '"auto"'}, cache_key="k")


@settings(deadline=None)
@given(st.lists(_TEXTS, min_size=1, max_size=6))
def test_pieces_make_up_their_segment(texts: list[str]) -> None:
    """Units and pieces join to the text again, and sizes sum to the segment's."""
    for text in texts:
        assert "".join(unit for unit, _ in pieces.units(text)) == text
        for unit, fine in pieces.units(text):
            assert "".join(part for part, _ in pieces.cut(unit, fine=fine)) == unit
    for segment in Fingerprinter(b"k").fingerprint(_prompt(texts)).segments:
        assert sum(piece.size for piece in segment.pieces) == segment.size


@settings(deadline=None)
@given(st.lists(_TEXTS, min_size=1, max_size=6), st.lists(_TEXTS, max_size=6))
def test_a_print_depends_on_text_and_key_alone(texts: list[str], seen_before: list[str]) -> None:
    """What was printed before changes nothing; another key changes every id."""
    used = Fingerprinter(b"k")
    used.fingerprint(_prompt(seen_before))
    fresh = Fingerprinter(b"k").fingerprint(_prompt(texts))
    assert used.fingerprint(_prompt(texts)) == fresh
    other = Fingerprinter(b"other").fingerprint(_prompt(texts))
    assert other.key_id != fresh.key_id
    assert {s.content_id for s in other.segments}.isdisjoint(s.content_id for s in fresh.segments)


@settings(deadline=None)
@given(st.lists(_TEXTS, min_size=1, max_size=6))
def test_packing_loses_nothing(texts: list[str]) -> None:
    """A print that fits its limit comes back as it was."""
    found = Fingerprinter(b"k").fingerprint(_prompt(texts))
    assert codec.unpack(codec.pack(found, limit=10**9)) == found


@settings(deadline=None)
@given(st.lists(_TEXTS, min_size=1, max_size=6), st.integers(200, 2000))
def test_a_tight_limit_costs_pieces_and_nothing_else(texts: list[str], limit: int) -> None:
    """Ids, sizes, markers and settings stay; only inner pieces go, and they still make up their segments."""
    found = Fingerprinter(b"k").fingerprint(_prompt(texts))
    back = codec.unpack(codec.pack(found, limit=limit))
    assert (back.settings, back.cache_key, back.key_id) == (found.settings, found.cache_key, found.key_id)
    for kept, whole in zip(back.segments, found.segments, strict=True):
        assert kept._replace(pieces=()) == whole._replace(pieces=())
        assert sum(piece.size for piece in kept.pieces) == whole.size


def test_an_insertion_changes_its_neighbourhood_only() -> None:
    """One sentence put into a long text leaves almost all pieces as they were."""
    text = "".join(f"Rule {n} of the house is that number {n} comes before the next one.\n" for n in range(200))
    middle = text.index("Rule 100 ")
    printer = Fingerprinter(b"k")
    before, after = (
        {piece.content_id for piece in printer.fingerprint(_prompt([one])).segments[0].pieces}
        for one in (text, f"{text[:middle]}A stranger walks in and says hello to all.\n{text[middle:]}")
    )
    assert len(before - after) <= 4
    assert len(after - before) <= 8
