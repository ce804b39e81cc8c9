"""No class of estimates grows worse unseen: its median errors are locked, in whole percent."""

from goldens import differences


def test_median_errors_are_those_locked() -> None:
    moved = differences()
    advice = "If they should move: `make goldens`, and give the reason in the changelog, under Numbers"
    assert moved == [], "\n".join([f"tests/goldens/medians.txt: errors moved. {advice}", *moved])
