// Angles are parts of a turn; an arc of a whole turn is drawn as two halves.
const parts = JSON.parse(document.getElementById("parts").textContent);
const picture = document.getElementById("picture"), summary = document.getElementById("summary");
const total = parts.reduce((sum, cause) => sum + cause.ms, 0);
function at(turn, radius) {
  const angle = 2 * Math.PI * turn;
  return (radius * Math.sin(angle)).toFixed(3) + " " + (-radius * Math.cos(angle)).toFixed(3);
}
function ring(from, to, inner, outer) {
  if (to - from > 0.999) return ring(0, 0.5, inner, outer) + ring(0.5, 0.9999, inner, outer);
  const large = to - from > 0.5 ? 1 : 0;
  return `M${at(from, outer)}A${outer} ${outer} 0 ${large} 1 ${at(to, outer)}L${at(to, inner)}` +
    `A${inner} ${inner} 0 ${large} 0 ${at(from, inner)}Z`;
}
function words(name, ms, whole) {
  return `${name}: ${ms.toPrecision(3)} ms, ${(100 * ms / whole).toFixed(1)} % of the time`;
}
function arc(shape, fill, text, chosen) {
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", shape);
  path.setAttribute("fill", fill);
  path.setAttribute("tabindex", "0");
  path.setAttribute("role", "button");
  path.setAttribute("aria-label", text);
  path.addEventListener("focus", () => { summary.textContent = text; });
  path.addEventListener("mouseenter", () => { summary.textContent = text; });
  path.addEventListener("click", chosen);
  path.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") chosen(); });
  picture.append(path);
}
function label(text, turn, size, radius, colour, least) {
  if (size < least) return;
  const words = document.createElementNS("http://www.w3.org/2000/svg", "text");
  const [x, y] = at(turn + size / 2, radius).split(" ");
  Object.entries({x, y, fill: colour, "text-anchor": "middle", "dominant-baseline": "middle", "font-size": 8,
    "pointer-events": "none", "aria-hidden": "true"}).forEach(([name, value]) => words.setAttribute(name, value));
  words.textContent = text;
  picture.append(words);
}
function draw(only) {
  picture.replaceChildren();
  const shown = only === null ? parts : [parts[only]];
  const whole = shown.reduce((sum, cause) => sum + cause.ms, 0);
  let turn = 0;
  for (const cause of shown) {
    const end = turn + cause.ms / whole, next = only === null ? parts.indexOf(cause) : null;
    arc(ring(turn, end, 40, 95), cause.fill, words(cause.name, cause.ms, total), () => draw(next));
    label(cause.name, turn, cause.ms / whole, 68, "#fff", 0.22);
    for (const layer of cause.layers) {
      const stop = turn + layer.ms / whole;
      const text = words(`${layer.name}, ${cause.name}`, layer.ms, total);
      arc(ring(turn, stop, 100, 150), cause.pale, text, () => draw(next));
      label(layer.name, turn, layer.ms / whole, 125, "#1f2933", 0.04);
      turn = stop;
    }
    turn = end;
  }
  const help = only === null ? "a click looks closer" : "a click shows all again";
  summary.textContent = `${words(only === null ? "All" : parts[only].name, whole, total)}; ${help}`;
}
draw(null);
