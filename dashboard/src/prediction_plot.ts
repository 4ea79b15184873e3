// SPDX-License-Identifier: Apache-2.0
// The plot of what the cost model expected against what was measured.
import type { Point } from './api_types';
import { type Child, h } from './dom';
import { count, milliseconds, number } from './format';
import { addressOf } from './links';
import type { Window } from './page';
import { Plot, type PlotData } from './plot';
import { type Predicted, predictedOf, rankCorrelation } from './predictions';

/** Makes the section's content anew whenever there are more points. */
export function predictionPlot(window: Window): (points: Point[]) => Child[] {
  let shown: Predicted[] = [];
  const plot = new Plot(
    {
      id: 'predicted-against-measured',
      xName: 'predicted',
      xLogarithmic: true,
      xText: (x) => milliseconds(x),
      yName: 'measured',
      yLogarithmic: true,
      yText: (y) => milliseconds(y),
      describe: (i) =>
        shown[i]
          ? `Predicted ${milliseconds(shown[i].predicted_ms)}, measured ${milliseconds(shown[i].median_ms)}. Enter or a click shows it.`
          : '',
      open: (i) => shown[i] && window.go(addressOf.candidate(shown[i].row)),
    },
    window.closed,
  );
  return (points) => {
    shown = predictedOf(points);
    if (shown.length === 0)
      return [
        h(
          'p',
          { class: 'note' },
          'Nothing yet: the first trials of a search are chosen before there are times to learn from.',
        ),
      ];
    const correlation = rankCorrelation(shown);
    const ranked =
      correlation === null ? '' : ` Their ranks agree by ${number(correlation, 2)}: 1 is the same order, 0 none.`;
    const data: PlotData = {
      label: `${count(shown.length)} trials by the time that the cost model predicted and the one that was measured.${ranked}`,
      x: shown.map((point) => point.predicted_ms),
      series: [
        { name: 'a trial', colour: '--busy', kind: 'dots', y: shown.map((point) => point.median_ms) },
        {
          name: 'as predicted',
          colour: '--text',
          kind: 'line',
          dashed: true,
          y: shown.map((point) => point.predicted_ms),
        },
      ],
    };
    return [
      h('p', { class: 'note' }, `What the cost model expected when it chose a candidate.${ranked}`),
      plot.place(data),
    ];
  };
}
