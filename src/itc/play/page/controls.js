// The settings of a decoder as sliders, and the tokens under the pointer.

const SLIDERS = [
  ["temperature", "temperature", 0.1, 2, 0.05],
  ["distance_cost", "c_d (distance)", 0, 2, 0.01],
  ["wildcard_cost", "c_w (new token)", 0, 10, 0.05],
];
const CHOICES = [
  ["affinity", "affinity", ["probability", "log"]],
  ["noise", "noise", ["cell", "edge", "token", "none"]],
  ["solver", "solver", ["exact", "none", "sinkhorn"]],
];

export class Settings {
  constructor(root, change) {
    this.inputs = new Map();
    for (const [name, words, low, high, step] of SLIDERS) {
      const input = make("input", { type: "range", min: low, max: high, step, id: `set-${name}` });
      const output = make("output", {});
      input.addEventListener("input", () => {
        output.textContent = Number(input.value).toFixed(2);
        change({ [name]: Number(input.value) });
      });
      root.append(make("label", { className: "slider" }, [make("span", {}, [words]), input, output]));
      this.inputs.set(name, { input, output });
    }
    for (const [name, words, choices] of CHOICES) {
      const input = make("select", { id: `set-${name}` }, choices.map((choice) => make("option", { value: choice }, [choice])));
      input.addEventListener("change", () => change({ [name]: input.value }));
      root.append(make("label", { className: "slider" }, [make("span", {}, [words]), input]));
      this.inputs.set(name, { input });
    }
  }

  show(settings) {
    for (const [name, { input, output }] of this.inputs) {
      input.disabled = !settings;
      if (!settings) continue;
      if (document.activeElement !== input) input.value = settings[name];
      if (output) output.textContent = Number(settings[name]).toFixed(2);
    }
  }
}

export function make(tag, properties = {}, children = []) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function showLikely(list, likely, atlas) {
  list.replaceChildren(...likely.map(({ token, probability }) => {
    const picture = make("canvas", { className: "token" });
    if (atlas) {
      picture.width = atlas.width;
      picture.height = atlas.height;
      atlas.draw(picture.getContext("2d"), token, 0, 0);
    }
    const bar = make("meter", { min: 0, max: 1, value: probability });
    return make("li", {}, [picture, make("span", {}, [`${token}`]), bar, make("span", {}, [`${(100 * probability).toFixed(1)} %`])]);
  }));
}
