/** Starts the window. */
import { VueQueryPlugin } from '@tanstack/vue-query';
import { createApp } from 'vue';

import { createQueryClient } from './api/queries';
import App from './App.vue';
import { createTexts } from './locales';
import './styles/base.css';

async function open() {
  // `npm run dev` in a browser has no program behind it: sample data stands in. Never part of a build.
  if (import.meta.env.DEV && !('__TAURI_INTERNALS__' in window)) {
    const { installScene } = await import('./test/scenes');
    installScene(new URLSearchParams(location.search).get('scene') ?? '');
  }
  createApp(App).use(VueQueryPlugin, { queryClient: createQueryClient() }).use(createTexts()).mount('#app');
}

void open();
