/** Keys of the desk: they work wherever the focus is, except while typing or in a dialog. */
import { onBeforeUnmount, onMounted } from 'vue';

function isBusyElsewhere(target: EventTarget | null, key: string): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.closest('input, textarea, select, [role=dialog], [role=separator]'))
    return true;
  // Enter belongs to a focused button; every other key works from there.
  return key === 'Enter' && target.closest('button, a, summary') !== null;
}

/** `act` answers whether it used the key. */
export function onDeskKey(act: (key: string) => boolean): void {
  const listen = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isBusyElsewhere(event.target, event.key)) return;
    if (act(event.key)) event.preventDefault();
  };
  onMounted(() => window.addEventListener('keydown', listen));
  onBeforeUnmount(() => window.removeEventListener('keydown', listen));
}
