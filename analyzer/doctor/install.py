"""What is installed and how it is set up: settings, entry points, HTTP libraries, exporters, other instrumentations."""

import difflib
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from importlib.resources import files
from pathlib import Path
from shutil import which
from typing import Final

from prefixscope.analyzer.doctor.examination import Check, Look, Patient
from prefixscope.otel_plugin import mounts
from prefixscope.otel_plugin.capture import Capture
from prefixscope.otel_plugin.settings import Settings, variable

_INSTRUMENTOR: Final = ("opentelemetry_instrumentor", "prefixscope")
_EXPORTER: Final = ("opentelemetry_traces_exporter", "prefixscope_duckdb")
_SIGNALS: Final = ("traces", "metrics", "logs")
_BY_PROTOCOL: Mapping[str, str] = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}  # of the SDK, 1.45
_BESIDE: Final = frozenset({"PREFIXSCOPE_KEY", "PREFIXSCOPE_STORE", "PREFIXSCOPE_SIGN_IN"})  # no settings of capture


def settings(patient: Patient, problems: Sequence[str]) -> Iterator[Check]:
    """Variables that cannot be read, and those that nothing reads."""
    for problem in problems:
        yield Check("settings", "failed", problem)
    known = {variable(entry.name) for entry in fields(Settings)} | _BESIDE
    set_ = sorted(name for name in patient.environment if name.startswith("PREFIXSCOPE_"))
    for name in set_:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            advice = f"did you mean {near[0]}?" if near else ""
            yield Check("settings", "warning", f"{name} is no setting, so it does nothing", advice)
    if not problems:
        names = ", ".join(set_) or "none is set, so defaults hold"
        yield Check("settings", "ok", f"variables: {names}", facts={"variables": set_})


def _entry_points(patient: Patient) -> Iterator[Check]:
    """What ``opentelemetry-instrument`` will find."""
    for group, name in (_INSTRUMENTOR, _EXPORTER):
        found = tuple(entry_points(group=group, name=name))
        if len(found) == 1:
            found[0].load()
            yield Check("entry_points", "ok", f"{group}: {name}", facts={"group": group, "name": name})
        else:
            message = f"{group}: {name} is registered {len(found)} times instead of once"
            yield Check("entry_points", "failed", message, "install prefixscope again")
    beside = Path(sys.executable).parent
    if not which("opentelemetry-instrument") and not which("opentelemetry-instrument", path=str(beside)):
        advice = "pip install opentelemetry-distro, or call prefixscope.otel_plugin.instrument() in the program"
        yield Check("entry_points", "warning", "opentelemetry-instrument is not installed here", advice)
    off = patient.environment.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "")
    if {"prefixscope", "*"} & {name.strip() for name in off.split(",")}:
        message = f"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS={off} switches prefixscope off"
        yield Check("entry_points", "failed", message, "take it out of that list")


def _libraries(patient: Patient) -> Iterator[Check]:
    """Each HTTP library is imported, and capture mounted on it, here in this process."""
    versions = {library: _version(library.partition(".")[0]) for library in mounts.LIBRARIES}
    there = {library: found for library, found in versions.items() if found}
    capture = Capture(Settings(spool="off", spans="off"), patient.environment)
    mounted = mounts.Mounts(capture.tap)
    try:
        reasons = {library: _import(library) for library in there}
        for library, found in there.items():
            yield _library(library, found, reasons[library], is_mounted=library in mounted.mounted)
    finally:
        mounted.undo()
        capture.close()
    absent = [library.partition(".")[0] for library in versions if library not in there]
    if not there:
        advice = f"run this where the service runs; capture mounts on {', '.join(absent)}"
        yield Check("libraries", "failed", "no HTTP library of a model SDK is installed here", advice)
    elif absent:
        yield Check("libraries", "ok", f"not installed, not needed: {', '.join(absent)}", facts={"absent": absent})


def _library(library: str, found: str, reason: str, *, is_mounted: bool) -> Check:
    name = library.partition(".")[0]
    facts = {"library": name, "version": found, "mounted": is_mounted}
    if is_mounted:
        return Check("libraries", "ok", f"{name} {found}: calls are seen", facts=facts)
    why = reason or "its classes are not where they were: please report it"
    return Check("libraries", "failed", f"{name} {found}: calls are not seen ({why})", facts=facts)


def _import(library: str) -> str:
    try:
        import_module(library)
    except Exception as error:  # noqa: BLE001 - a broken installation of somebody else's package
        return f"cannot be imported: {type(error).__name__}"
    return ""


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _exporters(patient: Patient) -> Iterator[Check]:
    """Whether the configuration will work: one exporter that is missing ends auto-instrumentation of everything."""
    if patient.environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        yield Check("exporters", "warning", "OTEL_SDK_DISABLED=true: no spans, no metrics; the spool is written")
        return
    has_distro = bool(entry_points(group="opentelemetry_distro"))
    wanted = {signal: _wanted(signal, patient.environment, has_distro=has_distro) for signal in _SIGNALS}
    if not entry_points(group="opentelemetry_configurator"):
        message = "no OpenTelemetry distribution: OTEL_*_EXPORTER have no effect; the spool is written"
        advice = "pip install opentelemetry-distro"
        yield (
            Check("exporters", "failed", message, advice) if any(wanted.values()) else Check("exporters", "ok", message)
        )
        return
    missing = [(signal, name) for signal, names in wanted.items() for name in names if name not in _known(signal)]
    for signal, name in missing:
        advice = f"set OTEL_{signal.upper()}_EXPORTER=none, or install that exporter"
        message = f"{signal} go to {name}, which is not installed: nothing at all would be instrumented"
        yield Check("exporters", "failed", message, advice, {"signal": signal, "exporter": name})
    if not missing:
        shown = "; ".join(f"{signal}: {', '.join(names) or 'none'}" for signal, names in wanted.items())
        yield Check("exporters", "ok", shown, facts={signal: list(names) for signal, names in wanted.items()})


def _known(signal: str) -> set[str]:
    return {point.name for point in entry_points(group=f"opentelemetry_{signal}_exporter")}


def _wanted(signal: str, environment: Mapping[str, str], *, has_distro: bool) -> list[str]:
    """The exporters that the SDK will look up; the distribution's defaults are OTLP over gRPC for all signals."""
    told = environment.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp" if has_distro else "").strip()
    if not told or told.lower() == "none":
        return []
    protocol = environment.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL")
    protocol = protocol or environment.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "grpc"
    otlp = _BY_PROTOCOL.get(protocol.strip(), f"otlp over {protocol}")
    return [otlp if name.strip() == "otlp" else name.strip() for name in told.split(",")]


def _others(patient: Patient) -> Iterator[Check]:
    """Instrumentations that report the same calls: one of the two must leave the usage out."""
    words = tomllib.loads(files("prefixscope.otel_plugin").joinpath("covering.toml").read_text("utf-8"))[
        "instrumentors"
    ]
    off = {n.strip() for n in patient.environment.get("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "").split(",")}
    points = [
        p for p in entry_points(group="opentelemetry_instrumentor") if _reports_calls(p, words) and p.name not in off
    ]
    names = sorted({point.module for point in points})
    if not names:
        yield Check("others", "ok", "no other instrumentation reports the same calls", facts={"others": []})
        return
    facts = {"others": names, "spans": patient.settings.spans}
    listed = ", ".join(names)
    if patient.settings.spans == "on":
        advice = "set PREFIXSCOPE_SPANS=auto: sums over spans count those calls twice"
        yield Check("others", "warning", f"the same calls are also reported by {listed}", advice, facts)
    else:
        ours = "there are no spans of ours" if patient.settings.spans == "off" else "our spans leave the usage to them"
        message = f"the same calls are also reported by {listed}; {ours}"
        yield Check("others", "ok", message, facts=facts)


def _reports_calls(point: EntryPoint, words: Mapping[str, str]) -> bool:
    module = point.module
    return not module.startswith("prefixscope") and any(word in module for word in words)


LOOKS: Sequence[Look] = (_entry_points, _libraries, _exporters, _others)
