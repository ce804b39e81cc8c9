"""The lab on sizing a service. Every number in a question or an answer is computed here by the models."""

from typing import Any

from mlsys.labs import service
from mlsys.models.serving.copies import LOAD
from mlsys.viz.views.service import BATCHES, MODELS, REGIONS, SYSTEMS, ServiceScene
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, slider


class ServiceLab(Lab):
    """Predict, explore and check what a service of a language model needs, costs and emits.

    Examples
    --------
    >>> lab = ServiceLab()
    >>> lab.predict(3)
    >>> lab.view.values["service"].chips
    16
    """

    id = "lab-12-size-a-service"
    title = "Lab 12: Size a service"
    purpose = (
        "Users send requests to a language model and expect its tokens in time. Find out how many chips that takes, "
        "which limit binds first, and what a million tokens cost in money and in emissions."
    )
    scene = ServiceScene
    predicts = ("model", "system", "tp", "replicas", "batch", "rate")
    frames = {  # noqa: RUF012
        "batch": (32, 88, 216),
        "model": ("llama-3-8b", "llama-3-70b"),
        "tp": (1, 4, 8),
        "replicas": (1, 4, 16),
        "region": ("World", "Germany"),
    }

    def _guessed(self, given: Any) -> tuple[float, ...]:
        """Return how much of the load limit the requests would use if the prediction were right."""
        return (self.value("rate") / self.value("replicas") / max(float(given), 1e-3) / LOAD,)

    def _controls(self) -> tuple[Control, ...]:
        return (
            choice(
                "model", "Workload", "Model", [(name, key) for key, name in MODELS.items()], "llama-3-8b",
                "The language model that answers",
            ),
            slider(
                "rate", "Workload", "Requests a second", [(str(rate), rate) for rate in service.RATES], 9,
                "How many requests arrive each second on average",
            ),
            slider(
                "limit", "Workload", "Limit between tokens", [(f"{limit} ms", limit) for limit in service.LIMITS], 45,
                "The most that a token may take after the one before",
            ),
            slider(
                "tp", "Mapping", "Chips of one copy", [(str(chips), chips) for chips in service.CHIPS], 1,
                "Over how many chips each layer is split",
            ),
            slider(
                "replicas", "Mapping", "Copies", [(str(copies), copies) for copies in service.REPLICAS], 1,
                "Copies of the model that share the requests",
            ),
            slider(
                "batch", "Mapping", "Batch limit", [(str(batch), batch) for batch in BATCHES], 32,
                "Most sequences that one copy decodes at once",
            ),
            choice(
                "system", "Hardware", "Chips of a server", [(name, key) for key, name in SYSTEMS.items()], "DGX_H100",
                "Chips, and the links between them",
            ),
            choice(
                "region", "Hardware", "Grid", list(REGIONS), "World", "Where the electricity comes from",
            ),
        )  # fmt: skip
