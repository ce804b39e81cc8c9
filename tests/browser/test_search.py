"""Who searches the book for a term finds the page that teaches it first."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from searchindex import search_words
from terms import terms

pytestmark = pytest.mark.browser

# What a student would type, by the page that answers it. One list a page; add to it what readers miss.
EXPECTED = {
    "amdahl": ["Amdahl", "amdahls law", "serial fraction", "Gustafson", "strong scaling"],
    "catalogue": ["GPU", "GPUs", "A100", "H100"],
    "compiler": ["torch.compile", "TensorRT", "auto-tuning", "TVM"],
    "dataflow": ["weight stationary", "row-stationary", "Eyeriss"],
    "edge": ["quantization", "quantisation", "sparsity", "pruning", "INT8", "TinyML", "microcontroller", "NPU", "DVFS"],
    "energy": ["TDP", "energy-delay product", "joules", "energy efficiency", "energy per operation"],
    "explain": ["profiling", "MLPerf Tiny"],
    "fallacies": ["misconceptions", "lock-in"],
    "fusion": ["kernel fusion", "operator fusion", "FlashAttention", "flash attention"],
    "mapping": ["loop nest", "Timeloop", "loop order"],
    "specialisation": ["dark silicon", "Dennard", "Moore's law", "coprocessor"],
    "carbon": ["carbon footprint", "CO2", "PUE", "embodied carbon"],
    "economics": ["cost per token", "TCO", "break-even", "rent"],
    "feasibility": ["does it fit", "VRAM", "context length", "TTFT", "tensor parallelism"],
    "number_formats": ["FP8", "bfloat16", "E4M3", "MXFP4", "structured sparsity", "mixed precision"],
    "memory_wall": [
        "KV cache", "kv-cache", "key-value cache", "HBM", "DRAM", "SRAM", "warps", "coalescing", "prefetching",
        "memory bandwidth", "MLA",
    ],
    "network": ["ResNet-50", "resnet50", "kernel launch", "launch overhead"],
    "numbers_everyone_repeats": ["common mistakes"],
    "placement": ["pipeline parallelism"],
    "planning": ["NHWC", "memory planning"],
    "roofline": [
        "roofline", "arithmetic intensity", "operational intensity", "memory bound", "compute-bound", "batch size",
        "LLM", "token generation", "utilization",
    ],
    "sweep": ["design space exploration"],
    "systolic": ["systolic arrays", "TPU", "im2col"],
    "tiling": ["GEMM", "matrix multiplication", "loop tiling", "LRU cache", "double buffering"],
    "validation": ["all-reduce", "allreduce", "all reduce"],
    "vocabulary": [
        "tensor core", "tensor cores", "NVLink", "PCIe", "FLOPS", "MAC", "FP16", "half precision", "TOPS",
    ],
}  # fmt: skip


def taught() -> dict[str, str]:
    """Return the page that the glossary names for each of its terms."""
    return {term.name: term.chapter for term in terms()}


def test_the_glossary_is_read_whole() -> None:
    assert len(taught()) >= 60
    assert taught()["ridge point"] == "roofline"


# What the search page itself calls; its results end with the best.
SEARCH = """terms => Object.fromEntries(terms.map(term => [
    term, Search._performSearch(...Search._parseQuery(term)).slice(-3).reverse().map(result => result[0] + result[2])
]))"""


@pytest.fixture(scope="module")
def search(context: BrowserContext, site: str) -> Iterator[Page]:
    page = context.new_page()
    page.goto(f"{site}/search.html?q=roofline")
    page.wait_for_selector("ul.search li > a")
    yield page
    page.close()


def misplaced(search: Page, expected: dict[str, str]) -> dict[str, list[str]]:
    """Return the terms whose first hit is on another page, with the hits."""
    hits: dict[str, list[str]] = search.evaluate(SEARCH, list(expected))
    first = {term: found[0].partition("#")[0] if found else "" for term, found in hits.items()}
    return {term: hits[term] for term, page in expected.items() if first[term] != f"book/{page}"}


def test_the_page_that_teaches_a_term_is_found_first(search: Page) -> None:
    assert misplaced(search, taught()) == {}


@pytest.mark.parametrize("page", EXPECTED)
def test_what_a_student_types_finds_the_page_that_answers(search: Page, page: str) -> None:
    assert misplaced(search, dict.fromkeys(EXPECTED[page], page)) == {}


def test_words_of_the_list_lead_to_their_section(search: Page) -> None:
    places = {
        word: f"book/{page}#{section}" if section else f"book/{page}"
        for page, sections in search_words().items()
        for section, words in sections.items()
        for word in words
    }
    hits: dict[str, Any] = search.evaluate(SEARCH, list(places))
    assert {word: hits[word] for word, place in places.items() if hits[word][:1] != [place]} == {}


def test_cards_of_claims_are_not_searched(search: Page) -> None:
    """Names of values stand in cards, in lists of claims and in folded cells alone."""
    names = ["time_one_by_one", "few_rows", "gpt2_others", "board_share", "hidden_tpu"]
    assert search.evaluate(SEARCH, names) == {name: [] for name in names}


def test_american_spelling_finds_what_british_spelling_finds(search: Page) -> None:
    pairs = {
        "quantization": "quantisation", "dynamic quantization": "dynamic quantisation", "utilization": "utilisation",
        "normalization": "normalisation", "optimizer": "optimiser",
    }  # fmt: skip
    hits: dict[str, Any] = search.evaluate(SEARCH, [*pairs, *pairs.values()])
    assert {us: hits[us] for us, uk in pairs.items() if hits[us] != hits[uk]} == {}
