/** Language and theme of the whole window, from the preferences the program keeps. */
import { darkTheme, dateEnUS, dateZhCN, enUS, zhCN } from 'naive-ui';
import { computed, onScopeDispose, ref, watchEffect } from 'vue';
import type { Ref } from 'vue';
import { useI18n } from 'vue-i18n';

import type { Preferences } from '../api/bindings';
import { FIRST_LANGUAGE } from '../locales';
import { naiveOverrides } from '../shared/theme';

export const FIRST_PREFERENCES: Preferences = { language: FIRST_LANGUAGE, theme: 'system' };

export function useAppearance(preferences: Readonly<Ref<Preferences>>) {
  const { locale } = useI18n();
  const system = window.matchMedia('(prefers-color-scheme: dark)');
  const systemDark = ref(system.matches);
  const follow = (event: MediaQueryListEvent) => (systemDark.value = event.matches);
  system.addEventListener('change', follow);
  onScopeDispose(() => system.removeEventListener('change', follow));

  const dark = computed(() => {
    switch (preferences.value.theme) {
      case 'system':
        return systemDark.value;
      case 'light':
        return false;
      case 'dark':
        return true;
    }
  });
  const overrides = ref(naiveOverrides());
  watchEffect(() => {
    document.documentElement.dataset.theme = dark.value ? 'dark' : 'light';
    overrides.value = naiveOverrides();
  });
  watchEffect(() => {
    locale.value = preferences.value.language;
    document.documentElement.lang = preferences.value.language;
  });
  return {
    theme: computed(() => (dark.value ? darkTheme : null)),
    overrides,
    locale: computed(() => (preferences.value.language === 'en' ? enUS : zhCN)),
    dateLocale: computed(() => (preferences.value.language === 'en' ? dateEnUS : dateZhCN)),
  };
}
