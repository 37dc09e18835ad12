// Without this the page says the same; with it, films play, charts show the numbers under the pointer and can be
// smoothed or drawn on a logarithmic scale, and explanations open by pointer, keyboard and touch.
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

const SIDE = 1000; // of a chart's square, which is stretched
const SHOWN = 0.35; // seconds before the pointer has rested long enough on a word

function chart(plot) {
  const { up: [low, high], lines } = JSON.parse(plot.dataset.lines);
  const named = lines.filter((line) => line.say);
  const area = plot.querySelector(".area");
  const rule = plot.querySelector(".rule");
  const figure = plot.closest("figure");
  const outputs = [...figure.querySelectorAll(".legend output")];
  const label = figure.querySelector(".x-label");
  const words = label.textContent;
  let smoothed = 0;

  function nearest(line, where) {
    let best = 0;
    line.at.forEach((value, index) => {
      if (Math.abs(value - where) < Math.abs(line.at[best] - where)) best = index;
    });
    return best;
  }

  function said(line, index) {
    return smoothed ? `${line.say[index]}, smoothed ${Number(smooth(line.y, smoothed)[index].toPrecision(3))}` : line.say[index];
  }

  area.addEventListener("pointermove", (event) => {
    const box = area.getBoundingClientRect();
    const where = (event.clientX - box.left) / box.width;
    const found = named.map((line) => nearest(line, where));
    const far = (index) => Math.abs(named[index].at[found[index]] - where);
    const closest = named.map((_, index) => index).sort((one, other) => far(one) - far(other))[0];
    rule.style.left = `${100 * named[closest].at[found[closest]]}%`;
    rule.style.display = "block";
    outputs.forEach((output, index) => { output.textContent = said(named[index], found[index]); });
    const alone = outputs.length ? "" : `: ${said(named[0], found[0])}`;
    label.textContent = `${words}, ${named[closest].x[found[closest]]}${alone}`;
  });
  area.addEventListener("pointerleave", () => {
    rule.style.display = "none";
    outputs.forEach((output) => { output.textContent = ""; });
    label.textContent = words;
  });

  // Drawn again by `tools`.
  const picture = area.querySelector("svg");
  const heights = plot.querySelector(".ys");
  const before = { heights: [...heights.children], grid: [...picture.querySelectorAll(".grid")] };
  const spots = [...picture.querySelectorAll("[data-spot]")].map((spot) => [spot, JSON.parse(spot.dataset.spot)]);
  const levels = [...picture.querySelectorAll(".level")];
  const values = [
    ...lines.flatMap((line) => [...line.y, ...(line.low || []), ...(line.high || [])]),
    ...spots.flatMap(([, [, ...ends]]) => ends),
    ...levels.map((level) => Number(level.dataset.y)),
  ];
  const positive = values.filter((value) => value > 0);

  plot.draw = (amount, wanted) => {
    smoothed = amount;
    const log = wanted && positive.length > 0 && Math.max(...positive) > Math.min(...positive);
    const [from, to] = log ? [Math.log10(Math.min(...positive)), Math.log10(Math.max(...positive))] : [low, high];
    // What is not positive lies below the bottom of a logarithmic scale.
    const y = (value) => SIDE * (1 - ((log ? Math.log10(Math.max(value, 10 ** (from - 0.02 * (to - from)))) : value) - from) / (to - from));
    const points = (at, each) => at.map((x, index) => `${(SIDE * x).toFixed(1)} ${y(each[index]).toFixed(1)}`);
    for (const path of picture.querySelectorAll("[data-line]")) {
      const line = lines[Number(path.dataset.line)];
      if (path.classList.contains("band")) {
        const [top, bottom] = [line.high, line.low].map((each) => points(line.at, smooth(each, amount)));
        path.setAttribute("d", `M${top.join("L")}L${bottom.reverse().join("L")}Z`);
      } else {
        const drawn = points(line.at, smooth(line.y, amount));
        path.setAttribute("d", `M${drawn.join("L")}${drawn.length === 1 ? "h0" : ""}`);
      }
    }
    for (const [spot, [x, bottom, middle, top]] of spots) {
      spot.querySelector(".whisker").setAttribute("d", `M${x} ${y(bottom)}V${y(top)}`);
      spot.querySelector(".spot").setAttribute("d", `M${x} ${y(middle)}h0`);
    }
    levels.forEach((level) => level.setAttribute("d", `M0 ${y(Number(level.dataset.y))}H${SIDE}`));
    picture.querySelectorAll(".grid").forEach((line) => line.remove());
    if (!log) {
      heights.replaceChildren(...before.heights);
      picture.prepend(...before.grid);
      return;
    }
    const ticks = decades(from, to);
    heights.replaceChildren(...ticks.map((value) => {
      const text = document.createElement("span");
      text.textContent = "shares" in plot.dataset ? `${Number((100 * value).toPrecision(3))} %` : String(Number(value.toPrecision(3)));
      text.style.bottom = `${100 - y(value) / 10}%`;
      return text;
    }));
    picture.prepend(...ticks.map((value) => {
      const line = document.createElementNS(picture.namespaceURI, "path");
      line.setAttribute("class", "grid");
      line.setAttribute("d", `M0 ${y(value)}H${SIDE}`);
      return line;
    }));
  };
}

// An exponential moving average that starts at the first value without a bias towards zero.
function smooth(values, amount) {
  let sum = 0;
  let weight = 0;
  return values.map((value) => {
    sum = amount * sum + (1 - amount) * value;
    weight = amount * weight + (1 - amount);
    return sum / weight;
  });
}

// Powers of ten between two logarithms; 2 and 5 times these as well where they are few, round numbers where there are none.
function decades(from, to) {
  const found = [];
  for (let power = Math.floor(from); power <= Math.ceil(to); power += 1) {
    for (const digit of to - from < 1.5 ? [1, 2, 5] : [1]) found.push(digit * 10 ** power);
  }
  const inside = found.filter((value) => Math.log10(value) >= from - 1e-9 && Math.log10(value) <= to + 1e-9);
  return inside.length > 1 ? inside : [10 ** from, 10 ** to];
}

function tools(root) {
  const plots = [...root.querySelectorAll(".plot")];
  const bar = root.querySelector(".tools");
  const [amount, said, log] = [".smooth", "output", ".log"].map((part) => bar.querySelector(part));
  const draw = () => {
    said.textContent = amount.value;
    plots.forEach((plot) => plot.draw(Number(amount.value), log.checked));
  };
  amount.addEventListener("input", draw);
  log.addEventListener("change", draw);
  bar.hidden = false;
}

// One box for all explanations. The browser's own would not open by keyboard or touch.
function tips() {
  const box = document.createElement("div");
  box.className = "tip-box";
  box.id = "tip-box";
  box.role = "tooltip";
  box.hidden = true;
  document.body.append(box);
  let shown = null;
  let timer = null;

  function hide() {
    clearTimeout(timer);
    if (shown) shown.removeAttribute("aria-describedby");
    shown = null;
    box.hidden = true;
  }

  function show(owner) {
    hide();
    shown = owner;
    box.textContent = owner.dataset.tip;
    box.hidden = false;
    owner.setAttribute("aria-describedby", box.id);
    const at = owner.getBoundingClientRect();
    const room = document.documentElement.clientWidth - box.offsetWidth - 8;
    const below = at.bottom + box.offsetHeight + 12 < innerHeight;
    box.style.left = `${scrollX + Math.max(8, Math.min(at.left, room))}px`;
    box.style.top = `${scrollY + (below ? at.bottom + 6 : at.top - box.offsetHeight - 6)}px`;
  }

  for (const owner of document.querySelectorAll(".tip[title]")) {
    owner.dataset.tip = owner.title;
    owner.removeAttribute("title");
    owner.addEventListener("pointerenter", (event) => {
      if (event.pointerType === "mouse") timer = setTimeout(() => show(owner), 1000 * SHOWN);
    });
    owner.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide());
    owner.addEventListener("focus", () => show(owner));
    owner.addEventListener("blur", hide);
    owner.addEventListener("click", (event) => {
      event.stopPropagation();
      show(owner);
    });
  }
  document.addEventListener("click", hide);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
}

// What is wider than the screen says so, as phones show no scroll bars.
function overflow(part) {
  const mark = () => {
    const left = part.scrollWidth - part.clientWidth - part.scrollLeft;
    part.parentElement.classList.toggle("more", left > 2);
  };
  part.addEventListener("scroll", mark, { passive: true });
  new ResizeObserver(mark).observe(part);
  mark();
}

document.querySelectorAll(".film").forEach(film);
document.querySelectorAll(".plot").forEach(chart);
document.querySelectorAll(".curves").forEach((root) => root.querySelector(".tools") && tools(root));
document.querySelectorAll(".wide > .scroll, .wide > .strip").forEach(overflow);
tips();
