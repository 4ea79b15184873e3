import type { Page, Window } from '../page';
export function recordsPage(_window: Window): Page {
  return { title: () => 'records', load: () => Promise.resolve(), render: () => null };
}
