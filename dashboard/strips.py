"""Two prompts laid over each other, piece by piece, without their text: where they part, and what is the same behind.

A piece that both prompts hold behind the break is stranded: the provider has it, but cannot read it from cache, since
a prefix ends at the first difference.
"""

from dataclasses import dataclass
from typing import Any, Final

import polars as pl

SAME, BREAK, DIFFERS, STRANDED, AFTER = (
    "Same prefix",
    "Break",
    "Differs",
    "Same text, stranded",
    "New at the end",
)
_SLIVER: Final = 0.002  # of the longer prompt: what is smaller joins its neighbour
_WIDEST_BREAK: Final = 0.012  # of the longer prompt: a break is drawn at least this wide, so that it can be seen


@dataclass(frozen=True, slots=True)
class Comparison:
    """``blocks`` has the columns that ``charts.strips`` wants; sizes are bytes."""

    blocks: pl.DataFrame
    breaks_at: int | None  # None: nothing that both hold stands behind the first difference
    segment: int  # where it breaks, from 1
    level: str
    shared: int
    stranded: int


def compare(earlier: pl.DataFrame, later: pl.DataFrame, names: tuple[str, str]) -> Comparison:
    """Compares two results of ``pages/prompt_pieces``; ``names`` label the strips, earlier first."""
    common = _common(earlier, later)
    a, b = _classified(earlier, later, common), _classified(later, earlier, common)
    stranded = int(b.filter(pl.col("what") == STRANDED)["bytes"].sum())
    shared = int(later["bytes"][:common].sum())
    if not stranded:
        a, b = (side.with_columns(what=pl.col("what").replace(DIFFERS, AFTER)) for side in (a, b))
    longest = max(int(a["bytes"].sum()), int(b["bytes"].sum()), 1)
    blocks = pl.concat([_blocks(side, name, longest) for side, name in zip((a, b), names, strict=True)])
    if stranded:
        blocks = pl.concat([blocks, _marks(blocks, shared, longest)])
    at = min(common, later.height - 1)
    place: dict[str, Any] = later.row(at, named=True) if later.height else {"segment": 0, "level": ""}
    return Comparison(blocks, shared if stranded else None, place["segment"], place["level"], shared, stranded)


def _common(earlier: pl.DataFrame, later: pl.DataFrame) -> int:
    """How many pieces both begin with."""
    same = ["level", "kind", "role", "piece_id"]
    pairs = zip(earlier.select(same).iter_rows(), later.select(same).iter_rows(), strict=False)
    return next((n for n, (one, other) in enumerate(pairs) if one != other), min(earlier.height, later.height))


def _classified(mine: pl.DataFrame, other: pl.DataFrame, common: int) -> pl.DataFrame:
    """``mine`` with a column ``what``; what differs behind the last shared piece is merely new."""
    theirs = other[common:]["piece_id"].implode()
    index = pl.int_range(pl.len())
    known = pl.col("piece_id").is_in(theirs)
    found = mine.with_columns(
        what=pl.when(index < common).then(pl.lit(SAME)).when(known).then(pl.lit(STRANDED)).otherwise(pl.lit(DIFFERS))
    )
    found = _calm(found)
    last = found.with_row_index("n").filter(pl.col("what") == STRANDED)["n"].max()
    behind = index > (common if last is None else last)
    return found.with_columns(what=pl.when((pl.col("what") == DIFFERS) & behind).then(pl.lit(AFTER)).otherwise("what"))


def _calm(found: pl.DataFrame) -> pl.DataFrame:
    """A short run of shared pieces amid different ones, such as a line break, is not shared text."""
    run = found.with_columns(run=pl.struct("segment", "what").rle_id())
    size = pl.col("bytes").sum().over("run")
    noise = (pl.col("what") == STRANDED) & (size < 48)
    return run.with_columns(what=pl.when(noise).then(pl.lit(DIFFERS)).otherwise("what")).drop("run")


def _blocks(side: pl.DataFrame, name: str, longest: int) -> pl.DataFrame:
    """Runs of pieces of one segment and one kind of difference, as blocks to draw."""
    placed = side.with_columns(end=pl.col("bytes").cum_sum()).with_columns(begin=pl.col("end") - pl.col("bytes"))
    runs = placed.with_columns(run=pl.struct("segment", "what").rle_id())
    size = pl.col("bytes").sum().over("run")
    sliver = (size < _SLIVER * longest) & (pl.col("what") != SAME)
    runs = runs.with_columns(what=pl.when(sliver).then(None).otherwise("what")).with_columns(
        what=pl.col("what").forward_fill().over("segment").fill_null(pl.col("what").backward_fill().over("segment"))
    )
    runs = runs.with_columns(what=pl.col("what").fill_null(pl.lit(AFTER)), run=pl.struct("segment", "what").rle_id())
    merged = runs.group_by("run", maintain_order=True).agg(
        pl.col("what", "segment", "level", "kind", "role").first(),
        begin=pl.col("begin").min(),
        end=pl.col("end").max(),
        bytes=pl.col("bytes").sum(),
        id=pl.col("piece_id").first(),
        volatile=pl.col("volatile").filter(pl.col("volatile") != "").unique(maintain_order=True).str.join(", "),
    )
    return merged.select(
        pl.lit(name).alias("call"),
        "begin",
        "end",
        "what",
        pl.format("{}, segment {}", "level", "segment").alias("place"),
        pl.concat_str([pl.col("kind"), pl.col("role"), pl.col("volatile")], separator=" ")
        .str.strip_chars()
        .alias("kind"),
        "bytes",
        pl.format("{}", pl.col("id")).alias("id"),
    )


def _marks(blocks: pl.DataFrame, at: int, longest: int) -> pl.DataFrame:
    """The break itself on every strip, wide enough to be seen."""
    begins = blocks.filter(pl.col("end") > at).group_by("call", maintain_order=True).first()
    return begins.with_columns(
        what=pl.lit(BREAK), begin=pl.lit(at, pl.Int64), end=pl.lit(at + round(_WIDEST_BREAK * longest), pl.Int64)
    ).select(blocks.columns)
