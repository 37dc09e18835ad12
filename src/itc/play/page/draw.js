// Panels: tokens drawn from the atlas, and over them where each came from.

const COLOURS = { arrow: "#4cc9ff", dark: "rgba(0, 0, 0, 0.75)", generated: "#ffffff", different: "#ffd60a" };
const ATLAS_COLUMNS = 64;

export class Atlas {
  constructor({ height, width, count, pixels }) {
    this.height = height;
    this.width = width;
    this.count = count;
    this.canvas = document.createElement("canvas");
    this.canvas.width = ATLAS_COLUMNS * width;
    this.canvas.height = Math.ceil(count / ATLAS_COLUMNS) * height;
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(this.canvas.width, this.canvas.height);
    let from = 0;
    for (let code = 0; code < count; code++) {
      const [left, top] = this.place(code);
      for (let y = 0; y < height; y++) {
        for (let x = 0; x < width; x++) {
          const to = 4 * ((top + y) * this.canvas.width + left + x);
          for (let c = 0; c < 3; c++) image.data[to + c] = pixels[from++];
          image.data[to + 3] = 255;
        }
      }
    }
    context.putImageData(image, 0, 0);
  }

  place(code) {
    return [(code % ATLAS_COLUMNS) * this.width, Math.floor(code / ATLAS_COLUMNS) * this.height];
  }

  draw(context, code, x, y) {
    const [left, top] = this.place(code);
    context.drawImage(this.canvas, left, top, this.width, this.height, x, y, this.width, this.height);
  }
}

export function drawFrame(canvas, panel, world, atlas) {
  const [height, width] = world.frame;
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = canvas.getContext("2d");
  if (panel.picture) {
    const image = context.createImageData(width, height);
    for (let i = 0, j = 0; i < panel.picture.length; i += 3, j += 4) {
      image.data[j] = panel.picture[i];
      image.data[j + 1] = panel.picture[i + 1];
      image.data[j + 2] = panel.picture[i + 2];
      image.data[j + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    return;
  }
  if (!atlas) return;
  const columns = world.grid[1];
  panel.tokens.forEach((token, cell) => {
    atlas.draw(context, token, (cell % columns) * atlas.width, Math.floor(cell / columns) * atlas.height);
  });
}

export function drawOver(canvas, panel, world, first, shown, pointed) {
  const box = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(box.width * ratio));
  canvas.height = Math.max(1, Math.round(box.height * ratio));
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const [rows, columns] = world.grid;
  const w = box.width / columns, h = box.height / rows;
  const corner = (cell) => [(cell % columns) * w, Math.floor(cell / columns) * h];
  const middle = (cell) => [(cell % columns + 0.5) * w, (Math.floor(cell / columns) + 0.5) * h];

  const outline = (cell, colour, inset, dash, width) => {
    const [x, y] = corner(cell);
    context.setLineDash([]);
    context.lineWidth = width + 2;
    context.strokeStyle = COLOURS.dark;
    context.strokeRect(x + inset, y + inset, w - 2 * inset, h - 2 * inset);
    context.setLineDash(dash);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.strokeRect(x + inset, y + inset, w - 2 * inset, h - 2 * inset);
    context.setLineDash([]);
  };

  if (shown.doubt && panel.imagined) {
    panel.doubt.forEach((doubt, cell) => {
      const share = Math.sqrt(doubt / 255); // from dark blue to yellow, which all eyes tell apart
      const [r, g, b] = [[16, 255], [24, 208], [72, 60]].map(([low, high]) => Math.round(low + share * (high - low)));
      context.fillStyle = `rgba(${r}, ${g}, ${b}, 0.72)`;
      context.fillRect(...corner(cell), w, h);
    });
  }
  if (shown.generated && panel.imagined) {
    panel.sources.forEach((source, cell) => { if (source < 0) outline(cell, COLOURS.generated, 3, [2, 3], 1.2); });
  }
  if (shown.different && first && first !== panel) {
    panel.tokens.forEach((token, cell) => { if (token !== first.tokens[cell]) outline(cell, COLOURS.different, 1.5, [], 2); });
  }
  if (shown.arrows && panel.imagined) {
    panel.sources.forEach((source, cell) => {
      if (source < 0) return;
      const [x, y] = middle(cell);
      if (source === cell) {
        context.globalAlpha = 0.35;
        context.fillStyle = COLOURS.arrow;
        context.beginPath();
        context.arc(x, y, 1.3, 0, 2 * Math.PI);
        context.fill();
        context.globalAlpha = 1;
      } else {
        // Among equal tokens it does not matter which is which: only where the cell changed does a copy show.
        const changed = !panel.before || panel.before[cell] !== panel.tokens[cell];
        context.globalAlpha = changed ? 1 : 0.25;
        arrow(context, ...middle(source), x, y, changed);
        context.globalAlpha = 1;
      }
    });
  }
  if (pointed !== null) outline(pointed, COLOURS.arrow, 0.5, [], 2);
}

function arrow(context, fromX, fromY, toX, toY, strong) {
  const angle = Math.atan2(toY - fromY, toX - fromX);
  const head = 6;
  // A little to the right of its way, so that two tokens that change places show as two arrows.
  const [asideX, asideY] = [-3 * Math.sin(angle), 3 * Math.cos(angle)];
  [fromX, fromY, toX, toY] = [fromX + asideX, fromY + asideY, toX + asideX, toY + asideY];
  for (const [colour, width] of strong ? [[COLOURS.dark, 5], [COLOURS.arrow, 2.4]] : [[COLOURS.arrow, 1]]) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.lineCap = "round";
    context.beginPath();
    context.moveTo(fromX, fromY);
    context.lineTo(toX, toY);
    for (const side of [-0.5, 0.5]) {
      context.moveTo(toX, toY);
      context.lineTo(toX - head * Math.cos(angle + side), toY - head * Math.sin(angle + side));
    }
    context.stroke();
  }
}
