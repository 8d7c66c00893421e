/** How states of tasks, runs and outbox rows look. One switch each, with no default: a new state does not compile until it has a look. */
import { Ban, CircleCheck, CircleDashed, CircleX, Clock, Hand, LoaderCircle, Send } from '@lucide/vue';
import type { Component } from 'vue';

import type { OutboxStatusView, RunStatusView, TaskStateView } from '../../api/bindings';
import type { Tone } from '../../shared/tone';

export interface Look {
  tone: Tone;
  icon: Component;
  spin?: boolean;
}

/** In the order of a task's life. */
export const TASK_STATES = [
  'claimed',
  'running',
  'result_pending',
  'retry_wait',
  'manual_review',
  'succeeded',
  'failed',
  'cancelled',
] as const satisfies readonly TaskStateView[];

export function taskLook(state: TaskStateView): Look {
  switch (state) {
    case 'claimed':
      return { tone: 'idle', icon: CircleDashed };
    case 'running':
      return { tone: 'busy', icon: LoaderCircle, spin: true };
    case 'result_pending':
      return { tone: 'busy', icon: Send };
    case 'retry_wait':
      return { tone: 'warn', icon: Clock };
    case 'manual_review':
      return { tone: 'warn', icon: Hand };
    case 'succeeded':
      return { tone: 'ok', icon: CircleCheck };
    case 'failed':
      return { tone: 'bad', icon: CircleX };
    case 'cancelled':
      return { tone: 'idle', icon: Ban };
  }
}

export function runLook(status: RunStatusView): Look {
  switch (status) {
    case 'running':
      return { tone: 'busy', icon: LoaderCircle, spin: true };
    case 'succeeded':
      return { tone: 'ok', icon: CircleCheck };
    case 'failed':
      return { tone: 'bad', icon: CircleX };
    case 'cancelled':
      return { tone: 'idle', icon: Ban };
    case 'manual_review':
      return { tone: 'warn', icon: Hand };
  }
}

export function outboxLook(status: OutboxStatusView): Look {
  switch (status) {
    case 'pending':
      return { tone: 'idle', icon: Clock };
    case 'sending':
      return { tone: 'busy', icon: LoaderCircle, spin: true };
    case 'sent':
      return { tone: 'ok', icon: CircleCheck };
    case 'failed':
      return { tone: 'bad', icon: CircleX };
  }
}

/** Whether "collect again" is worth offering (03 §7.1): the program decides in the end. */
export function mayRecollect(state: TaskStateView): boolean {
  switch (state) {
    case 'manual_review':
    case 'succeeded':
    case 'failed':
    case 'cancelled':
      return true;
    case 'claimed':
    case 'running':
    case 'result_pending':
    case 'retry_wait':
      return false;
  }
}
