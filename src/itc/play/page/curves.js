// The page of a run under way: curves as they grow, and the newest dream beside reality.

import { make } from "./controls.js";

const SHOWN = [
  ["return", "return of episodes"],
  ["running_return", "return so far of episodes that run"],
  ["score", "score, %"],
  ["world_model/token_loss", "token loss of the world model"],
  ["imagination/reward", "imagined reward per step"],
  ["imagination/impossible", "impossible frames"],
  ["codes", "codes in use"],
];
const WIDTH = 320, HEIGHT = 120;
const NS = "http://www.w3.org/2000/svg";

function chart(words, points) {
  const xs = points.map(([x]) => x), ys = points.map(([, y]) => y);
  const [low, high] = [Math.min(...ys), Math.max(...ys)];
  const [first, last] = [xs[0], xs.at(-1)];
  const place = ([x, y]) => [
    (WIDTH * (x - first)) / Math.max(1, last - first),
    HEIGHT - (HEIGHT * (y - low)) / (high - low || 1),
  ];
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("viewBox", `-4 -4 ${WIDTH + 8} ${HEIGHT + 8}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${words}: now ${said(ys.at(-1))}`);
  const line = document.createElementNS(NS, "polyline");
  line.setAttribute("points", points.map((point) => place(point).map((value) => value.toFixed(1)).join(",")).join(" "));
  const dot = document.createElementNS(NS, "circle");
  const [x, y] = place(points.at(-1));
  dot.setAttribute("cx", x);
  dot.setAttribute("cy", y);
  dot.setAttribute("r", 3);
  svg.append(line, dot);
  const range = points.length > 1 ? [make("small", {}, [` between ${said(low)} and ${said(high)}`])] : [];
  const caption = make("figcaption", {}, [make("b", {}, [words]), ` ${said(ys.at(-1))}`, ...range]);
  return make("figure", {}, [caption, svg]);
}

function said(value) {
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3)).toString();
}

export function showCurves(root, lines) {
  const charts = [];
  for (const [name, words] of SHOWN) {
    const points = lines.filter((line) => Number.isFinite(line[name])).map((line) => [line.interactions, line[name]]);
    if (points.length) charts.push(chart(words, points));
  }
  root.replaceChildren(...(charts.length ? charts : [make("p", { className: "small" }, ["The first iteration is under way."])]));
}
