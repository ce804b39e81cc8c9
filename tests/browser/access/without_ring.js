// Each control that the keyboard reaches, focused as by the keyboard, that shows no ring.
() => {
  const controls = [...document.querySelectorAll("a[href], button, summary, input, select, [tabindex='0']")];
  const shown = controls.filter(it => it.checkVisibility({visibilityProperty: true}) && !it.disabled);
  const clear = color => /rgba\(.*, 0\)|transparent/.test(color);
  return shown.filter(it => {
    it.focus({preventScroll: true});
    if (document.activeElement !== it) return false;
    const around = [it, it.matches(".sd-stretched-link") && it.closest(".sd-card")]; // a card that is one link
    return !around.filter(Boolean).some(each => {
      const {outlineStyle, outlineWidth, outlineColor, boxShadow} = getComputedStyle(each);
      const outlined = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 && !clear(outlineColor);
      const ringed = /0px 0px 0px [2-9]px/.test(boxShadow) && !clear(boxShadow.split(") ")[0] + ")");
      return outlined || ringed;
    });
  }).map(it => `${it.tagName} ${it.className} ${it.getAttribute("aria-label") ?? it.innerText}`.trim());
}
