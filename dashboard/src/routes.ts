// SPDX-License-Identifier: Apache-2.0
// Which page an address names.
import { h } from './dom';
import type { Page, Window } from './page';
import { candidatePage } from './pages/candidate';
import { comparePage } from './pages/compare';
import { devicePage } from './pages/device';
import { devicesPage } from './pages/devices';
import { jobPage } from './pages/job';
import { jobsPage } from './pages/jobs';
import { modelPage } from './pages/model';
import { modelsPage } from './pages/models';
import { overviewPage } from './pages/overview';
import { recordsPage } from './pages/records';
import { watchPage } from './pages/watch';
import { watchesPage } from './pages/watches';
import { workloadPage } from './pages/workload';
import { link } from './widgets';

const pages: Record<string, (window: Window) => Page> = {
  '': overviewPage,
  jobs: jobsPage,
  'jobs/*': jobPage,
  models: modelsPage,
  'models/*': modelPage,
  'workloads/*': workloadPage,
  'candidates/*': candidatePage,
  compare: comparePage,
  devices: devicesPage,
  device: devicePage,
  records: recordsPage,
  watches: watchesPage,
  'watches/*': watchPage,
};

export function pageOf(window: Window): Page {
  const [first = '', ...rest] = window.path;
  const found = rest.length > 1 ? undefined : pages[rest.length === 1 ? `${first}/*` : first];
  if (found) return found(window);
  return {
    title: () => 'Not there',
    load: () => Promise.resolve(),
    render: () =>
      h('div', {}, h('h1', {}, 'Not there'), h('p', {}, 'There is no view of this address. ', link('/', 'Overview'))),
  };
}
