import { describe, expect, it } from 'vitest';

import { PROBLEMS } from '../api/bindings';
import type { Problem } from '../api/bindings';
import en from './en';
import zhCN from './zh-CN';

function flat(messages: object, path = ''): [string, string][] {
  return Object.entries(messages).flatMap(([key, value]: [string, unknown]) =>
    typeof value === 'string'
      ? [[`${path}${key}`, value] as [string, string]]
      : flat(value as object, `${path}${key}.`),
  );
}

const HAN = /\p{Script=Han}/u;
/** A language is named in itself in both. */
const NAMED_IN_ITSELF = 'language.';
const placeholders = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort();
const sources = import.meta.glob('../**/*.{ts,vue}', { query: '?raw', import: 'default', eager: true }) as Record<
  string,
  string
>;

describe('locales', () => {
  const chinese = new Map(flat(zhCN));
  const english = new Map(flat(en));

  it('hold the same keys', () => {
    expect([...english.keys()].sort(), 'a text missing in one language would show its key').toEqual(
      [...chinese.keys()].sort(),
    );
  });

  it('hold no text of the other language and no empty text', () => {
    for (const [key, text] of english) {
      expect(text.trim(), `${key}: an empty text says nothing`).not.toBe('');
      if (!key.startsWith(NAMED_IN_ITSELF)) expect(HAN.test(text), `${key}: "${text}" is not translated`).toBe(false);
    }
    const untranslated = [...chinese].filter(
      ([key, text]) => !HAN.test(text) && !key.startsWith(NAMED_IN_ITSELF) && key !== 'app.name',
    );
    expect(
      untranslated.filter(([, text]) => /[a-z]{3}/i.test(text.replace(/\{\w+\}/g, ''))),
      'every Chinese text is Chinese',
    ).toEqual([]);
  });

  it('take the same values in both languages', () => {
    for (const [key, text] of chinese) {
      expect(placeholders(english.get(key) ?? ''), `${key}: a value shown in one language only`).toEqual(
        placeholders(text),
      );
    }
  });

  it('know every key the pages ask for', () => {
    const asked = Object.entries(sources)
      .filter(([path]) => !path.includes('.test.'))
      .flatMap(([path, text]) => [...text.matchAll(/\bt\('([\w.-]+)'/g)].map((match) => [path, match[1]!] as const));
    expect(asked.length, 'the search finds the pages').toBeGreaterThan(50);
    for (const [path, key] of asked) expect(chinese.has(key), `${path} asks for ${key}`).toBe(true);
  });

  it('have a name for every step of the collect flow', () => {
    for (const step of ['open_goods', 'read_goods', 'open_sku', 'collect_skus', 'close_sheet']) {
      expect(chinese.has(`step.${step}`), `${step} is shown to a person`).toBe(true);
    }
  });
});

describe('problems', () => {
  it('come with both languages', () => {
    for (const problem of PROBLEMS as readonly Problem[]) {
      expect(HAN.test(problem.zh.cause), `${problem.code} has a Chinese cause`).toBe(true);
      expect(HAN.test(problem.en.cause + problem.en.nextStep), `${problem.code} is English in English`).toBe(false);
    }
  });
});

describe('the door to the program', () => {
  it('is one file', () => {
    const doors = Object.entries(sources)
      .filter(([path]) => !path.includes('/test/') && !path.includes('.test.'))
      .filter(([, text]) => text.includes("'@tauri-apps/") || text.includes('"@tauri-apps/'))
      .map(([path]) => path);
    expect(doors.sort(), 'only the generated bindings import @tauri-apps').toEqual(['../api/bindings.ts']);
    const callers = Object.entries(sources)
      .filter(([path]) => !path.includes('/test/') && !path.includes('.test.'))
      .filter(([, text]) => /import \{[^}]*\} from '[^']*\/bindings'/.test(text))
      .map(([path]) => path);
    expect(callers, 'only host.ts calls them; everyone else imports types').toEqual(['../api/host.ts']);
  });

  it('is the only way out: nothing else talks to a network', () => {
    for (const [path, text] of Object.entries(sources)) {
      if (path.includes('/test/') || path.includes('.test.')) continue;
      expect(/\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon/.test(text), `${path} talks to a network`).toBe(
        false,
      );
    }
  });
});
