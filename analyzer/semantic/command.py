"""``prefixscope semantic``: what response caches would do on recorded traffic. Parses, does IO; heavy imports late."""

import argparse
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefixscope.analyzer.errors import UsageError

_SCOPE = ("service", "model", "system", "tools", "settings", "account", "tenant", "user")
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_PIPE_WIDTH = 140


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parsers of ``prefixscope``."""
    parser = subparsers.add_parser(
        "semantic",
        help="what exact and semantic response caches would save, and where a semantic one would answer wrongly",
        description="Replays recorded traffic through an exact and a semantic response cache in front of the "
        "provider's prompt cache. Needs logs or traces with prompts and answers in clear text; with fingerprints only, "
        "exact repeats are told. Texts stay in memory; they are shown in the report unless --no-text is given.",
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files, folders or globs")
    parser.add_argument(
        "--threshold", type=_share, metavar="COSINE", help="replay this threshold instead of choosing one"
    )
    parser.add_argument(
        "--budget", type=_budget, default=0.01, metavar="SHARE",
        help="share of the served answers that may be wrong: 1%% or 0.01 (default: 1%%)",
    )  # fmt: skip
    parser.add_argument("--no-guards", action="store_true", help="serve on similarity alone, to see what that would do")
    parser.add_argument(
        "--scope", type=_scope, metavar="FIELDS",
        help=f"what must be the same before an answer is shared: of {','.join(_SCOPE)} (default: all but user, or "
        "all if only that keeps the budget; wider ones are told)",
    )  # fmt: skip
    parser.add_argument("--any-context", action="store_true", help="share answers across different conversations")
    parser.add_argument("--ttl", type=_duration, default=86_400.0, metavar="TIME", help="30m, 12h, 7d… (default: 1d)")
    parser.add_argument("--capacity", type=_count, default=100_000, metavar="N", help="answers kept (default: 100000)")
    parser.add_argument(
        "--max-temperature", type=float, default=0.0, metavar="T",
        help="calls that ask for a higher one want varying answers and are left out (default: 0)",
    )  # fmt: skip
    parser.add_argument(
        "--embedder", default="minilm", metavar="NAME",
        help="minilm (offline), trace (recorded vectors), st:MODEL (sentence-transformers), openai:MODEL (sends "
        "questions and answers to OPENAI_BASE_URL)",
    )  # fmt: skip
    parser.add_argument(
        "--embedding-usd",
        type=float,
        default=0.0,
        metavar="USD",
        help="price of a million embedded tokens (default: 0)",
    )
    parser.add_argument("--labels", type=Path, metavar="FILE", help="a review queue that was filled in")
    parser.add_argument("--review", type=Path, metavar="FILE", help="write the pairs to judge as CSV, texts included")
    parser.add_argument("--service", help="only calls of this service")
    parser.add_argument("--no-text", action="store_true", help="leave questions and answers out of the report")
    parser.add_argument("--json", action="store_const", dest="form", const="json", help="the report as JSON")
    parser.add_argument(
        "--load-test", action="store_true", help="no traffic: unit costs of a published load test at today's prices"
    )
    parser.set_defaults(run=run, form="text")


def run(args: argparse.Namespace) -> int:
    """Runs the command; returns its exit code.

    Raises:
        UsageError: options that cannot work, or a package of the extra "semantic" is missing.
        InputError: nothing could be read.
    """
    if args.load_test:
        return _load_test(args.form)
    if not args.paths:
        raise UsageError("name the files or folders with your traffic, or use --load-test")
    report, analysis = _analysed(args)
    if args.review:
        from prefixscope.analyzer.semantic import analysis as analysis_module  # noqa: PLC0415
        from prefixscope.analyzer.semantic import labels  # noqa: PLC0415

        count, open_ = labels.write(args.review, analysis_module.review_rows(analysis)), report["labels"]["open"]
        _say(f"{open_:,} pairs need you ({count:,} in {args.review}; the answers or you settled the others)")
    if args.labels:
        _say(_used(args.labels, report["labels"]))
    _print(report, args.form)
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201 - a command talks


def _used(path: Path, labels: Any) -> str:
    """What became of the judgements that were read: none may be ignored in silence."""
    read, used = labels["read"], labels["used"]
    if not read:
        return f"{path}: no judgement is in it: write yes or no into same_answer"
    told = f"{path}: {read:,} {'judgement' if read == 1 else 'judgements'} read, {used:,} used"
    return (
        told if used == read else f"{told}: the others name no pair of this traffic (another PREFIXSCOPE_KEY or log?)"
    )


def _analysed(args: argparse.Namespace) -> tuple[Any, Any]:
    from prefixscope.analyzer import audit  # noqa: PLC0415 - DuckDB and Polars, only for this command
    from prefixscope.analyzer.ingest import expand  # noqa: PLC0415
    from prefixscope.analyzer.progress import reading as progress  # noqa: PLC0415
    from prefixscope.analyzer.semantic import analysis, labels, of_paths, report  # noqa: PLC0415
    from prefixscope.analyzer.semantic.tiers import Policy  # noqa: PLC0415
    from prefixscope.otel_plugin.keys import load_key  # noqa: PLC0415

    policy = Policy(
        threshold=args.threshold if args.threshold is not None else analysis.NAIVE,
        guarded=not args.no_guards,
        same_context=not args.any_context,
        ttl_s=args.ttl,
        capacity=args.capacity,
    )
    options = analysis.Options(
        policy=policy,
        threshold_given=args.threshold is not None,
        budget=args.budget,
        scope=args.scope or _SCOPE[:-1],
        scope_given=args.scope is not None,
        embedder=args.embedder,
        usd_per_million=args.embedding_usd,
        max_temperature=args.max_temperature,
        labels=labels.read(args.labels) if args.labels else {},
        selection=audit.Selection(service=args.service),
    )
    paths = expand([Path(name) for name in args.paths])
    with progress(paths) as advance:
        found = of_paths.analysed(paths, options, load_key(), on_bytes=advance)
    return report.build(found, with_text=not args.no_text), found


def _load_test(form: str) -> int:
    from prefixscope.analyzer.semantic import load_test, terminal  # noqa: PLC0415

    lines = load_test.table(datetime.now(UTC))
    if form == "json":
        rows = [
            {"model": line.model, "option": line.option, "usd_per_task": str(line.usd_per_task), "usd": str(line.usd),
             "formula": line.formula}
            for line in lines
        ]  # fmt: skip
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    else:
        _draw(lambda console: terminal.load_test(lines, console))
    return 0


def _print(report: Any, form: str) -> None:
    from prefixscope.analyzer.semantic import terminal  # noqa: PLC0415

    if form == "json":
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    else:
        _draw(lambda console: terminal.render(report, console))


def _draw(draw: Callable[[Any], None]) -> None:
    from rich.console import Console  # noqa: PLC0415

    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    console = Console(file=sys.stdout, highlight=False, emoji=False, width=width)
    with console.capture() as drawn:
        draw(console)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in drawn.get().split("\n")[:-1])


def _share(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share: write 0.01 or 1%")
    return value


def _budget(text: str) -> float:
    value = _share(text)
    if value >= 1 and not text.endswith("%"):
        raise argparse.ArgumentTypeError(f"{text!r} would be all answers: write {text}% or {value / 100:g}")
    return value


def _scope(text: str) -> tuple[str, ...]:
    chosen = tuple(filter(None, text.split(",")))
    unknown = [name for name in chosen if name not in _SCOPE]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: no such field; there are {', '.join(_SCOPE)}")
    return chosen


def _duration(text: str) -> float:
    unit = _UNITS_S.get(text[-1:])
    try:
        value = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        value = -1.0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 30m, 12h or 7d")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of answers")
    return int(text)
