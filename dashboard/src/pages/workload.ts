import type { Page, Window } from '../page';
export function workloadPage(_window: Window): Page {
  return { title: () => 'workload', load: () => Promise.resolve(), render: () => null };
}
