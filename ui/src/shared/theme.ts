/** Hands the tokens of styles/tokens.css to Naive UI, which computes with real colours and cannot read variables. */
import type { GlobalThemeOverrides } from 'naive-ui';

type Common = NonNullable<GlobalThemeOverrides['common']>;

const tokenOf: Partial<Record<keyof Common, string>> = {
  fontFamily: '--font',
  fontFamilyMono: '--mono',
  fontSize: '--text-md',
  fontSizeMini: '--text-xs',
  fontSizeTiny: '--text-sm',
  fontSizeSmall: '--text-md',
  fontSizeMedium: '--text-md',
  borderRadius: '--radius-md',
  borderRadiusSmall: '--radius-sm',
  primaryColor: '--accent',
  primaryColorHover: '--accent-hover',
  primaryColorPressed: '--accent-pressed',
  primaryColorSuppl: '--accent-hover',
  successColor: '--ok',
  infoColor: '--busy',
  warningColor: '--warn',
  errorColor: '--bad',
  bodyColor: '--bg',
  cardColor: '--surface',
  modalColor: '--surface',
  popoverColor: '--surface-2',
  inputColor: '--surface-2',
  borderColor: '--border-strong',
  dividerColor: '--border',
  hoverColor: '--hover',
  textColorBase: '--text',
  textColor1: '--text',
  textColor2: '--text',
  textColor3: '--text-2',
  placeholderColor: '--text-3',
};

/** Reads the tokens in force now. Call it after `data-theme` was set. */
export function naiveOverrides(): GlobalThemeOverrides {
  const styles = getComputedStyle(document.documentElement);
  const common: Record<string, string> = {};
  for (const [name, token] of Object.entries(tokenOf)) {
    const value = styles.getPropertyValue(token).trim();
    if (value !== '') common[name] = value;
  }
  return { common };
}
