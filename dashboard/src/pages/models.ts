// SPDX-License-Identifier: Apache-2.0
// All models that jobs are about, those with the newest jobs first.
import { ask } from '../api';
import type { ModelLine, Models } from '../api_types';
import { h } from '../dom';
import { count, short } from '../format';
import { addressOf } from '../links';
import { type Page, reloading, type Window } from '../page';
import { submitCommand } from '../shell_commands';
import { type Column, table } from '../table';
import { command, link } from '../widgets';

const oftenest = 5000;

const columns: Column<ModelLine>[] = [
  { name: 'Model', by: (line) => line.model, cell: (line) => link(addressOf.model(line.model), line.model) },
  { name: 'Tuning jobs', number: true, by: (line) => line.tunes, cell: (line) => count(line.tunes) },
  { name: 'Runs', number: true, by: (line) => line.runs, cell: (line) => count(line.runs) },
  { name: 'Newest job', cell: (line) => link(addressOf.job(line.newest), short(line.newest, 8)) },
];

export function modelsPage(window: Window): Page {
  let models: ModelLine[] = [];
  const load = async () => {
    models = (await ask<Models>('models', window.closed)).models;
  };
  const refresh = reloading(window, load, oftenest);
  return {
    title: () => 'Models',
    load,
    change({ jobs }) {
      if (jobs?.changed.some((job) => !job.models.every((name) => models.some((line) => line.model === name))))
        refresh();
    },
    render() {
      return [
        h('h1', {}, 'Models'),
        table({
          name: 'Models',
          columns,
          rows: models,
          key: (line) => line.model,
          order: window.query('sort'),
          sort: (order) => window.setQuery({ sort: order }),
          empty: 'No job has been about a model yet. A tuning job, or a run of a package, makes its model known:',
        }),
        models.length === 0
          ? command(submitCommand(window.farm.session.tracker, ''), 'The command that submits a model for tuning')
          : null,
      ];
    },
  };
}
