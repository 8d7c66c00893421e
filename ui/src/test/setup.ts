/** What the pages expect of a browser and the test environment lacks. */
import { config } from '@vue/test-utils';
import { afterEach } from 'vitest';

// A list in a window has a height; here nothing is laid out.
for (const [name, px] of [
  ['clientHeight', 600],
  ['clientWidth', 1000],
] as const) {
  Object.defineProperty(HTMLElement.prototype, name, { configurable: true, get: () => px });
}

/** Everything is in view at once. */
class SeesAll implements IntersectionObserver {
  readonly root = null;
  readonly rootMargin = '';
  readonly scrollMargin = '';
  readonly thresholds = [];
  readonly #look: IntersectionObserverCallback;

  constructor(look: IntersectionObserverCallback) {
    this.#look = look;
  }

  observe(target: Element) {
    this.#look([{ isIntersecting: true, target } as unknown as IntersectionObserverEntry], this);
  }
  unobserve() {}
  disconnect() {}
  takeRecords() {
    return [];
  }
}
globalThis.IntersectionObserver = SeesAll;

config.global.stubs = { transition: true, 'transition-group': true };

afterEach(() => {
  document.body.innerHTML = '';
});
