"""Laws of money: closed forms against accumulation by the month or by the payment."""

import math
import random

import numpy as np
import pytest

from mlsys import formulas
from mlsys.errors import ArgumentError
from mlsys.units import Q_

MONTH = 365.25 * 24 / 12  # hours


def months_until_cheaper(price: float, renting: float, owning: float, most: int = 100_000) -> float:
    """Add up both bills month by month until the owner has paid no more; infinite if that never comes."""
    owner, tenant = price, 0.0
    for month in range(most):
        if owner <= tenant:
            return month
        owner += owning * MONTH
        tenant += renting * MONTH
    return math.inf


def test_break_even_is_where_the_bills_of_owner_and_tenant_cross() -> None:
    rng = random.Random(37)
    for _ in range(300):
        price, renting, owning = rng.uniform(100, 60_000), rng.uniform(0.01, 12), rng.uniform(0, 12)
        closed = formulas.break_even_time.bare(price, renting, owning) / MONTH
        counted = months_until_cheaper(price, renting, owning)
        if counted == math.inf:
            assert closed == math.inf or closed > 90_000
        else:
            assert counted - 1 <= closed <= counted + 1e-9


def test_break_even_of_arrays_is_that_of_their_elements() -> None:
    prices, rents = np.array([100.0, 0.0, 100.0]), np.array([2.0, 0.0, 1.0])
    got = formulas.break_even_time.bare(prices, rents, 1.0)
    assert list(got) == [100.0, 0.0, math.inf]
    at = formulas.break_even_utilisation.bare(np.array([100.0, 0.0]), 10.0, np.array([5.0, 1.0]), 1.0)
    assert list(at) == [2.5, 0.0]


def test_at_the_least_utilisation_owner_and_tenant_pay_alike() -> None:
    rng = random.Random(38)
    for _ in range(100):
        price, life, rent = rng.uniform(1e3, 1e5), rng.uniform(1e4, 5e4), rng.uniform(1, 12)
        running, fixed = rng.uniform(0, 0.9), rng.uniform(0, 0.5)
        used = formulas.break_even_utilisation.bare(price, life, rent, running, fixed)
        assert price + (fixed + running * used) * life == pytest.approx(rent * used * life)


def test_an_annuity_is_worth_its_price_today() -> None:
    for interest in (1e-9, 0.01, 0.08, 0.5):
        for years in (1, 3, 10):
            payment = formulas.annuity(Q_(1000, "USD"), Q_(years, "year"), Q_(interest, "1/year")).m_as("USD/year")
            worth = sum(payment / (1 + interest) ** year for year in range(1, years + 1))
            assert worth == pytest.approx(1000, rel=1e-9)
    assert formulas.annuity(Q_(1000, "USD"), Q_(4, "year")).m_as("USD/year") == 250


def test_tokens_cost_more_the_dearer_the_slower_and_the_idler() -> None:
    base = formulas.token_cost.bare(2.0, 680.0, 1.0)
    assert formulas.token_cost.bare(3.0, 680.0, 1.0) > base
    assert formulas.token_cost.bare(2.0, 340.0, 1.0) == pytest.approx(2 * base)
    assert formulas.token_cost.bare(2.0, 680.0, 0.5) == pytest.approx(2 * base)


def test_a_million_tokens_cost_what_their_hours_cost() -> None:
    """By counting: the hours of a million tokens times the rent."""
    hours = Q_(1e6, "token") / Q_(680, "token/s")
    assert formulas.token_cost(Q_(2, "USD/hour"), Q_(680, "token/s")).m_as("USD/Mtoken") == pytest.approx(
        (hours * Q_(2, "USD/hour")).m_as("USD")
    )


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("token_cost", dict(rent=Q_(2, "USD/hour"), token_rate=Q_(0, "token/s")), "`token_rate`"),
        ("token_cost", dict(rent=Q_(2, "USD/hour"), token_rate=Q_(1, "token/s"), utilisation=1.1), "`utilisation`"),
        ("electricity_rate", dict(power=Q_(1, "kW"), electricity_price=Q_(0.1, "USD/kWh"), pue=0.9), "`pue`"),
    ],
)
def test_bad_money_is_refused(name: str, arguments: dict[str, object], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        getattr(formulas, name)(**arguments)
