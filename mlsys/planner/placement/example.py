"""The mobile vision pipeline: seven stages, three devices, a plan that changes device twice."""

from typing import Any

# Stage, output (MB), then by device: time (ms), energy (mJ), memory (MB). All values are assumed.
_STAGES: tuple[tuple[str, float, dict[str, tuple[float, float, float]]], ...] = (
    ("decode", 12.0, {"cpu": (6.8, 8.9, 380), "gpu": (3.1, 5.4, 420)}),
    ("resize", 12.0, {"cpu": (5.2, 6.1, 310), "gpu": (1.9, 3.4, 350)}),
    ("backbone", 8.0, {"cpu": (64.0, 96.0, 1180), "gpu": (14.6, 31.0, 1310), "npu": (7.4, 8.1, 1240)}),
    ("neck", 6.0, {"cpu": (38.0, 55.0, 660), "gpu": (8.9, 18.2, 740), "npu": (4.7, 4.9, 700)}),
    ("detection head", 2.0, {"cpu": (41.0, 60.0, 510), "gpu": (10.3, 19.6, 580), "npu": (6.2, 5.1, 540)}),
    ("box filter", 1.0, {"cpu": (2.9, 3.8, 90), "gpu": (2.4, 4.4, 110), "npu": (1.4, 1.2, 96)}),
    ("overlay", 1.0, {"cpu": (4.9, 5.8, 240), "gpu": (2.1, 3.3, 260)}),
)
# From, to, latency (ms), bandwidth (GB/s), energy (mJ/MB); one direction each.
_LINKS = (
    ("gpu", "npu", 0.08, 12.0, 0.06),
    ("npu", "gpu", 0.04, 20.0, 0.06),
    ("cpu", "gpu", 0.10, 10.0, 0.08),
    ("gpu", "cpu", 0.10, 10.0, 0.08),
    ("cpu", "npu", 0.15, 6.0, 0.09),
    ("npu", "cpu", 0.15, 6.0, 0.09),
)


def example() -> dict[str, Any]:
    """Return the scenario of the mobile vision pipeline, as a file would say it.

    Its best plan takes 27.97 ms and 32.18 mJ and changes device twice. The values are assumed, chosen so that
    the sums of a published table come out.

    Examples
    --------
    >>> example()["links"][0]["bandwidth_gb_s"]
    12.0
    """
    return {
        "name": "mobile vision pipeline",
        "devices": [
            {"name": "cpu", "memory_mb": 2048},
            {"name": "gpu", "memory_mb": 4096},
            {"name": "npu", "memory_mb": 3072},
        ],
        "links": [
            {"from": a, "to": b, "latency_ms": wait, "bandwidth_gb_s": rate, "energy_mj_per_mb": energy}
            for a, b, wait, rate, energy in _LINKS
        ],
        "stages": [
            {
                "name": name,
                "output_mb": output,
                "profiles": {
                    device: {"latency_ms": time, "energy_mj": energy, "memory_mb": memory}
                    for device, (time, energy, memory) in profiles.items()
                },
            }
            for name, output, profiles in _STAGES
        ],
        "constraints": {"latency_ms": 40, "energy_mj": 50},
    }
