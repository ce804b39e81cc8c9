"""The lab on reading a real network. Every number in a question or an answer is estimated here by the model."""

import html
import tempfile
from pathlib import Path
from typing import Any

import ipywidgets

from mlsys import analyze
from mlsys.files import write_text
from mlsys.hardware import Hardware
from mlsys.models.analysis import Analysis
from mlsys.viz.views.network import BATCHES, NETWORKS, SOFTWARE, NetworkScene, gpus
from mlsys.viz.words import device_name
from mlsys.widgets import parts
from mlsys.widgets.lab import Lab
from mlsys.widgets.parts import Control, choice, slider

_FORMATS = ("fp32", "fp16", "int8")
_MOST_LETTERS = 100_000
_INVITED = (
    "<p>Type the name of any network of the catalogue, or paste the <code>config.json</code> of a language model, and "
    "name any device. The answer is that of <code>mlsys analyze</code>; it is handed in with your work.</p>"
)


class RealNetworkLab(Lab):
    """Predict, explore and check where the time of a real network goes, and read one of your own.

    Examples
    --------
    >>> lab = RealNetworkLab()
    >>> lab.predict(3)
    >>> lab.view.values["times"].batch
    1
    """

    id = "lab-11-real-network"
    title = "Lab 11: Read a real network"
    purpose = (
        "A network of tens of layers runs on a device, and each layer waits for something else. Find out which of them "
        "lie at the roof, where the time goes, and what to fix first."
    )
    scene = NetworkScene
    predicts = ("network", "device", "batch", "precision", "software")
    frames = {  # noqa: RUF012
        "batch": (1, 22, 44, 72),
        "network": ("resnet50", "mobilenet_v2"),
        "device": ("T4", "A100_80GB", "H100_SXM"),
        "precision": ("fp16", "int8"),
        "software": ("compiled", "eager"),
    }

    def _controls(self) -> tuple[Control, ...]:
        known = [(device_name(Hardware[device]), device) for device in gpus()]
        labels = [label for label, _ in known]
        devices = [(label if labels.count(label) == 1 else Hardware[device].name, device) for label, device in known]
        return (
            choice(
                "network", "Workload", "Network", [(name, key) for key, name in NETWORKS.items()], "resnet50",
                "What is run; your own one can be read below",
            ),
            slider(
                "batch", "Workload", "Batch", [(str(batch), batch) for batch in BATCHES], 1,
                "How many samples are computed together",
            ),
            choice(
                "precision", "Mapping", "Number format", [(name.upper(), name) for name in _FORMATS], "fp16",
                "How values are stored and multiplied",
            ),
            choice(
                "software", "Mapping", "Software", [(words, key) for key, words in SOFTWARE.items()], "compiled",
                "Whether a compiler fuses the operators",
            ),
            choice("device", "Hardware", "Device", devices, "A100_80GB", "Any GPU on record that has FP16"),
        )  # fmt: skip

    def _guessed(self, given: Any) -> tuple[float, ...]:
        """Return the attained performance that the predicted share of the peak means, in TFLOP/s."""
        assert self.view is not None
        return (float(given) / 100 * self.view.values["times"].peak / 1e12,)

    def _more(self) -> tuple[Any, ...]:
        layout, style = {"width": "100%", "max_width": "36em"}, {"description_width": "initial"}
        self.own = ipywidgets.Textarea(description="Network or config.json", rows=4, style=style, layout=layout)
        self.own_device = ipywidgets.Text(value="A100", description="Device by name", style=style, layout=layout)
        self.own_batch = ipywidgets.BoundedIntText(
            value=1, min=1, max=4096, description="Samples at once", style=style, layout=layout
        )
        self.own_button = parts.button("Read it")
        self.own_message = ipywidgets.HTML("")
        self.own_button.on_click(lambda _: self.read_own())
        fields = [self.own, self.own_device, self.own_batch, self.own_button, self.own_message]
        return (parts.heading("A network of your own"), parts.text(_INVITED), ipywidgets.VBox(fields))

    def read_own(self) -> None:
        """Analyse the network in the fields, tell the result, and keep it to be handed in."""
        text = self.own.value.strip()[:_MOST_LETTERS]
        if not text:
            self.own_message.value = parts.live_note("note", "Type the name of a network first, such as densenet121.")
            return
        try:
            answer = self._analysed(text)
        except (ValueError, LookupError, OSError, TypeError) as error:
            result = str(error).strip().splitlines() or [type(error).__name__]
            self.own_message.value = parts.live_note("wrong", result[0])
            return
        self.own_message.value = (
            parts.live_note("note", answer.first)
            + f"<pre style='overflow-x:auto'>{html.escape(answer.explain(8))}</pre>"
        )
        record = {
            "network": answer.workload,
            "device": answer.device,
            "batch": answer.samples,
            "milliseconds": answer.estimate.m_as("ms"),
            "at_least": answer.bound.m_as("ms"),
            "limited_by": answer.limited_by,
            "first": answer.first,
        }
        self.keep_measurement("own-network", record)

    def _analysed(self, text: str) -> Analysis:
        batch, device = int(self.own_batch.value), self.own_device.value.strip()
        if not text.startswith("{"):
            return analyze(device, text, batch=batch)
        with tempfile.TemporaryDirectory(prefix="mlsys-own-") as folder:
            path = write_text(Path(folder) / "config.json", text)
            return analyze(device, path, batch=batch)
