import type { Page, Window } from '../page';
export function devicePage(_window: Window): Page {
  return { title: () => 'device', load: () => Promise.resolve(), render: () => null };
}
