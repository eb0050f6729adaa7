"""Log lines and metrics as they leave the process."""

from __future__ import annotations

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO

import pytest

from sweephand.base.sources import SystemClock
from sweephand.domain.instants import epoch_ms
from sweephand.server import telemetry
from sweephand.server.telemetry import METRICS, Telemetry

PACKAGE = Path(telemetry.__file__).parent
UNITS = {"Count", "Seconds", "Milliseconds", "Microseconds", "Bytes", "Percent", "Count/Second", "None"}
MOST_METRICS = 10


def check(document: dict[str, Any]) -> None:
    """Checks what CloudWatch's specification of the embedded metric format requires of a line."""
    meta = document["_aws"]
    assert meta.keys() == {"Timestamp", "CloudWatchMetrics"}
    assert isinstance(meta["Timestamp"], int)
    for directive in meta["CloudWatchMetrics"]:
        assert directive.keys() == {"Namespace", "Dimensions", "Metrics"}
        assert 1 <= len(directive["Namespace"]) <= 1_024
        assert 1 <= len(directive["Metrics"]) <= 100
        for dimensions in directive["Dimensions"]:
            assert len(dimensions) <= 30
            for name in dimensions:
                assert isinstance(document[name], str)
                assert 1 <= len(document[name]) <= 1_024
        for metric in directive["Metrics"]:
            assert metric.keys() == {"Name", "Unit"}
            assert metric["Unit"] in UNITS
            value = document[metric["Name"]]
            values = value if isinstance(value, list) else [value]
            assert 1 <= len(values) <= 100
            assert all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)


def test_there_are_at_most_ten_metrics_and_each_is_written_somewhere() -> None:
    source = "".join(path.read_text() for path in [*(PACKAGE / "flow").rglob("*.py"), PACKAGE / "wiring.py"])

    assert len(METRICS) <= MOST_METRICS
    for name in METRICS:
        assert re.search(rf'"{name}"|\b{name}=', source), f"nothing writes {name}"


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("value", [0, 1, 2.5, [1], list(range(10)), list(range(250))])
def test_a_line_is_what_the_embedded_metric_format_asks_for(
    name: str, value: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "executor")

    Telemetry("sweephand").measure(**{name: value})

    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for document in documents:
        check(document)
        (directive,) = document["_aws"]["CloudWatchMetrics"]
        assert (directive["Namespace"], directive["Dimensions"]) == ("Sweephand", [["stack"]])
        assert directive["Metrics"] == [{"Name": name, "Unit": METRICS[name]}]
        assert document.keys() == {"_aws", "stack", name}
    written = [each for document in documents for each in document[name]]
    assert written == (value if isinstance(value, list) else [value])


def test_several_metrics_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    before = epoch_ms(SystemClock().now())

    Telemetry("mine").measure(Lateness=[12, 340], Failed=[0, 1])

    (line,) = capsys.readouterr().out.splitlines()
    document = json.loads(line)
    check(document)
    assert (document["Lateness"], document["Failed"], document["stack"]) == ([12, 340], [0, 1], "mine")
    assert before <= document["_aws"]["Timestamp"] <= epoch_ms(SystemClock().now())
    assert document["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["stack"]]


class Unbuffered:
    """Standard output as Lambda's runtime has it: each write leaves at once, and lets other threads go on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def flush(self) -> None:
        self._stream.flush()


def test_lines_of_several_threads_do_not_mix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Seen failing with Powertools' own `flush_metrics`, which prints a line and its end separately."""
    written = tmp_path / "lines"
    telemetry = Telemetry("mine")

    with written.open("w") as stream:
        monkeypatch.setattr(sys, "stdout", Unbuffered(stream))
        with ThreadPoolExecutor(8) as pool:
            for _ in range(400):
                pool.submit(telemetry.count, "Broken")
        monkeypatch.undo()

    assert [json.loads(line)["Broken"] for line in written.read_text().splitlines()] == [[1]] * 400


def test_a_count_is_a_measure(capsys: pytest.CaptureFixture[str]) -> None:
    Telemetry("mine").count("DeadLetters", 3)

    assert json.loads(capsys.readouterr().out)["DeadLetters"] == [3]


def test_metrics_are_written_whatever_the_level_of_the_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "ERROR")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "quiet")
    quiet = Telemetry("mine")

    quiet.info("a run", run="r")
    quiet.warning("a warning")
    quiet.measure(OldestDue=0)

    (line,) = capsys.readouterr().out.splitlines()
    assert "OldestDue" in line


@pytest.mark.parametrize("level", ["DEBUG", "INFO", "WARN", "ERROR"])
def test_every_level_of_the_template_is_a_level_of_the_logger(
    level: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", level)
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", f"at {level}")
    telemetry = Telemetry("mine")

    telemetry.info("i")
    telemetry.warning("w")
    telemetry.error("e")

    written = [json.loads(line)["message"] for line in capsys.readouterr().out.splitlines()]
    assert "".join(written) == {"DEBUG": "iwe", "INFO": "iwe", "WARN": "we", "ERROR": "e"}[level]


def test_a_metric_that_is_not_on_the_list_is_an_error() -> None:
    with pytest.raises(KeyError):
        Telemetry("mine").measure(Tenants=1)


def test_a_member_that_is_not_on_the_list_is_an_error() -> None:
    with pytest.raises(KeyError, match="url"):
        Telemetry("mine").info("x", url="https://secret")
