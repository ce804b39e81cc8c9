"""Latencies that somebody measured; the meaning says what, on which machine.

They were not measured on one machine, nor the same way: a load, a message and a
disk read are different things. Compare orders of magnitude, not digits.
"""

from __future__ import annotations

from mlsys._facts.make import Derived, fact
from mlsys.units import Quantity

__all__ = ["DERIVED", "FACTS"]


def _chase(value: float, name: str, meaning: str, source: str, date: str, confidence: str) -> Quantity:
    return fact(
        value,
        "ns",
        name=name,
        meaning=f"load to use, one warp following pointers: {meaning}",
        source=source,
        date=date,
        confidence=confidence,
    )


_H100 = "RRZE Erlangen, github.com/te42kyfo/gpu-benches, gpu-latency/h100_pcie.txt"
_GH200 = "RRZE Erlangen, github.com/RRZE-HPC/gpu-benches, gpu-latency/gh200.txt"

FACTS = (
    _chase(
        19.4,
        "LATENCY_L1_REGISTER",
        "L1 hit, NVIDIA H100 PCIe, 34.1 cycles at 1755 MHz (working set up to 35 KiB)",
        _H100,
        "2023",
        "verified",
    ),
    _chase(
        151.3,
        "LATENCY_L2_CACHE",
        "hit in the near half of L2, NVIDIA H100 PCIe, 265.5 cycles at 1755 MHz (working set 1 to 20 MiB; 266 to 272 ns"
        " for 35 to 46 MiB, which lie in both halves)",
        _H100,
        "2023",
        "verified",
    ),
    _chase(
        373.4,
        "LATENCY_HBM2E",
        "HBM2e, NVIDIA H100 PCIe, 655.3 cycles at 1755 MHz (working set 561,642 KiB)",
        _H100,
        "2023",
        "verified",
    ),
    _chase(
        346.4,
        "LATENCY_HBM3",
        "HBM3, NVIDIA GH200 96 GB, 685.9 cycles at 1980 MHz (working set 597,502 KiB)",
        _GH200,
        "2024",
        "secondary",
    ),
    fact(
        794.0,
        "ns",
        name="LATENCY_NVLINK",
        meaning="load to use of a pointer that lies in the DRAM of another NVIDIA A100 of the same machine: the way"
        " there, the other's DRAM and the way back, not the link alone. 1120 cycles, where the own DRAM takes 560 and"
        " the other's cache 760; here at the boost clock of 1410 MHz, which the source does not state. What a"
        " regression test expects of the slowest pair, within 10 %",
        source="CSCS, github.com/reframe-hpc/reframe,"
        " cscs-checks/microbenchmarks/gpu/pointer_chase, GpuP2PLatencyP2P, ault:amda100",
        date="2021",
        uncertainty=79.0,
        confidence="secondary",
    ),
    fact(
        8.92,
        "us",
        name="LATENCY_NVLINK_COPY",
        meaning="smallest copy from GPU to GPU over NVLink 3 as software sees it, NVIDIA A100 machine with 4 GPUs;"
        " use it as the fixed cost of a transfer",
        source="H. Zhang et al., LLMCompass, ISCA 2024, github.com/PrincetonUniversity/LLMCompass,"
        " hardware_model/interconnect.py",
        date="2024",
        confidence="verified",
    ),
    fact(
        493.0,
        "ns",
        name="LATENCY_PCIE_GEN3",
        meaning="round trip of a 64-byte read of host memory by a device, median: Netronome NFP-6000, PCIe 3.0 x8,"
        " Xeon E5-2630 v4, data in the host's cache, IOMMU off",
        source="R. Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018,"
        " github.com/pcie-bench/data, nfp6000-1.2GHz_bdw-Xeon-E5-2630v4-dell-t430-s0-s0-s0/lat_cmd_sizes.txt",
        date="2018",
        confidence="verified",
    ),
    fact(
        0.83,
        "us",
        name="LATENCY_INFINIBAND",
        meaning="one way, 32-byte message, reliable connection, median of ib_send_lat: two Mellanox ConnectX-4 (EDR,"
        " 100 Gbit/s) joined by 0.5 m of copper, no switch",
        source="D. Potter, master's thesis, RWTH Aachen University, git.dennispotter.eu/Dennis/masters-thesis,"
        " tables mtu_performance and benchmark_testsystem",
        date="2018-11-09",
        confidence="verified",
    ),
    fact(
        92.0,
        "us",
        name="LATENCY_NVME_SSD",
        meaning="4 KB random read from flash, one request at a time, typical: Micron 9200, the best of the"
        " 92 to 150 µs that its models need",
        source="Micron 9200 NVMe SSD data sheet, latency to media, QD = 1",
        date="2017",
        confidence="verified",
    ),
)

DERIVED = (
    Derived(
        name="LATENCY_PCIE_GEN5",
        meaning="round trip of a 64-byte read of host memory by a device, taken as equal to the one measured on"
        " PCIe 3.0: most of it is spent in the root complex and in memory, not on the lanes",
        unit="ns",
        parts=("LATENCY_PCIE_GEN3",),
        formula="LATENCY_PCIE_GEN3, for want of a published measurement",
        compute=lambda measured: measured,
    ),
)
