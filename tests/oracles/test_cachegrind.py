"""The cache simulator against valgrind's cachegrind, on compiled loops.

Cachegrind simulates a first and a last level of least-recently-used, write-allocate caches
for every load and store that a program makes. The program runs three products on arrays that
lie where :func:`gemm_trace` puts them, each in a function of its own, on memory not touched
before; cachegrind's counts are read for each function.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from mlsys.models.cache import Cache, gemm_trace, simulate
from mlsys.units import Q_

N, T = 44, 12
PROGRAM = f"""
#include <stdlib.h>
#include <sys/mman.h>
#define N {N}
#define T {T}
/* Three arrays a product, at addresses known when compiled: no register is spent on where they
   are, so that loops and sums stay in registers and nothing else touches memory. */
#define ROOM 0x20000000
#define PAGES ((N * N * 4 + 4095) / 4096 * 4096)
#define ARRAY(nest, which) ((volatile float *) (ROOM + ((nest) << 20) + (which) * PAGES))
#define NEST static void __attribute__((noinline))
/* Volatile: each access is made, and in the order written. */
static inline float multiply_add(volatile float *a, volatile float *b, float sum) {{
    float x = *a, y = *b;
    return sum + x * y;
}}
static inline int least(int x, int y) {{ return x < y ? x : y; }}

NEST plain(void) {{
    volatile float *a = ARRAY(0, 0), *b = ARRAY(0, 1), *c = ARRAY(0, 2);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {{
            float sum = c[i * N + j];
            for (int k = 0; k < N; k++) sum = multiply_add(a + i * N + k, b + k * N + j, sum);
            c[i * N + j] = sum;
        }}
}}
NEST rows(void) {{
    volatile float *a = ARRAY(1, 0), *b = ARRAY(1, 1), *c = ARRAY(1, 2);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {{
            float factor = a[i * N + k];
            for (int j = 0; j < N; j++) {{
                float product = factor * b[k * N + j];
                c[i * N + j] = c[i * N + j] + product;
            }}
        }}
}}
NEST blocked(void) {{
    volatile float *a = ARRAY(2, 0), *b = ARRAY(2, 1), *c = ARRAY(2, 2);
    for (int I = 0; I < N; I += T)
        for (int J = 0; J < N; J += T)
            for (int K = 0; K < N; K += T)
                for (int i = I; i < least(I + T, N); i++)
                    for (int j = J; j < least(J + T, N); j++) {{
                        float sum = c[i * N + j];
                        for (int k = K; k < least(K + T, N); k++) sum = multiply_add(a + i * N + k, b + k * N + j, sum);
                        c[i * N + j] = sum;
                    }}
}}
int main(void) {{
    void *room = (void *) ROOM;
    if (mmap(room, 3 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != room) exit(1);
    plain();
    rows();
    blocked();
    return 0;
}}
"""
NESTS = {"plain": (None, "mnk"), "rows": (None, "mkn"), "blocked": (T, "mnk")}
FRAME = 16
"""Accesses that a call makes besides: registers saved, and the address to return to."""
MISSING = [tool for tool in ("gcc", "valgrind") if shutil.which(tool) is None]
LEVELS = {
    "small": (Cache(Q_(4, "KiB"), Q_(64, "byte"), 2, "D1"), Cache(Q_(32, "KiB"), Q_(64, "byte"), 8, "LL")),
    "direct": (Cache(Q_(8, "KiB"), Q_(32, "byte"), 1, "D1"), Cache(Q_(16, "KiB"), Q_(32, "byte"), 16, "LL")),
}
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"needs {' and '.join(MISSING)}: apt-get install {' '.join(MISSING)}"
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cachegrind")
    (folder / "nests.c").write_text(PROGRAM)
    # -Og keeps sums and addresses in registers and leaves loops and loads as they are written.
    options = ["-Og", "-g", "-fno-tree-vectorize"]
    command = ["gcc", *options, "-o", str(folder / "nests"), str(folder / "nests.c")]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return folder / "nests"


def counted(program: Path, first: Cache, last: Cache) -> dict[str, dict[str, int]]:
    """Return cachegrind's counts, by function and event."""
    report = program.with_suffix(".out")
    shapes = [f"{c.lines * c.line_bytes},{c.ways},{c.line_bytes}" for c in (first, last)]
    options = ["--tool=cachegrind", "--cache-sim=yes", f"--cachegrind-out-file={report}", "--I1=32768,8,64"]
    subprocess.run(
        ["valgrind", *options, f"--D1={shapes[0]}", f"--LL={shapes[1]}", str(program)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    counts: dict[str, dict[str, int]] = {}
    events: list[str] = []
    current = ""
    for line in report.read_text().splitlines():
        if line.startswith("events:"):
            events = line.split()[1:]
        elif line.startswith("fn="):
            current = line[3:]
        elif line[:1].isdigit() and current in NESTS:
            into = counts.setdefault(current, dict.fromkeys(events, 0))
            for event, number in zip(events, line.split()[1:], strict=True):
                into[event] += int(number)
    return counts


@pytest.mark.parametrize("levels", LEVELS)
def test_misses_are_those_of_cachegrind(program: Path, levels: str) -> None:
    first, last = LEVELS[levels]
    theirs = counted(program, first, last)
    assert set(theirs) == set(NESTS)
    for name, (tile, order) in NESTS.items():
        trace = gemm_trace(N, N, N, Q_(4, "byte"), tile, order, registers=True)
        ours, theirs_here = simulate(trace, first, last), theirs[name]
        near, far = ours.levels
        reads, writes = int((trace.kinds % 2 == 0).sum()), int((trace.kinds % 2).sum())
        assert 0 <= theirs_here["Dr"] - reads <= FRAME, "the program reads what the trace reads"
        assert 0 <= theirs_here["Dw"] - writes <= FRAME
        pairs = {
            "D1mr": near.read_misses,
            "D1mw": near.write_misses,
            "DLmr": far.read_misses,
            "DLmw": far.write_misses,
        }
        for event, misses in pairs.items():
            assert 0 <= theirs_here[event] - sum(misses.values()) <= FRAME, f"{event} of {name}"
