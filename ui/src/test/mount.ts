/** Mounts the whole window over a fake program. */
import { VueQueryPlugin } from '@tanstack/vue-query';
import { enableAutoUnmount, mount } from '@vue/test-utils';
import type { VueWrapper } from '@vue/test-utils';
import { afterEach, vi } from 'vitest';

import { createQueryClient } from '../api/queries';
import App from '../App.vue';
import { createTexts } from '../locales';
import { installFake } from './fake';
import type { Fake } from './fake';

enableAutoUnmount(afterEach);

export interface Window {
  fake: Fake;
  page: VueWrapper;
  /** Text of the first element with this test id, wherever it is; empty while there is none. */
  text: (testid: string) => string;
  all: (testid: string) => HTMLElement[];
  click: (testid: string) => void;
  key: (key: string) => void;
  /** Waits for a level with a deadline. */
  until: (why: string, level: () => boolean) => Promise<void>;
}

export function openWindow(over: Partial<Fake> = {}): Window {
  const fake = installFake(over);
  const page = mount(App, {
    attachTo: document.body,
    global: { plugins: [[VueQueryPlugin, { queryClient: createQueryClient() }], createTexts()] },
  });
  const all = (testid: string) => [...document.querySelectorAll<HTMLElement>(`[data-testid="${testid}"]`)];
  return {
    fake,
    page,
    all,
    text: (testid) => all(testid)[0]?.textContent?.replace(/\s+/g, ' ').trim() ?? '',
    click: (testid) => {
      const found = all(testid)[0];
      if (!found) throw new Error(`nothing to click: ${testid}`);
      found.click();
    },
    key: (key) =>
      void (document.activeElement ?? document.body).dispatchEvent(
        new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }),
      ),
    until: (why, level) =>
      vi.waitFor(
        () => {
          if (!level()) throw new Error(why);
        },
        { timeout: 10_000, interval: 20 },
      ),
  };
}
