/** How good or bad a thing is. Always shown with an icon and words as well as the colour. */
export type Tone = 'ok' | 'busy' | 'warn' | 'bad' | 'idle';
