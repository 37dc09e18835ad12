// The socket: frames and messages in, requests out. A lost connection comes back and goes on where it was.

const FRAME = 1, ATLAS = 2, FILM = 3;
const ENDED = 1, PICTURE = 2, WIDE_TOKENS = 4, WIDE_SOURCES = 8;
const PANEL_HEAD = 32; // bytes

export function unpackFrame(buffer, cells, pixels) {
  const view = new DataView(buffer);
  const frame = { number: view.getUint32(4, true), step: view.getUint32(8, true), panels: new Map() };
  let at = 12;
  const take = (count, wide) => {
    const found = new Uint16Array(count);
    for (let i = 0; i < count; i++) found[i] = wide ? view.getUint16(at + 2 * i, true) : view.getUint8(at + i);
    at += count * (wide ? 2 : 1);
    return found;
  };
  for (let left = view.getUint8(1); left > 0; left--) {
    const flags = view.getUint8(at + 1);
    const index = view.getUint8(at);
    const number = (place) => view.getUint32(at + 8 + 4 * place, true);
    const panel = {
      ended: Boolean(flags & ENDED),
      reward: view.getFloat32(at + 4, true),
      creatures: number(0), duplicated: number(1), vanished: number(2), transmuted: number(3), paired: number(4), stayed: number(5),
    };
    at += PANEL_HEAD;
    panel.tokens = take(cells, flags & WIDE_TOKENS);
    panel.sources = Int32Array.from(take(cells, flags & WIDE_SOURCES), (source) => source - 1);
    panel.doubt = take(cells, false);
    if (flags & PICTURE) {
      panel.picture = new Uint8Array(buffer, at, 3 * pixels);
      at += 3 * pixels;
    }
    frame.panels.set(index, panel);
  }
  return frame;
}

export function unpackAtlas(buffer) {
  const view = new DataView(buffer);
  return { height: view.getUint16(2, true), width: view.getUint16(4, true), count: view.getUint32(8, true), pixels: new Uint8Array(buffer, 12) };
}

export class Wire {
  constructor(on) {
    this.on = on; // {message, frame, atlas, film, state}
    this.session = null;
    this.tries = 0;
    this.connect();
  }

  connect() {
    const address = new URL("socket", location.href);
    address.protocol = "ws:";
    this.socket = new WebSocket(address);
    this.socket.binaryType = "arraybuffer";
    this.socket.addEventListener("open", () => { this.tries = 0; });
    this.socket.addEventListener("message", (event) => this.receive(event.data));
    this.socket.addEventListener("close", () => {
      this.on.state(this.tries ? "away" : "lost");
      this.tries += 1;
      setTimeout(() => this.connect(), Math.min(5000, 250 * 2 ** this.tries));
    });
  }

  receive(data) {
    if (typeof data === "string") {
      const message = JSON.parse(data);
      if (message.kind === "hello" && this.session) this.send({ do: "hello", session: this.session });
      else if (["hello", "back", "lost"].includes(message.kind)) this.session = message.session;
      this.on.message(message);
      return;
    }
    const kind = new Uint8Array(data, 0, 1)[0];
    if (kind === FRAME) this.on.frame(data);
    if (kind === ATLAS) this.on.atlas(data);
    if (kind === FILM) this.on.film(data.slice(1));
  }

  send(message) {
    if (this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }
}
