/** Names of steps, kinds and the like that the program sends as text: a new one is shown as it is, never hidden. */
import { useI18n } from 'vue-i18n';

/** `nameOf('step', 'open_goods')`; a text with no translation stays itself. */
export function useNames() {
  const { t, te, fallbackLocale } = useI18n();
  return (group: 'step' | 'event', name: string): string => {
    const key = `${group}.${name}`;
    return te(key) || te(key, fallbackLocale.value as string) ? t(key) : name;
  };
}
