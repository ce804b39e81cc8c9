"""Registry of rules: one function per operator name."""

from collections.abc import Callable

from mlsys.workloads.torch_import.calls import Call, CallCounts

Rule = Callable[[Call], CallCounts]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of the operators called ``names``."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return register
