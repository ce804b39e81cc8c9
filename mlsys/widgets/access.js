// What core widgets lack: names and roles for screen readers, keys that stay in the lab, focus after locking.
(() => {
  // A saved notebook may carry the script of an older version; only the very same one need not run again.
  const running = (window.mlsysLabs ||= new Set());
  if (running.has("VERSION")) return;
  running.add("VERSION");
  const put = (node, name, value) => {
    if (value && node.getAttribute(name) !== value) node.setAttribute(name, value);
  };
  const text = (node) => (node ? node.textContent.trim().replace(/\s+/g, " ") : "");
  // JupyterLab takes arrow keys and letters for commands of the notebook, unless the very element says no.
  const keepKeys = (lab) => {
    lab
      .querySelectorAll("input, textarea, select, button, summary, .noUi-handle, .ui-slider-handle, [tabindex]")
      .forEach((node) => put(node, "data-lm-suppress-shortcuts", "true"));
  };
  const nameSlider = (box) => {
    const label = box.querySelector(".widget-label");
    const handle = box.querySelector(".noUi-handle, .ui-slider-handle");
    const readout = box.querySelector(".widget-readout");
    if (!label || !handle || !readout) return;
    put(handle, "role", "slider");
    put(handle, "aria-label", text(label));
    const disabled = Boolean(box.querySelector("[disabled]"));
    put(handle, "aria-disabled", String(disabled));
    if (handle.dataset.mlsys) return;
    handle.dataset.mlsys = "named";
    // ipywidgets speaks the index of a value, not its label.
    const speak = () => put(handle, "aria-valuetext", text(readout));
    speak();
    const watch = new MutationObserver(speak);
    watch.observe(readout, { childList: true, characterData: true, subtree: true });
    watch.observe(handle, { attributes: true, attributeFilter: ["aria-valuetext"] });
  };
  let groups = 0;
  const nameRadios = (group) => {
    const box = group.querySelector(".widget-radio-box");
    const asked = group.querySelector(".mlsys-prompt");
    if (!box || !asked) return;
    put(box, "role", "radiogroup");
    // One name makes one group of them: Tab goes past it, arrow keys go through it.
    const name = (box.id ||= `mlsys-radio-${++groups}`);
    box.querySelectorAll("input[type=radio]").forEach((input) => put(input, "name", name));
    put(box, "aria-label", text(asked));
  };
  const tend = () => {
    document.querySelectorAll(".mlsys-lab").forEach((lab) => {
      lab.querySelectorAll(".mlsys-control").forEach(nameSlider);
      lab.querySelectorAll(".mlsys-predict, .mlsys-check").forEach(nameRadios);
      lab.querySelectorAll(".mlsys-design textarea").forEach((field) => {
        put(field, "aria-description", "Why this design? A sentence or two, kept for your instructor.");
      });
      lab.querySelectorAll(".mlsys-check input[type=text], .mlsys-predict input[type=text]").forEach((field) => {
        const asked = field.closest(".mlsys-check, .mlsys-predict").querySelector(".mlsys-prompt");
        put(field, "aria-description", text(asked));
      });
      keepKeys(lab);
    });
  };
  // A button that closes when it is pressed would drop the focus, and the next key would move the notebook.
  let locking = null;
  const pressed = (event) => {
    const button = event.target.closest && event.target.closest(".mlsys-lock");
    if (button) locking = button.closest(".mlsys-lab");
  };
  const hold = () => {
    if (!locking || !locking.isConnected) return;
    const comparison = locking.querySelector(".mlsys-comparison .widget-html-content");
    if (!comparison || !locking.querySelector(".mlsys-lock:disabled")) return;
    put(comparison, "tabindex", "-1");
    put(comparison, "data-lm-suppress-shortcuts", "true");
    comparison.focus({ preventScroll: true });
    locking = null;
  };
  document.addEventListener("click", pressed, true);
  // Enter presses the button of its field; leaving the field first sends what was typed.
  const enter = (event) => {
    const field = event.target;
    if (event.key !== "Enter" || event.isComposing || !field.matches || !field.matches(".mlsys-lab input[type=text]")) return;
    const part = field.closest(".mlsys-check, .mlsys-predict, .mlsys-student");
    const button = part && part.querySelector(".mlsys-enter");
    if (!button || button.disabled) return;
    event.preventDefault();
    event.stopPropagation();
    field.blur();
    button.click();
    field.focus({ preventScroll: true });
  };
  document.addEventListener("keydown", enter, true);
  let due = false;
  new MutationObserver(() => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      tend();
      hold();
    });
  }).observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled"] });
  tend();
})();
