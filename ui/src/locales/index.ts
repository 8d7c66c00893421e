/** Both languages, both inside the program. */
import { createI18n } from 'vue-i18n';

import type { Language } from '../api/bindings';
import en from './en';
import zhCN from './zh-CN';

export const FIRST_LANGUAGE: Language = 'zh-CN';

export function createTexts(locale: Language = FIRST_LANGUAGE) {
  return createI18n({
    legacy: false,
    locale,
    fallbackLocale: FIRST_LANGUAGE,
    messages: { 'zh-CN': zhCN, en },
  });
}
