// The actions of a game: as buttons for a phone, and as the keys that the help lists.

import { make } from "./controls.js";

export const ARROWS = { up: "↑", down: "↓", left: "←", right: "→", noop: "·" };
const NAMED = { " ": "space", ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→" };

const words = (name) => name.replaceAll("_", " ");

// `play` is told the action of a button that makes a step at once, and null for one that is held like its key.
export function fillPad(root, world, keys, play) {
  const cross = make("div", { className: "cross" }), others = make("div", { className: "others" });
  world.actions.forEach((name, action) => {
    const key = Object.keys(world.keys).find((one) => world.keys[one] === action);
    const button = make("button", { type: "button", className: name, "aria-label": words(name) }, [ARROWS[name] ?? words(name)]);
    button.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      const held = world.clock && key;
      if (held) keys.hold(key);
      play(held ? null : action);
    });
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) button.addEventListener(end, () => key && keys.let(key));
    button.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") play(action); });
    (ARROWS[name] ? cross : others).append(button);
  });
  root.replaceChildren(...[cross, others].filter((part) => part.children.length));
}

export function fillKeys(root, world) {
  const byAction = new Map();
  for (const [key, action] of Object.entries(world.keys)) byAction.set(action, [...(byAction.get(action) ?? []), key]);
  root.replaceChildren(...[...byAction].map(([action, all]) => make("tr", {}, [
    make("th", {}, all.flatMap((key) => [make("kbd", {}, [NAMED[key] ?? key]), " "])),
    make("td", {}, [words(world.actions[action])]),
  ])));
}
