// Text whose contrast with the plain colour behind it is below 4.5, or 3 where it is large (WCAG 2.1, 1.4.3).
() => {
  const rgba = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const over = ([r, g, b, a = 1], below) => [r, g, b].map((each, at) => each * a + below[at] * (1 - a));
  const linear = (each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
  const luminance = (color) => {
    const [r, g, b] = color.map((each) => linear(each / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  // The colour behind an element, or nothing where an image is.
  const behind = (it) => {
    if (!it) return [255, 255, 255];
    const { backgroundColor, backgroundImage } = getComputedStyle(it);
    if (backgroundImage.includes("url")) return null;
    const own = rgba(backgroundColor);
    if ((own[3] ?? 1) === 1) return own.slice(0, 3);
    const below = behind(it.parentElement);
    return below && over(own, below);
  };
  const opacity = (it) => (it ? Number(getComputedStyle(it).opacity) * opacity(it.parentElement) : 1);
  const seen = (it) =>
    it.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
    !it.closest("[aria-hidden=true], mjx-container, script, style, noscript, :disabled");

  const faint = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim(), it = walker.currentNode.parentElement;
    const back = text && seen(it) && behind(it);
    if (!back) continue;
    const { color, fontSize, fontWeight } = getComputedStyle(it), size = parseFloat(fontSize);
    const [r, g, b, a = 1] = rgba(color);
    const front = over([r, g, b, a * opacity(it)], back);
    const [more, less] = [luminance(front), luminance(back)].sort((x, y) => y - x);
    const contrast = (more + 0.05) / (less + 0.05), large = size >= 24 || (size >= 18.66 && fontWeight >= 700);
    if (contrast < (large ? 3 : 4.5) - 0.005)
      faint.set(`${it.tagName} ${it.className}: ${contrast.toFixed(2)}`, text.slice(0, 40));
  }
  return [...faint].map((each) => each.join(" "));
}
