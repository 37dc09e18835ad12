// Without this the page says the same; with it, films play and charts show the numbers under the pointer.
"use strict";

const SECONDS_PER_FRAME = 0.6;
const calm = matchMedia("(prefers-reduced-motion: reduce)");

function film(root) {
  const rows = [...root.querySelectorAll(".row.frames")].map((row) => ({
    name: row.dataset.name,
    frames: [...row.querySelectorAll(".frame")],
  }));
  const actions = [...root.querySelectorAll(".heads small")].map((label) => label.textContent);
  const player = root.querySelector(".player");
  const [button, slider, output] = ["button", "input[type=range]", "output"].map((part) => player.querySelector(part));
  let at = 0;
  let timer = null;
  let chosen = false; // whether the reader has used the controls: from then on nothing starts or stops by itself

  const panels = rows.map((row) => {
    const panel = document.createElement("figure");
    const caption = document.createElement("figcaption");
    caption.textContent = row.name;
    panel.append(row.frames[0].cloneNode(true), caption);
    player.querySelector(".panels").append(panel);
    return panel;
  });

  function show(frame) {
    at = frame;
    slider.value = at;
    output.textContent = at ? `${at}: ${actions[at]}` : "0: start";
    rows.forEach((row, index) => panels[index].firstChild.replaceWith(row.frames[at].cloneNode(true)));
  }

  function play(on) {
    clearInterval(timer);
    timer = on ? setInterval(() => show((at + 1) % rows[0].frames.length), 1000 * SECONDS_PER_FRAME) : null;
    button.textContent = on ? "Pause" : "Play";
  }

  button.addEventListener("click", () => {
    chosen = true;
    play(timer === null);
  });
  slider.addEventListener("input", () => {
    chosen = true;
    play(false);
    show(Number(slider.value));
  });
  for (const what of ["wrong", "copy"]) {
    const box = player.querySelector(`.show-${what}`);
    box.addEventListener("change", () => root.classList.toggle(`hide-${what}`, !box.checked));
  }
  // Films play while they are visible, unless the reader prefers reduced motion.
  new IntersectionObserver(([seen]) => {
    if (!chosen) play(seen.isIntersecting && !calm.matches);
  }, { threshold: 0.5 }).observe(player);
  calm.addEventListener("change", () => calm.matches && play(false));
  player.hidden = false;
  show(0);
}

function chart(plot) {
  const lines = JSON.parse(plot.dataset.lines);
  const area = plot.querySelector(".area");
  const rule = plot.querySelector(".rule");
  const figure = plot.closest("figure");
  const outputs = [...figure.querySelectorAll(".legend output")];
  const label = figure.querySelector(".x-label");
  const words = label.textContent;

  function nearest(line, where) {
    let best = 0;
    line.at.forEach((value, index) => {
      if (Math.abs(value - where) < Math.abs(line.at[best] - where)) best = index;
    });
    return best;
  }

  area.addEventListener("pointermove", (event) => {
    const box = area.getBoundingClientRect();
    const where = (event.clientX - box.left) / box.width;
    const found = lines.map((line) => nearest(line, where));
    const far = (index) => Math.abs(lines[index].at[found[index]] - where);
    const closest = lines.map((_, index) => index).sort((one, other) => far(one) - far(other))[0];
    rule.style.left = `${100 * lines[closest].at[found[closest]]}%`;
    rule.style.display = "block";
    outputs.forEach((output, index) => { output.textContent = lines[index].say[found[index]]; });
    const alone = outputs.length ? "" : `: ${lines[0].say[found[0]]}`;
    label.textContent = `${words}, ${lines[closest].x[found[closest]]}${alone}`;
  });
  area.addEventListener("pointerleave", () => {
    rule.style.display = "none";
    outputs.forEach((output) => { output.textContent = ""; });
    label.textContent = words;
  });
}

document.querySelectorAll(".film").forEach(film);
document.querySelectorAll(".plot").forEach(chart);
