// Each control that the keyboard reaches, focused as by the keyboard, that shows no ring.
() => {
  const controls = [...document.querySelectorAll("a[href], button, summary, input, select, [tabindex='0']")];
  const shown = controls.filter(it => it.checkVisibility({visibilityProperty: true}) && !it.disabled);
  const clear = color => /rgba\(.*, 0\)|transparent/.test(color);
  return shown.filter(it => {
    it.focus({preventScroll: true});
    if (document.activeElement !== it) return false;
    const {outlineStyle, outlineWidth, outlineColor, boxShadow} = getComputedStyle(it);
    const outlined = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 && !clear(outlineColor);
    const shadowed = boxShadow !== "none" && !clear(boxShadow.split(") ")[0] + ")");
    return !outlined && !shadowed;
  }).map(it => `${it.tagName} ${it.className} ${it.getAttribute("aria-label") ?? it.innerText}`.trim());
}
