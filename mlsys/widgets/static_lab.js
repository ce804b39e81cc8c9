// A lab in the built book, without a kernel: it marks answers and moves through frames that were computed before.
(() => {
  if (window.mlsysStaticLabs) return;
  window.mlsysStaticLabs = true;

  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const unpack = async (node) => {
    const bytes = Uint8Array.from(atob(node.textContent.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };
  const say = (place, kind, words) => {
    place.className = words ? `mlsys-${kind}` : "";
    place.textContent = words;
  };

  // What was typed: a number, or a sentence that says what to type.
  const typed = (text, question) => {
    let value = text.trim().replace(/\u2212/g, "-");
    for (const sign of [question.unit, "%", "×", "x"])
      if (sign && value.endsWith(sign)) value = value.slice(0, -sign.length).trim();
    if (!value) return "Please type a number first.";
    if (/^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(value)) value = value.replace(/,/g, "");
    const plain = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$/;
    if (!plain.test(value)) {
      const pointed = value.replace(",", ".");
      return plain.test(pointed)
        ? `Write a decimal point, not a comma: ${pointed}. A comma only groups thousands, as in 1,000.`
        : `“${value.slice(0, 40)}” is no number. Type one such as 12.5, without words.`;
    }
    const number = Number(value);
    if (!(number >= question.least && (question.most === null || number <= question.most)))
      return `You typed ${value}. The answer is a number ${question.where}; please type another.`;
    return number;
  };

  const judge = (question, given) => {
    if (question.kinds) {
      const named = given.kind === question.slip_made;
      const sound = question.slip_made === question.kinds[0];
      const near = Math.abs(given.value - question.answer) <= question.tolerance * Math.abs(question.answer);
      const right = named && (sound || near);
      const parts = `The claim is wrong; the kind of slip is ${named ? "right" : "not right"}, and the value is ${near ? "right" : "not right"}.`;
      const message = sound
        ? "The claim holds, whatever makes it look suspicious."
        : given.kind === question.kinds[0]
          ? "The claim is wrong."
          : parts;
      return { right, hint: `${message} ${question.hint}` };
    }
    if (question.choices) {
      const [text, hint, right] = question.choices[given];
      return { right, hint, given: `“${text}”` };
    }
    const right = Math.abs(given - question.answer) <= question.tolerance * Math.abs(question.answer);
    const near = ([value]) => Math.abs(given - value) <= question.slip * Math.abs(value);
    const slip = question.slips.find(near);
    const size = given > question.answer ? "too large" : "too small";
    return { right, hint: `${given} is ${size}. ${slip ? slip[1] : question.hint}`, given: `${given}${question.gap}${question.unit}` };
  };

  // Radio buttons or a field in the place of the printed list; returns a function that reads them.
  const field = (box, question, name) => {
    const list = box.querySelector("ul");
    if (question.kinds) {
      const kinds = make("select", {}, make("option", { value: "" }, "choose"));
      question.kinds.forEach((kind) => kinds.append(make("option", { value: kind }, kind)));
      const value = make("input", { type: "text", inputmode: "decimal", placeholder: "a number, such as 12.5" });
      kinds.addEventListener("change", () => (value.disabled = kinds.value === question.kinds[0]));
      box.append(
        make("p", {}, make("label", {}, "What is wrong? ", kinds)),
        make("p", {}, make("label", {}, `The right value (${question.unit}) `, value)),
      );
      return () => {
        if (!kinds.value) return "Please choose what is wrong first.";
        if (kinds.value === question.kinds[0]) return { kind: kinds.value };
        const number = typed(value.value, question);
        return typeof number === "string" ? number : { kind: kinds.value, value: number };
      };
    }
    if (question.choices) {
      const group = make("div", { role: "radiogroup", "aria-label": box.querySelector("p").textContent });
      question.choices.forEach(([text], place) => {
        const input = make("input", { type: "radio", name, value: place });
        group.append(make("label", { class: "mlsys-choice" }, input, ` ${text}`));
      });
      list.replaceWith(group);
      return () => {
        const chosen = group.querySelector("input:checked");
        return chosen ? Number(chosen.value) : "Please choose an answer first.";
      };
    }
    const input = make("input", { type: "text", inputmode: "decimal", placeholder: "a number, such as 12.5" });
    const label = make("label", {}, `Your answer (${question.unit || "a number"}) `, input);
    box.append(make("p", {}, label));
    return () => typed(input.value, question);
  };

  // Enter in a text field presses the button.
  const submits = (box, button) =>
    box.querySelectorAll("input[type=text]").forEach((input) =>
      input.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || event.isComposing || button.disabled) return;
        event.preventDefault();
        button.click();
      }),
    );

  // Questions and claims that are not answered yet; the wrap-up opens when none is left.
  const waiting = new Set();
  let unwrap = () => {};
  const done = (name) => {
    waiting.delete(name);
    if (!waiting.size) unwrap();
  };

  const HONEST = 2; // different answers after which the solution may be shown
  const ask = (box, question, name, answered) => {
    const read = field(box, question, name);
    const check = make("button", { type: "button" }, "Check my answer");
    const reveal = make("button", { type: "button", disabled: "" }, "Show the solution");
    const message = make("div", { role: "status", "aria-live": "polite" });
    const tried = new Set();
    check.addEventListener("click", () => {
      const given = read();
      if (typeof given === "string") return say(message, "note", given);
      const key = JSON.stringify(given);
      const before = tried.has(key);
      tried.add(key);
      const found = judge(question, given);
      const open = tried.size >= HONEST;
      reveal.disabled = !open || found.right;
      if (found.right) say(message, "right", `Right. ${question.solution}`);
      else if (before) say(message, "note", "You have checked this answer before; try another one.");
      else say(message, "wrong", `Not yet. ${found.hint} Try again${open ? ", or have the solution shown" : ""}.`);
      if (found.right || open) answered();
    });
    reveal.addEventListener("click", () => {
      say(message, "note", `The answer is “${question.right}”. ${question.solution}`);
    });
    submits(box, check);
    box.append(make("p", { class: "mlsys-buttons" }, check, reveal), message);
  };

  // A list for each choice of a design, and what the chosen one comes to.
  const build = (box, design) => {
    const lists = design.knobs.map((knob) => {
      const list = make("select", {}, make("option", { value: "" }, "choose"));
      knob.options.forEach((label, place) => list.append(make("option", { value: place }, label)));
      return list;
    });
    const score = make("button", { type: "button" }, "Score my design");
    const message = make("div", { role: "status", "aria-live": "polite" });
    score.addEventListener("click", () => {
      const open = design.knobs.filter((_, at) => lists[at].value === "").map((knob) => knob.label);
      if (open.length) return say(message, "note", `Choose first: ${open.join(", ")}.`);
      const place = lists.reduce((sum, list, at) => sum * design.knobs[at].options.length + Number(list.value), 0);
      say(message, ...design.outcomes[place]);
    });
    const rows = design.knobs.map((knob, at) => make("p", {}, make("label", {}, `${knob.label} `, lists[at])));
    box.querySelector("ul").replaceWith(...rows);
    box.append(make("p", { class: "mlsys-buttons" }, score), message);
  };

  // Where a prediction lies in the figure: the ends of a range, or a place twice, in parts of its width or height.
  const placed = (mark, given) => {
    if (!mark.numbers) return mark.places[given];
    const last = mark.numbers.length - 1;
    if (given <= mark.numbers[0]) return mark.places[0];
    if (given >= mark.numbers[last]) return mark.places[last];
    const after = mark.numbers.findIndex((each) => each > given);
    const [low, high] = [mark.numbers[after - 1], mark.numbers[after]];
    const part = Math.log(given / low) / Math.log(high / low);
    return mark.places[after].map((end, at) => mark.places[after - 1][at] * (1 - part) + end * part);
  };

  // The mark of the prediction over the figure, shown while the figure shows what was predicted.
  const marked = (stack, mark, given) => {
    if (!mark) return () => false;
    const ends = placed(mark, given);
    if (!ends.length) return () => false;
    const [start, end] = [ends[0], ends[ends.length - 1]];
    const [from, to] = mark.across;
    const box = make("div", { class: `mlsys-guess mlsys-along-${mark.along}`, "aria-hidden": "true" });
    const words = make("div", { class: "mlsys-guess-words", "aria-hidden": "true" }, mark.words);
    const percent = (part) => `${100 * part}%`;
    const [x, width, y, height] =
      mark.along === "x" ? [start, end - start, from, to - from] : [from, to - from, start, end - start];
    Object.assign(box.style, { left: percent(x), width: percent(width), top: percent(y), height: percent(height) });
    if (end - start < 1e-6) box.classList.add("mlsys-line");
    const late = (start + end) / 2 > mark.middle;
    const beside = late ? percent(1 - start) : percent(end);
    const place =
      mark.along === "x"
        ? { top: percent(mark.label), [late ? "right" : "left"]: beside }
        : { right: percent(1 - mark.label), [late ? "bottom" : "top"]: beside };
    Object.assign(words.style, place);
    stack.append(box, words);
    return (chosen) => {
      const here = mark.at.every((wanted, at) => wanted === null || wanted === chosen[at]);
      box.hidden = words.hidden = !here;
      return here;
    };
  };

  const explore = (lab, frames, given) => {
    const figure = lab.querySelector("figure");
    const layer = make("img", { class: "mlsys-layer", width: frames.size[0], height: frames.size[1] });
    const summary = make("p", { role: "status", "aria-live": "polite", class: "mlsys-summary" });
    const chosen = frames.controls.map((control) => control.start);
    const mark = marked(figure.querySelector(".mlsys-stack"), frames.mark, given);
    const show = () => {
      const place = chosen.reduce((sum, index, at) => sum * frames.controls[at].labels.length + index, 0);
      layer.src = `data:image/webp;base64,${frames.pictures[place]}`;
      layer.alt = frames.alts[place] + (mark(chosen) ? " Your prediction is marked." : "");
      summary.textContent = frames.summaries[place];
    };
    const panel = make("div", { class: "mlsys-panel" });
    frames.controls.forEach((control, at) => {
      const last = control.labels.length - 1;
      const input = control.list
        ? make("select", {}, ...control.labels.map((label, index) => make("option", { value: index }, label)))
        : make("input", { type: "range", min: 0, max: last, step: 1 });
      input.value = control.start;
      const out = make("output", {}, control.labels[control.start]);
      const name = () => {
        out.textContent = control.labels[chosen[at]];
        if (!control.list) input.setAttribute("aria-valuetext", control.labels[chosen[at]]);
      };
      name();
      input.addEventListener("input", () => {
        chosen[at] = Number(input.value);
        name();
        show();
      });
      panel.append(make("label", {}, `${control.name} `, input, ...(control.list ? [] : [" ", out])));
    });
    figure.querySelector("img").alt = "";
    figure.prepend(panel);
    figure.querySelector(".mlsys-stack").append(layer);
    figure.append(summary);
    show();
  };

  const start = async (lab) => {
    const data = await unpack(lab.querySelector("script[type='application/x-mlsys']"));
    const id = lab.dataset.mlsysLab;
    const open = lab.querySelectorAll(".mlsys-asked");
    const wrap = document.querySelector(`[data-mlsys-wrap="${id}"]`);
    data.questions.forEach((question) => waiting.add(`${id}-${question.name}`));
    const predict = lab.querySelector(".mlsys-predicted");
    const read = field(predict, data.prediction, `${id}-prediction`);
    const lock = make("button", { type: "button", class: "mlsys-lock" }, "Lock in my prediction");
    const message = make("div", { role: "status", "aria-live": "polite", tabindex: "-1" });
    predict.append(make("p", { class: "mlsys-buttons" }, lock), message);
    if (wrap) {
      const body = await unpack(wrap.querySelector("script[type='application/x-mlsys']"));
      unwrap = () => {
        if (!wrap.querySelector(".mlsys-opened"))
          wrap.replaceChildren(Object.assign(make("div", { class: "mlsys-opened" }), { innerHTML: body.page }));
      };
    }
    lock.addEventListener("click", () => {
      const given = read();
      if (typeof given === "string") return say(message, "note", `${given} A guess is enough.`);
      const found = judge(data.prediction, given);
      const so = data.prediction.choices ? `“${data.prediction.right}”` : data.prediction.right;
      const link = found.right ? ", and so it is" : `; it is ${so}`;
      say(message, "note", `You predicted ${found.given}${link}. ${data.prediction.solution}`);
      lock.disabled = true;
      predict.querySelectorAll("input").forEach((input) => (input.disabled = true));
      message.focus({ preventScroll: true });
      explore(lab, data.frames, given);
      open.forEach((box, at) =>
        ask(box, data.questions[at], `${id}-${at}`, () => done(`${id}-${data.questions[at].name}`)),
      );
      lab.querySelectorAll(".mlsys-designed").forEach((box, at) => build(box, data.designs[at]));
    });
    submits(predict, lock);
    lab.classList.add("mlsys-live");
  };

  const begin = () => {
    const claims = document.querySelectorAll("[data-mlsys-question]");
    claims.forEach((box) => waiting.add(box.dataset.mlsysQuestion));
    document.querySelectorAll("[data-mlsys-lab]").forEach(start);
    claims.forEach(async (box) => {
      const data = await unpack(box.querySelector("script[type='application/x-mlsys']"));
      const name = box.dataset.mlsysQuestion;
      ask(box.querySelector(".mlsys-asked"), data, name, () => done(name));
      box.classList.add("mlsys-live");
    });
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
