"""Every network cites the page that describes it, and not the page of its neighbour in the catalogue."""

import re
from collections import defaultdict

import pytest

from mlsys.workloads import zoo

# What a name adds to say how large a network of a family is.
_SIZE = re.compile(r"[-_](tiny|small|base|large|huge|nano|mini|xxlarge|[a-z]\d*)(?=$|[-_])|[-_.]?\d.*$")
# Sources that describe several families.
SEVERAL = {
    "Banbury et al. 2021": "a benchmark of four networks",
    "DeepSeek-AI 2024, arXiv:2405.04434": "its appendix B describes V2-Lite",
    "FasterTransformer, docs/": "a guide to several models",
    "He et al. 2016, CVPR, appendix": "detectron2 holds the configurations of both detectors",
    "Lin et al. 2017, CVPR; He et al. 2017": "detectron2 holds the configurations of all three detectors",
    "Jaegle et al. 2022": "two positions of one model",
    "Jouppi et al. 2017": "the workloads of the first TPU",
    "Radosavovic et al. 2020": "regnet_x and regnet_y are of one paper",
    "Tan et al. 2020, CVPR": "google/automl has a table of each",
    "Touvron et al. 2021": "the sizes of one family",
    "an exercise of this book": "ours",
}
# What the source of a network must say, where one of its relatives has a page of its own.
SAYS = {
    "efficientnet_lite0": "efficientnet/lite",  # Tan & Le 2019, table 1, has no Lite model
    "resnet50_v2": "ECCV, figure 4 (e)",  # full pre-activation; figure 1 has no (e)
    "resnet101_v2": "ECCV, figure 4 (e)",
    "resnet152_v2": "ECCV, figure 4 (e)",
    "phi-2": "Javaheripi & Bubeck 2023",  # Li et al. 2023 describe phi-1.5
    "phi-3-mini": "arXiv:2404.14219",
    "llama-2-7b": "arXiv:2307.09288",
    "codellama-13b": "arXiv:2308.12950",
}


def test_networks_of_several_families_share_a_source_only_where_it_describes_them_all() -> None:
    families: dict[str, set[str]] = defaultdict(set)
    for name in zoo.networks():
        families[zoo.entry(name).source].add(_SIZE.sub("", name))
    shared = {source: names for source, names in families.items() if len(names) > 1}
    unexplained = {source: names for source, names in shared.items() if not source.startswith(tuple(SEVERAL))}
    assert not unexplained, "does the source describe each of them? Give them sources of their own, or say why here"
    assert all(any(source.startswith(start) for source in families) for start in SEVERAL), "a reason that is not needed"


@pytest.mark.parametrize("name", SAYS)
def test_a_network_cites_its_own_page(name: str) -> None:
    assert SAYS[name] in zoo.entry(name).source


def test_lite0_has_the_products_that_its_ports_count() -> None:
    """d-li14/efficientnet-lite.pytorch, README.md@e7c6558: 4.652 M parameters, 0.385 G. Google prints 407 M."""
    network = zoo.network("efficientnet_lite0")
    assert network.parameters.m_as("param") / 1e6 == pytest.approx(4.652, abs=5e-4)
    assert network.macs.m_as("MAC") / 1e9 == pytest.approx(0.385, abs=5e-4)
    assert "407 M" in zoo.entry("efficientnet_lite0").note
