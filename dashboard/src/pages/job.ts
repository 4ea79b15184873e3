import type { Page, Window } from '../page';
export function jobPage(_window: Window): Page {
  return { title: () => 'job', load: () => Promise.resolve(), render: () => null };
}
