/** How a status light looks. */
import { CircleAlert, CircleCheck, CircleMinus, LoaderCircle, TriangleAlert } from '@lucide/vue';
import type { Component } from 'vue';

import type { Level } from '../../api/bindings';
import type { Tone } from '../../shared/tone';

export function lightLook(level: Level): { tone: Tone; icon: Component; spin: boolean } {
  switch (level) {
    case 'ok':
      return { tone: 'ok', icon: CircleCheck, spin: false };
    case 'busy':
      return { tone: 'busy', icon: LoaderCircle, spin: true };
    case 'warn':
      return { tone: 'warn', icon: TriangleAlert, spin: false };
    case 'error':
      return { tone: 'bad', icon: CircleAlert, spin: false };
    case 'off':
      return { tone: 'idle', icon: CircleMinus, spin: false };
  }
}
