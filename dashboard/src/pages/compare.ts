import type { Page, Window } from '../page';
export function comparePage(_window: Window): Page {
  return { title: () => 'compare', load: () => Promise.resolve(), render: () => null };
}
