import type { Page, Window } from '../page';
export function devicesPage(_window: Window): Page {
  return { title: () => 'devices', load: () => Promise.resolve(), render: () => null };
}
