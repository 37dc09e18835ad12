// The keyboard and the buttons of a phone: which action is being played.

export class Keys {
  constructor() {
    this.held = new Set();
    this.world = null;
  }

  open(world) {
    this.world = world;
    this.release();
  }

  release() {
    this.held.clear();
  }

  // The action of a key, or undefined.
  action(key) {
    if (!this.world) return undefined;
    const keys = this.world.keys;
    return keys[key] ?? keys[key.toLowerCase()];
  }

  hold(key) {
    if (this.action(key) !== undefined) this.held.add(key.length === 1 ? key.toLowerCase() : key);
  }

  let(key) {
    this.held.delete(key.length === 1 ? key.toLowerCase() : key);
  }

  // What is played now: of keys held together their common action if the game has one, else the newest key's.
  current() {
    const names = [...this.held].map((key) => this.world.actions[this.action(key)]);
    if (!names.length) return this.idle();
    const together = this.world.actions.findIndex((name) => {
      const rest = names.reduce((left, part) => left.replace(part, ""), name);
      return names.length > 1 && rest === "" && names.every((part) => name.includes(part));
    });
    return together >= 0 ? together : this.world.actions.indexOf(names.at(-1));
  }

  idle() {
    return Math.max(0, this.world.actions.indexOf("noop"));
  }
}
