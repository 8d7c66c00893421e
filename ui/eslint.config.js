import js from '@eslint/js';
import vue from 'eslint-plugin-vue';
import ts from 'typescript-eslint';
import vueParser from 'vue-eslint-parser';

const tauriOnlyInHost = {
  group: ['@tauri-apps/*'],
  message: 'Only src/api/host.ts talks to the program.',
};
const bindingsAreTypes = {
  group: ['**/bindings'],
  allowTypeImports: true,
  message: 'Ask src/api/host.ts; the bindings are for their types.',
};

export default ts.config(
  { ignores: ['dist', 'node_modules', 'src/api/bindings.ts'] },
  js.configs.recommended,
  ...ts.configs.recommended,
  ...vue.configs['flat/recommended'],
  {
    files: ['**/*.vue'],
    languageOptions: { parser: vueParser, parserOptions: { parser: ts.parser } },
  },
  {
    files: ['src/**/*.{ts,vue}'],
    rules: {
      'no-undef': 'off', // vue-tsc knows better
      'no-console': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-restricted-imports': ['error', { patterns: [tauriOnlyInHost, bindingsAreTypes] }],
      'vue/multi-word-component-names': 'off',
      'vue/no-v-html': 'error',
      'vue/return-in-computed-property': 'off', // a full switch returns; noImplicitReturns checks it
      // prettier owns the layout
      'vue/html-indent': 'off',
      'vue/html-self-closing': 'off',
      'vue/html-closing-bracket-newline': 'off',
      'vue/max-attributes-per-line': 'off',
      'vue/singleline-html-element-content-newline': 'off',
      'vue/multiline-html-element-content-newline': 'off',
    },
  },
  {
    files: ['src/api/host.ts', 'src/test/**', 'src/**/*.test.ts'],
    rules: { '@typescript-eslint/no-restricted-imports': 'off' },
  },
);
