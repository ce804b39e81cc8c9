"""Memory budgets: violations of a variant, and acceptance."""

from collections.abc import Iterable

from mlsys.unit_checks import checked_number, nonnegative, positive
from mlsys.units import Quantity


def violation_name(budget: Quantity) -> str:
    """Return the column name for violations of a budget, with the budget in the shortest decimal form.

    Examples
    --------
    >>> from mlsys import Q_
    >>> violation_name(Q_(0.5, "MB")), violation_name(Q_(2.0, "MB"))
    ('violates_0.5mb', 'violates_2mb')
    """
    return f"violates_{budget.magnitude:.12g}{budget.units:~}".lower()


def memory_violations(memory: Quantity, budgets: Iterable[Quantity]) -> dict[str, bool]:
    """Return, for each budget, whether the memory exceeds it; using a budget exactly is allowed.

    Parameters
    ----------
    memory
        Memory needed, in bytes or a multiple.
    budgets
        Positive budgets, in bytes or a multiple, decimal or binary according to the unit.

    Raises
    ------
    ArgumentError, ArgumentUnitError
        If the memory is negative, a budget is not positive, or one has no unit of memory.

    Examples
    --------
    >>> from mlsys import Q_
    >>> memory_violations(Q_(1.2, "MiB"), [Q_(size, "MiB") for size in (0.5, 1, 2, 5)])
    {'violates_0.5mib': True, 'violates_1mib': True, 'violates_2mib': False, 'violates_5mib': False}
    """
    needed = checked_number("memory_violations", "memory", memory, nonnegative("byte"), {})
    violations = {}
    for budget in budgets:
        room = checked_number("memory_violations", "budgets", budget, positive("byte"), {})
        violations[violation_name(budget)] = bool(needed > room)
    return violations
