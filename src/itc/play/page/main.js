// Puts the page together: what the server says is shown, what the player does is sent.

import { Settings, make, showLikely } from "./controls.js";
import { showCurves } from "./curves.js";
import { Atlas, drawFrame, drawOver } from "./draw.js";
import { Keys } from "./keys.js";
import { ARROWS, fillKeys, fillPad } from "./pad.js";
import { Wire, unpackAtlas, unpackFrame } from "./wire.js";

const IN_FLIGHT = 2; // frames asked for and not yet drawn
const FRAME_MAKERS = new Set(["step", "start", "rewind", "panels", "replay"]); // each is answered by one frame, or an error
const ERROR_STAYS = 8000; // milliseconds
const POLICY_SPEED = 4; // steps per second where the game itself waits for a key
const $ = (id) => document.getElementById(id);
const phone = matchMedia("(max-width: 40rem)");

const state = {
  world: null, atlas: null, panels: [], views: [], step: 0, seen: 0, asked: 0, ready: false,
  paused: false, policy: false, pointed: null, doing: null,
  names: [], // of the panels that were asked for last
  touched: false, // since the start; a game with a clock waits until its player is there
};
const keys = new Keys();
const settings = new Settings($("sliders"), (changed) => {
  wire.send({ do: "set", panel: Number($("which").value), settings: changed });
});

const wire = new Wire({
  message(message) { (answers[message.kind] ?? (() => {}))(message); },
  frame(buffer) {
    const { world } = state;
    if (!world) return;
    const frame = unpackFrame(buffer, world.grid[0] * world.grid[1], world.frame[0] * world.frame[1]);
    state.asked = Math.max(0, state.asked - 1);
    state.seen = frame.number;
    state.step = frame.step;
    for (const [index, panel] of frame.panels) {
      if (!state.panels[index]) continue;
      const last = state.panels[index];
      // Only of consecutive steps is it known what changed.
      const before = frame.step === last.at + 1 ? last.tokens : undefined;
      Object.assign(last, { picture: undefined, before, at: frame.step }, panel);
    }
    draw();
  },
  atlas(buffer) { state.atlas = new Atlas(unpackAtlas(buffer)); },
  film(buffer) { download(new Blob([buffer], { type: "image/gif" }), `${state.world.name}.gif`); said("recorded", "GIF saved"); },
  state(kind) {
    document.body.dataset.state = kind;
    state.asked = 0;
    state.ready = false;
    status("The connection is lost; trying again …");
  },
});

const answers = {
  hello(message) {
    document.body.dataset.state = "connected";
    if (message.watching) return show("watch");
    listWorlds(message.worlds);
    if (state.world) return undefined; // coming back
    const before = decodeURIComponent(location.hash.slice(1)); // the page was loaded again
    const name = message.worlds.some((world) => world.name === before) ? before : message.opened;
    if (name) return open(name);
    show("shelf");
    status("");
    return undefined;
  },
  lost() { if (state.world) open(state.world.name); },
  back() { state.ready = true; status(""); },
  progress({ words }) { state.doing = { words, since: Date.now() }; status(`${words} …`); },
  ready() { state.ready = true; state.doing = null; document.body.dataset.state = "ready"; status(""); },
  error({ words, asked }) {
    state.names = state.panels.map(({ name }) => name);
    state.doing = null;
    if (FRAME_MAKERS.has(asked)) state.asked = Math.max(0, state.asked - 1);
    status(words, true);
  },
  world(world) {
    const again = state.world?.identity === world.identity;
    Object.assign(state, { world, asked: 0, pointed: null });
    if (!again) Object.assign(state, { paused: false, policy: false, atlas: null, touched: false });
    keys.open(world);
    document.title = `${world.name} · itc play`;
    history.replaceState(null, "", `#${encodeURIComponent(world.name)}`);
    $("world").value = world.name;
    $("speed").value = world.clock || POLICY_SPEED;
    fillPad($("pad"), world, keys, (action) => { touch(); if (action !== null) step(action); });
    fillKeys($("game-keys"), world);
    show("table");
    showModes();
  },
  panels({ panels }) { setPanels(panels); },
  settings({ panel, settings: now }) {
    if (state.panels[panel]) state.panels[panel].settings = now;
    showSettings();
  },
  likely({ cell, likely }) {
    if (state.pointed?.cell !== cell) return;
    const columns = state.world.grid[1];
    $("cell").textContent = `row ${Math.floor(cell / columns) + 1}, column ${(cell % columns) + 1}: ${likely.length ? "before copying, the model considered" : "real, or not predicted yet"}`;
    showLikely($("likely"), likely, state.atlas);
  },
  recording({ recording }) {
    download(new Blob([JSON.stringify(recording)], { type: "application/json" }), `${recording.world}-${recording.seed}.json`);
    said("recorded", `saved: ${recording.actions.length} steps`);
  },
  watch(message) { watching(message); },
};

function open(name) {
  status(`opening ${name} …`);
  state.ready = false;
  document.body.dataset.state = "opening";
  wire.send({ do: "open", world: name });
}

function show(id) {
  for (const part of ["shelf", "table", "watch"]) $(part).hidden = part !== id;
  document.body.dataset.view = id;
}

// Messages that are answered by a frame are counted until it is here.
function ask(message) {
  const sent = wire.send(message);
  if (sent) state.asked += 1;
  return sent;
}

function status(words, wrong = false) {
  state.wrongAt = wrong ? Date.now() : null;
  $("status").textContent = words;
  $("status").classList.toggle("wrong", wrong);
}

setInterval(() => {
  const { doing, wrongAt } = state;
  if (wrongAt && Date.now() - wrongAt > ERROR_STAYS) status("");
  if (doing && Date.now() - doing.since > 2000) status(`${doing.words} … ${Math.round((Date.now() - doing.since) / 1000)} s`);
}, 1000);

function said(id, words) { $(id).textContent = words; }

function listWorlds(worlds) {
  const options = worlds.map(({ name }) => make("option", { value: name }, [name]));
  $("world").replaceChildren(...options);
  $("worlds").replaceChildren(...worlds.map(({ name, environment, plays, picture }) => {
    const button = make("button", { type: "button" }, [make("b", {}, [name]), make("small", {}, [environment]), make("small", {}, [plays ?? ""])]);
    if (picture) button.prepend(make("img", { src: blobOf(picture, "image/png"), alt: "" }));
    button.addEventListener("click", () => open(name));
    return make("li", {}, [button]);
  }));
}

function setPanels(panels) {
  state.panels = panels.map((panel, index) => ({ ...(state.panels[index]?.name === panel.name ? state.panels[index] : {}), ...panel, imagined: panel.settings !== null }));
  state.names = panels.map(({ name }) => name);
  state.views = state.panels.map((panel, index) => view(panel, index));
  $("panels").replaceChildren(...state.views.map(({ figure }) => figure));
  $("panels").dataset.count = panels.length;
  const imagined = state.panels.map((panel, index) => [panel, index]).filter(([panel]) => panel.imagined);
  const before = $("which").value;
  $("which").replaceChildren(...imagined.map(([panel, index]) => make("option", { value: index }, [panel.name])));
  if (imagined.some(([, index]) => String(index) === before)) $("which").value = before;
  showSettings();
  draw();
}

function view(panel, index) {
  const { world } = state;
  const choices = [...world.decoders, world.real];
  const select = make("select", { "aria-label": `panel ${index + 1}` }, choices.map((name) => make("option", { value: name, selected: name === panel.name, disabled: name !== panel.name && state.panels.some((other) => other.name === name) }, [name])));
  select.addEventListener("change", () => {
    choose(state.panels.map((other, place) => (place === index ? select.value : other.name)));
    select.blur();
  });
  const tag = make("span", { className: "tag" });
  const frame = make("canvas", { className: "frame", role: "img", "aria-label": `${panel.name}: the current frame` });
  const over = make("canvas", { className: "over" });
  const stack = make("div", { className: "stack" }, [frame, over]);
  stack.style.aspectRatio = `${world.frame[1]} / ${world.frame[0]}`;
  const counters = make("dl", { className: "counters" });
  const figure = make("figure", {}, [make("figcaption", {}, [select, tag]), stack, counters]);
  stack.addEventListener("pointermove", (event) => point(event, stack, index));
  stack.addEventListener("pointerdown", (event) => point(event, stack, index));
  stack.addEventListener("pointerleave", () => { state.pointed = null; draw(); });
  return { figure, frame, over, tag, counters };
}

function point(event, stack, panel) {
  const box = stack.getBoundingClientRect();
  const [rows, columns] = state.world.grid;
  const row = Math.floor((rows * (event.clientY - box.top)) / box.height);
  const column = Math.floor((columns * (event.clientX - box.left)) / box.width);
  if (row < 0 || column < 0 || row >= rows || column >= columns) return;
  const cell = row * columns + column;
  if (state.pointed?.cell === cell && state.pointed.panel === panel) return;
  state.pointed = { panel, cell };
  look();
  draw();
}

function look() {
  if (state.pointed && state.ready) wire.send({ do: "look", ...state.pointed });
}

function draw() {
  const { world, panels, views, atlas } = state;
  if (!world || !panels.length || !panels[0].tokens) return;
  const shown = Object.fromEntries(["arrows", "generated", "different", "doubt"].map((name) => [name, $(`show-${name}`).checked]));
  const real = panels.find((panel) => !panel.imagined && panel.tokens);
  let differing = 0;
  panels.forEach((panel, index) => {
    if (!panel.tokens) return;
    drawFrame(views[index].frame, panel, world, atlas);
    drawOver(views[index].over, panel, world, panels[0], shown, state.pointed ? state.pointed.cell : null);
    views[index].figure.classList.toggle("ended", panel.ended);
    const note = panel.ended ? "ended" : panel.imagined ? "" : panel.same_state ? "the game itself" : "another episode";
    views[index].tag.textContent = note;
    count(views[index].counters, panel, world, panel === real ? null : real);
    if (index) differing += panel.tokens.reduce((sum, token, cell) => sum + (token !== panels[0].tokens[cell]), 0);
  });
  said("step-said", `step ${state.step}`);
  Object.assign(document.body.dataset, { step: state.step, differing, shown: panels.filter((panel) => panel.tokens).length });
  showNotice();
}

function showNotice() {
  const { world, panels, paused, touched } = state;
  const words = [
    [panels[0]?.ended, `The episode has ended here: ${phone.matches ? "“new start”" : "Enter"} begins another`],
    [world.clock > 0 && paused, phone.matches ? "Paused" : "Paused: press . to go on, e for one step"],
    [world.clock > 0 && !touched, `The clock starts with your first ${phone.matches ? "button" : `key: ${world.actions.filter((name) => name !== "noop").slice(0, 5).map((name) => ARROWS[name] ?? name).join(" ")}, or m for the policy`}`],
  ].find(([holds]) => holds)?.[1];
  $("notice").hidden = !words;
  if (words) said("notice", words);
}

function touch() {
  state.touched = true;
  showNotice();
}

function count(list, panel, world, real) {
  const rate = (of) => (of.paired ? (of.stayed / of.paired).toFixed(2) : "–");
  const rows = [["reward", panel.reward.toFixed(Number.isInteger(panel.reward) ? 0 : 1), real?.reward.toFixed(Number.isInteger(real.reward) ? 0 : 1)]];
  if (world.counts) {
    for (const [name, words] of [["duplicated", "duplicated"], ["vanished", "vanished"], ["transmuted", "changed"]]) rows.push([words, panel[name], real?.[name]]);
    rows.push(["stay rate", rate(panel), real ? rate(real) : undefined]);
  }
  list.replaceChildren(...rows.map(([words, value, beside]) => make("div", {}, [
    make("dt", {}, [words]),
    make("dd", {}, beside === undefined ? [`${value}`] : [`${value}`, make("small", {}, [`${beside}`])]),
  ])));
}

function showSettings() {
  const panel = state.panels[Number($("which").value)];
  settings.show(panel?.settings ?? null);
}

function choose(names) {
  if (new Set(names).size < names.length || !ask({ do: "panels", names })) return;
  state.names = names; // already, as the next key may come before the answer
}

function panelsBy(change) {
  const { names } = state;
  if (change < 0 && names.length > 1) choose(names.slice(0, -1));
  if (change > 0 && names.length < 3) {
    const order = [state.world.first[0], "sample", state.world.real, ...state.world.decoders];
    choose([...names, order.find((name) => !names.includes(name))]);
  }
}

function step(action) {
  if (!state.ready || state.panels[0]?.ended || state.asked >= IN_FLIGHT) return;
  ask({ do: "step", action, seen: state.seen });
  if (state.pointed) look();
}

// One turn of the clock; games that wait for a key have one only while the policy plays.
function tick() {
  const { world } = state;
  if (world && state.touched && !state.paused && !document.hidden && !$("helping").open && state.asked < IN_FLIGHT) {
    if (state.policy) step(null);
    else if (world.clock) step(keys.current());
  }
  setTimeout(tick, 1000 / Number($("speed").value || 6));
}

function start() {
  if (!state.policy) state.touched = false;
  state.paused = false;
  showModes();
  ask({ do: "start" });
}

function showModes() {
  const runs = state.world.clock > 0 || state.policy;
  $("pause").querySelector("span").textContent = state.paused ? "go on" : "pause";
  $("pause").disabled = !runs;
  $("player").querySelector("span").textContent = state.policy ? "the policy plays" : "I play";
  $("player").setAttribute("aria-pressed", String(state.policy));
  $("speed-of").hidden = !runs;
  $("speed-said").textContent = `${$("speed").value}/s`;
  showNotice();
}

const commands = {
  ".": () => { if (state.touched || state.paused) state.paused = !state.paused; touch(); showModes(); },
  e: () => { if (state.world.clock) state.paused = true; showModes(); step(state.policy ? null : keys.current()); },
  m: () => { state.policy = !state.policy; state.paused = false; touch(); showModes(); },
  "[": () => panelsBy(-1),
  "]": () => panelsBy(1),
  Enter: () => start(),
  r: () => start(),
  Backspace: () => {
    if (state.world.clock) state.paused = true;
    showModes();
    if (state.asked <= IN_FLIGHT) ask({ do: "rewind", steps: 1 }); // a key that is held asks faster than it is answered
  },
  h: () => { keys.release(); $("helping").showModal(); },
};

function typing(target) {
  return target.closest?.("input, select, textarea, dialog") && !(target.type === "checkbox" || target.type === "range");
}

addEventListener("keydown", (event) => {
  if (!state.world || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const { key } = event;
  if (event.target.closest?.("button, summary, a, input") && (key === "Enter" || key === " ")) return;
  if (event.target.type === "range" && key.startsWith("Arrow")) return;
  const action = keys.action(key);
  if (action !== undefined) {
    event.preventDefault();
    touch();
    const again = keys.held.has(key.length === 1 ? key.toLowerCase() : key);
    keys.hold(key);
    if (!state.world.clock && !state.policy) step(action);
    else if (state.policy && !again) { state.policy = false; showModes(); }
    return;
  }
  const command = commands[key];
  if (command && !(event.repeat && key !== "Backspace" && key !== "e")) {
    event.preventDefault();
    command();
  }
});
addEventListener("keyup", (event) => keys.let(event.key));
addEventListener("blur", () => keys.release());
document.addEventListener("visibilitychange", () => keys.release());
addEventListener("resize", draw);
phone.addEventListener("change", draw);

for (const [id, key] of [["pause", "."], ["one", "e"], ["back", "Backspace"], ["start", "Enter"], ["player", "m"], ["fewer", "["], ["more", "]"], ["help", "h"]]) {
  $(id).addEventListener("click", () => commands[key]());
}
for (const name of ["arrows", "generated", "different", "doubt"]) $(`show-${name}`).addEventListener("change", draw);
$("world").addEventListener("change", () => { open($("world").value); $("world").blur(); });
$("which").addEventListener("change", showSettings);
$("reset").addEventListener("click", () => {
  const panel = Number($("which").value);
  wire.send({ do: "set", panel, settings: state.world.presets[state.panels[panel].name] });
});
$("speed").addEventListener("input", showModes);
$("save").addEventListener("click", () => wire.send({ do: "record", last: lastSteps() }));
$("film").addEventListener("click", () => { said("recorded", "drawing …"); wire.send({ do: "film", last: lastSteps() }); });
$("load").addEventListener("change", async () => {
  const [file] = $("load").files;
  $("load").value = "";
  if (!file) return;
  try {
    const recording = JSON.parse(await file.text());
    Object.assign(state, { paused: true, policy: false });
    showModes();
    ask({ do: "replay", recording });
  } catch {
    status(`${file.name} is not a recording`, true);
  }
});

function lastSteps() { return Math.min(1000, Math.max(1, Math.round(Number($("last").value)) || 200)); }

function download(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function watching(message) {
  if (message.run) {
    $("run-name").textContent = message.run;
    document.title = `${message.run} · itc train`;
    said("title", "itc train");
  }
  if (message.said) $("run-said").textContent = message.said;
  if (message.done !== undefined) $("run-done").value = message.done;
  if (message.lines) { showCurves($("curves"), message.lines); document.body.dataset.lines = message.lines.length; }
  if (message.film) {
    $("dream").hidden = false;
    for (const old of $("films").children) URL.revokeObjectURL(old.src);
    $("films").replaceChildren(make("img", { src: blobOf(message.film, "image/gif"), alt: "real play and imagined play from the same start" }));
    document.body.dataset.film = message.of;
  }
  if (message.status) status(message.status);
  document.body.dataset.state = "watching";
  if (message.report) location.replace("report");
}

function blobOf(text, type) {
  return URL.createObjectURL(new Blob([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], { type }));
}

tick();
