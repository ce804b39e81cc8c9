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

  const ask = (box, question, name, answered) => {
    const read = field(box, question, name);
    const check = make("button", { type: "button" }, "Check my answer");
    const reveal = make("button", { type: "button" }, "Show the solution");
    const told = make("div", { role: "status", "aria-live": "polite" });
    let misses = 0;
    check.addEventListener("click", () => {
      const given = read();
      if (typeof given === "string") return say(told, "told", given);
      const found = judge(question, given);
      if (found.right) say(told, "right", `Right. ${question.solution}`);
      else if (++misses < 2) say(told, "wrong", `Not yet. ${found.hint} Try again.`);
      else say(told, "wrong", `Not yet. ${found.hint} The answer is “${question.right}”. ${question.solution}`);
      answered();
    });
    reveal.addEventListener("click", () => {
      say(told, "told", `The answer is “${question.right}”. ${question.solution}`);
      answered();
    });
    box.append(make("p", { class: "mlsys-buttons" }, check, reveal), told);
  };

  const explore = (lab, frames) => {
    const figure = lab.querySelector("figure");
    const layer = make("img", { class: "mlsys-layer", width: frames.size[0], height: frames.size[1] });
    const summary = make("p", { role: "status", "aria-live": "polite", class: "mlsys-summary" });
    const chosen = frames.controls.map((control) => control.start);
    const show = () => {
      const place = chosen.reduce((sum, index, at) => sum * frames.controls[at].labels.length + index, 0);
      layer.src = `data:image/webp;base64,${frames.pictures[place]}`;
      layer.alt = frames.alts[place];
      summary.textContent = frames.summaries[place];
    };
    const panel = make("div", { class: "mlsys-panel" });
    frames.controls.forEach((control, at) => {
      const last = control.labels.length - 1;
      const input = make("input", { type: "range", min: 0, max: last, step: 1, value: control.start });
      const out = make("output", {}, control.labels[control.start]);
      const name = () => {
        out.textContent = control.labels[chosen[at]];
        input.setAttribute("aria-valuetext", control.labels[chosen[at]]);
      };
      name();
      input.addEventListener("input", () => {
        chosen[at] = Number(input.value);
        name();
        show();
      });
      panel.append(make("label", {}, `${control.name} `, input, " ", out));
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
    const left = new Set(data.questions.map((question) => question.name));
    const predict = lab.querySelector(".mlsys-predicted");
    const read = field(predict, data.prediction, `${id}-prediction`);
    const lock = make("button", { type: "button", class: "mlsys-lock" }, "Lock in my prediction");
    const told = make("div", { role: "status", "aria-live": "polite", tabindex: "-1" });
    predict.append(make("p", { class: "mlsys-buttons" }, lock), told);
    let unwrap = () => {};
    if (wrap) {
      const body = await unpack(wrap.querySelector("script[type='application/x-mlsys']"));
      const now = make("button", { type: "button", disabled: "" }, "Open it now");
      unwrap = (kind) => {
        if (kind === "allow") return now.removeAttribute("disabled");
        if (!wrap.querySelector(".mlsys-opened"))
          wrap.replaceChildren(Object.assign(make("div", { class: "mlsys-opened" }), { innerHTML: body.page }));
      };
      now.addEventListener("click", () => unwrap("open"));
      wrap.append(now);
    }
    lock.addEventListener("click", () => {
      const given = read();
      if (typeof given === "string") return say(told, "told", `${given} A guess is enough.`);
      const found = judge(data.prediction, given);
      const so = data.prediction.choices ? `“${data.prediction.right}”` : data.prediction.right;
      const link = found.right ? ", and so it is" : `; it is ${so}`;
      say(told, "told", `You predicted ${found.given}${link}. ${data.prediction.solution}`);
      lock.disabled = true;
      predict.querySelectorAll("input").forEach((input) => (input.disabled = true));
      told.focus({ preventScroll: true });
      explore(lab, data.frames);
      unwrap("allow");
      open.forEach((box, at) =>
        ask(box, data.questions[at], `${id}-${at}`, () => {
          left.delete(data.questions[at].name);
          if (!left.size) unwrap("open");
        }),
      );
    });
    lab.classList.add("mlsys-live");
  };

  const begin = () => {
    document.querySelectorAll("[data-mlsys-lab]").forEach(start);
    document.querySelectorAll("[data-mlsys-question]").forEach(async (box) => {
      const data = await unpack(box.querySelector("script[type='application/x-mlsys']"));
      ask(box.querySelector(".mlsys-asked"), data, box.dataset.mlsysQuestion, () => {});
      box.classList.add("mlsys-live");
    });
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
