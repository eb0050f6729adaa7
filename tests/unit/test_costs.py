"""The stated costs are the counted units times list prices, and stay within the budgets."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from samtranslator.yaml_helper import yaml_parse

from bench import lives
from tools.docs import costs

ROOT = Path(__file__).resolve().parents[2]
A_MILLION, A_MONTH, A_MONTH_OF_RUNNING = 5.00, 5.00, 2.90


def test_a_million_bunched_runs_stay_within_five_dollars_without_the_free_tier() -> None:
    assert costs.total(costs.million(10)).dollars <= A_MILLION


def test_an_idle_month_stays_within_its_budgets_without_the_free_tier() -> None:
    assert costs.total(costs.running()).dollars <= A_MONTH_OF_RUNNING
    assert costs.total(costs.idle()).dollars <= A_MONTH


def test_metrics_of_a_collection_and_of_an_application_have_a_stated_price() -> None:
    prices = {line.what: line.dollars for line in costs.more() if "MetricsOf" in line.what}

    assert [round(price, 2) for price in prices.values()] == [0.60, 0.90]
    for what, price in prices.items():
        assert what.count("`") == (6 if "collection" in what else 4)
        assert f"| {what} | {price:.2f} |" in (ROOT / "docs" / "operate" / "costs.md").read_text()


def test_units_come_from_the_benchmarks() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()

    assert costs.counted(page.replace("| success | 5 |", "| success | 7 |")).writes == 7

    with pytest.raises(ValueError, match="has no line"):
        costs.counted(page.replace("An idle tick over", "A quiet tick over"))


def test_the_units_of_a_jobs_life_are_the_counted_ones() -> None:
    for stated, counted in ((costs.ONE_TIME, lives.one_time()), (costs.WITH_SECRET, lives.one_time(**lives.SECRET))):
        assert asdict(stated) == {**asdict(counted), "stored": pytest.approx(counted.stored, rel=0.05)}
    assert asdict(costs.REQUESTS) == asdict(lives.asked())


def test_secrets_of_a_million_runs_cost_the_key_service_at_most_ten_cents() -> None:
    assert 0 < costs.secrets() <= 0.10


def test_a_one_time_job_pays_for_its_creation_and_deletion_too() -> None:
    once, run = costs.one_time(costs.ONE_TIME, 1), costs.total(costs.million(1))

    assert once.dollars > run.dollars + costs.of_units(costs.REQUESTS.created) + costs.a_request()
    assert costs.one_time(costs.WITH_SECRET, 1).dollars > once.dollars


@pytest.mark.parametrize("page", ["docs/guide/compared.md", "docs/operate/costs.md"])
def test_pages_state_the_computed_prices_of_both_kinds_of_jobs(page: str) -> None:
    text = (ROOT / page).read_text()

    for price in (costs.million, lambda received: [costs.one_time(costs.ONE_TIME, received)]):
        low, high = (costs.total(price(received)).dollars for received in (10, 1))
        assert f"${low:.0f} to ${high:.0f}" in text


@pytest.mark.parametrize(
    ("what", "dollars"), [("write units", 3.125), ("read units", 0.625), ("days of rows", 1.2 * 15 / 30.417 * 0.45)]
)
def test_a_line_of_a_million_is_units_times_price(what: str, dollars: float) -> None:
    (line,) = (each for each in costs.million(10) if what in each.what)

    assert line.dollars == pytest.approx(dollars, abs=0.001)


def test_a_run_that_comes_alone_pays_for_its_own_messages_and_its_own_executor() -> None:
    bunched, spread = ({line.what: line.dollars for line in costs.million(n)} for n in (10, 1))

    for what in ("SQS: send, receive, delete, hide; fair queues", "Lambda: executors"):
        assert spread[what] > 5 * bunched[what]


def test_every_poller_of_the_template_is_paid_for(raw_template: Any) -> None:
    functions = [each["Properties"] for each in raw_template["Resources"].values() if "Events" in each["Properties"]]
    pollers = [event for each in functions for event in each["Events"].values() if event["Type"] == "SQS"]
    (line,) = (each for each in costs.idle() if "pollers" in each.what)

    assert line.dollars == pytest.approx(len(pollers) * 15 * 60 * 730 * 0.40e-6)


def test_every_key_secret_and_alarm_of_a_default_stack_is_paid_for(raw_template: Any) -> None:
    defaults = {name: each.get("Default") for name, each in raw_template["Parameters"].items()}
    on = {"HasAlarms": defaults["Alarms"] == "on", "HasIdentity": _has_identity(defaults)}
    made = [each for each in raw_template["Resources"].values() if on.get(each.get("Condition"), True)]
    kinds = [each["Type"] for each in made]

    paid = {
        kind: sum(each.dollars for each in costs.idle() if each.what.startswith(kind))
        for kind in ("KMS", "Secrets Manager", "CloudWatch")
    }

    assert paid == {
        "KMS": kinds.count("AWS::KMS::Key") * 1.00,
        "Secrets Manager": kinds.count("AWS::SecretsManager::Secret") * 0.40,
        "CloudWatch": pytest.approx(kinds.count("AWS::CloudWatch::Alarm") * 0.10),
    }


def _has_identity(values: dict[str, str]) -> bool:
    """Returns whether the template's condition `HasIdentity` holds for these values of its parameters."""
    return values["OutboundIdentity"] == "on" or (values["OutboundIdentity"], values["SapFacade"]) == ("auto", "on")


def test_the_free_tier_takes_away_no_more_than_there_is() -> None:
    for line in [*costs.million(1), *costs.million(10), *costs.idle(), *costs.more()]:
        assert 0 <= line.with_free <= line.dollars


@pytest.fixture(scope="module")
def raw_template() -> Any:
    return yaml_parse((ROOT / "template.yaml").read_text())
