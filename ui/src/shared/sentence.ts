/** A problem's sentences in the language of the window. */
import { computed, toValue } from 'vue';
import type { ComputedRef, MaybeRefOrGetter } from 'vue';
import { useI18n } from 'vue-i18n';

import type { Problem, Sentence } from '../api/bindings';
import type { Locale } from './format';

export function sentenceOf(problem: Problem, locale: Locale): Sentence {
  switch (locale) {
    case 'zh-CN':
      return problem.zh;
    case 'en':
      return problem.en;
  }
}

export function useLocale(): ComputedRef<Locale> {
  const { locale } = useI18n();
  return computed(() => locale.value as Locale);
}

export function useSentence(problem: MaybeRefOrGetter<Problem>): ComputedRef<Sentence> {
  const locale = useLocale();
  return computed(() => sentenceOf(toValue(problem), locale.value));
}
