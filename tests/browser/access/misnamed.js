// Controls whose name, as it is spoken, lacks the words that are read on them (WCAG 2.1, 2.5.3).
() => {
  const words = node => [...node.childNodes].map(child =>
    child.nodeType === 3 ? child.data
    : child.nodeType !== 1 || child.ariaHidden === "true" || !child.checkVisibility() ? ""
    : child.title && !child.textContent.trim() ? child.title : words(child)).join(" ");
  const plain = text => text.toLowerCase().replace(/[^\p{Letter}\p{Number}]+/gu, " ").trim();
  return [...document.querySelectorAll("button, summary, a[href], [role=button]")]
    .filter(it => it.ariaLabel && it.checkVisibility())
    .filter(it => !plain(it.ariaLabel).includes(plain(words(it))))
    .map(it => `${it.ariaLabel} is read ${plain(words(it))}`);
}
