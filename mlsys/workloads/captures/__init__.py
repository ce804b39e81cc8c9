"""Networks of the catalogue as captured from their PyTorch code, with batch, sequence and image left free.

One file per network, made by ``make captures`` and read without torch: graph, shapes and formats, no weights. A test
captures them again and compares every count.
"""

from mlsys.workloads.captures.store import stored_template
from mlsys.workloads.captures.text import as_text, from_text

__all__ = ["as_text", "from_text", "stored_template"]
