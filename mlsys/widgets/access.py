"""What screen readers need and core widgets do not give: names on sliders, a region that is spoken.

The handles of ipywidgets' sliders carry no accessible name and speak the index of a
value, not its label. This script names them after the label beside them. It runs where
outputs may run scripts (JupyterLab, Colab) and changes nothing else.
"""

from __future__ import annotations

__all__ = ["SCRIPT"]

SCRIPT = """<script>
(() => {
  const name = (box) => {
    const label = box.querySelector(".widget-label");
    const handle = box.querySelector(".noUi-handle, .ui-slider-handle");
    const readout = box.querySelector(".widget-readout");
    if (!label || !handle || !readout || handle.dataset.mlsys) return;
    handle.dataset.mlsys = "named";
    handle.setAttribute("role", "slider");
    handle.setAttribute("aria-label", label.textContent);
    const speak = () => {
      if (handle.getAttribute("aria-valuetext") !== readout.textContent)
        handle.setAttribute("aria-valuetext", readout.textContent);
    };
    speak();
    const watch = new MutationObserver(speak);
    watch.observe(readout, {childList: true, characterData: true, subtree: true});
    watch.observe(handle, {attributes: true, attributeFilter: ["aria-valuetext"]});
  };
  let left = 40;
  const timer = setInterval(() => {
    document.querySelectorAll(".mlsys-lab .mlsys-control").forEach(name);
    document.querySelectorAll(".mlsys-lab .mlsys-summary .widget-html-content").forEach((box) => {
      box.setAttribute("role", "status");
      box.setAttribute("aria-live", "polite");
    });
    if (--left === 0) clearInterval(timer);
  }, 250);
})();
</script>"""
