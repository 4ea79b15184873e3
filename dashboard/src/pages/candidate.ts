import type { Page, Window } from '../page';
export function candidatePage(_window: Window): Page {
  return { title: () => 'candidate', load: () => Promise.resolve(), render: () => null };
}
