// SPDX-License-Identifier: Apache-2.0
// One plot, drawn by uPlot: lines, dots and bars over an ascending x. Colours are those of the page's style, light or
// dark. What cannot see it reads its label, and goes through it with the arrow keys.
//
// A plot draws into an element that it keeps; `place` gives it to the page at first, and afterwards something with the
// same name, which `morph` leaves alone.
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { h } from './dom';
import { instant } from './format';
import { nearestAtX } from './plot_points';
import { labelled, logarithmicRange, logarithmicSplits } from './plot_scale';

export interface Series {
  name: string;
  colour: string; // a variable of the style: '--busy'
  kind: 'line' | 'steps' | 'dots' | 'bars';
  y: (number | null)[];
  dashed?: boolean;
  /** Has no value of its own: stands at the upper edge, wherever `y` is not null. */
  atTop?: boolean;
}

export interface PlotData {
  label: string; // what it says, in a sentence
  x: number[];
  series: Series[];
}

export interface PlotOptions {
  id: string; // among the plots of a page
  xName: string;
  yName: string;
  xIsTime?: boolean; // seconds since 1970
  xIsWhole?: boolean; // counts something
  xLogarithmic?: boolean;
  xLeast?: number; // how far the x axis goes at least
  yLogarithmic?: boolean;
  xText?: (x: number) => string;
  yText: (y: number) => string;
  describe?: (at: number) => string; // of the x with that index
  open?: (at: number) => void; // clicked, or Enter
  height?: number;
}

const narrowest = 120;
const topShare = 0.975;

// As much of an instant as tells it from its neighbours.
function timeOfDay(time: number, among: number[]): string {
  const [day = '', clock = ''] = instant(time * 1000).split(' ');
  const days = (among[among.length - 1]! - among[0]!) / 86_400;
  return days > 5 ? day : days > 0.8 ? `${day.slice(5)} ${clock.slice(0, 5)}` : clock;
}

const colourOf = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export class Plot {
  private readonly canvas = h('div', { class: 'canvas' });
  private readonly said = h('p', { class: 'said-of-plot', role: 'status' });
  private readonly legend = h('ul', { class: 'legend' });
  private readonly host: HTMLElement;
  private plot: uPlot | null = null;
  private shape = '';
  private data: PlotData = { label: '', x: [], series: [] };
  private zoomed = false;
  // The point that is told of. uPlot's own knows an x alone, which many points may share.
  private at: number | null = null;
  private byKeys = false; // else by the pointer
  private readonly dark = matchMedia('(prefers-color-scheme: dark)');

  constructor(
    private readonly options: PlotOptions,
    closed: AbortSignal,
  ) {
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'img');
    this.canvas.onkeydown = (event) => this.key(event);
    this.canvas.addEventListener('mousemove', () => (this.byKeys = false), { capture: true });
    this.host = h(
      'figure',
      { class: 'plot', 'data-island': options.id },
      this.canvas,
      h('figcaption', {}, this.legend, this.said),
    );
    const watch = new ResizeObserver(() => this.fit());
    watch.observe(this.canvas);
    const recolour = () => this.build();
    this.dark.addEventListener('change', recolour);
    closed.addEventListener('abort', () => {
      watch.disconnect();
      this.dark.removeEventListener('change', recolour);
      this.plot?.destroy();
      this.plot = null;
    });
  }

  place(data: PlotData): HTMLElement {
    const shape = JSON.stringify(data.series.map((series) => [series.name, series.kind, series.colour]));
    this.data = data;
    this.canvas.setAttribute('aria-label', `${data.label} Arrow keys go through it.`);
    if (this.plot === null || shape !== this.shape) {
      this.shape = shape;
      this.build();
    } else {
      this.plot.setData(this.columns(), !this.zoomed);
    }
    return this.host.isConnected ? h('figure', { class: 'plot', 'data-island': this.options.id }) : this.host;
  }

  private columns(): uPlot.AlignedData {
    return [
      this.data.x,
      ...this.data.series.map((series) =>
        series.atTop ? series.y.map((y) => (y === null ? null : topShare)) : series.y,
      ),
    ];
  }

  private width(): number {
    return Math.max(narrowest, this.canvas.clientWidth);
  }

  private fit(): void {
    if (this.plot !== null && this.canvas.clientWidth > 0 && this.plot.width !== this.width()) {
      this.plot.setSize({ width: this.width(), height: this.plot.height });
    }
  }

  private build(): void {
    this.plot?.destroy();
    this.zoomed = false;
    this.legend.replaceChildren(
      ...this.data.series
        .filter((series) => series.y.some((y) => y !== null))
        .map((series) => {
          const mark = h('span', {
            class: `mark ${series.kind}${series.dashed ? ' dashed' : ''}`,
            'aria-hidden': 'true',
          });
          mark.style.color = `var(${series.colour})`;
          return h('li', {}, mark, series.name);
        }),
    );
    this.plot = new uPlot(this.settings(), this.columns(), this.canvas);
    this.plot.over.addEventListener('click', () => {
      if (this.at !== null && !this.zoomed) this.options.open?.(this.at);
    });
    this.plot.over.addEventListener('dblclick', () => (this.zoomed = false));
  }

  private settings(): uPlot.Options {
    const { options } = this;
    const text = colourOf('--quiet-text');
    const lines = { stroke: colourOf('--line'), width: 1 };
    const axis = {
      stroke: text,
      grid: lines,
      ticks: lines,
      font: '12px system-ui, sans-serif',
      labelFont: '12px system-ui, sans-serif',
    };
    const logarithmic: Partial<uPlot.Axis> = {
      splits: (_plot, _axis, least, most) => logarithmicSplits(least, most),
      filter: (_plot, splits) => labelled(splits),
    };
    return {
      width: this.width(),
      height: options.height ?? 320,
      legend: { show: false },
      cursor: { points: { show: false }, drag: { x: true, y: false, setScale: true } },
      scales: {
        x: options.xLogarithmic
          ? { time: false, distr: 3, range: (_plot, least, most) => logarithmicRange(least, most, 1.1) }
          : {
              time: options.xIsTime === true,
              range: (_plot, least, most) => [Math.min(least, most - (options.xLeast ?? 0)), most],
            },
        y: options.yLogarithmic
          ? { distr: 3, range: (_plot, least, most) => logarithmicRange(least, most, 1.15) }
          : { range: (_plot, least, most) => [Math.min(0, least), most > 0 ? most * 1.05 : 1] },
        top: { range: [0, 1] },
      },
      axes: [
        {
          ...axis,
          label: options.xName,
          labelSize: 22,
          ...(options.xLogarithmic ? logarithmic : {}),
          ...(options.xIsTime
            ? { space: 90, values: (_plot: uPlot, times: number[]) => times.map((time) => timeOfDay(time, times)) }
            : {}),
          ...(options.xIsWhole
            ? {
                incrs: [1, 2, 5]
                  .flatMap((step) => [1, 10, 100, 1000, 10_000].map((ten) => step * ten))
                  .sort((a, b) => a - b),
              }
            : {}),
          ...(options.xText
            ? {
                space: 90,
                values: (_plot: uPlot, values: (number | null)[]) =>
                  values.map((x) => (x === null ? '' : options.xText!(x))),
              }
            : {}),
        },
        {
          ...axis,
          label: options.yName,
          labelSize: 22,
          ...(options.yLogarithmic ? logarithmic : {}),
          size: 68,
          values: (_plot, values) => values.map((y) => (y === null ? '' : options.yText(y))),
        },
      ],
      series: [{}, ...this.data.series.map((series) => this.drawn(series))],
      hooks: {
        setCursor: [(plot) => this.tell(plot)],
        setSelect: [(plot) => (this.zoomed = plot.select.width > 0 || this.zoomed)],
      },
    };
  }

  private drawn(series: Series): uPlot.Series {
    const stroke = colourOf(series.colour);
    const scale = series.atTop ? 'top' : 'y';
    switch (series.kind) {
      case 'dots':
        return {
          scale,
          stroke,
          paths: () => null,
          points: { show: true, size: series.atTop ? 6 : 5, fill: stroke, width: 0 },
        };
      case 'bars':
        return { scale, stroke, fill: stroke, paths: uPlot.paths.bars!({ size: [0.9, 60] }), points: { show: false } };
      case 'steps':
        return { scale, stroke, width: 2, paths: uPlot.paths.stepped!({ align: 1 }), points: { show: false } };
      case 'line':
        return {
          scale,
          stroke,
          width: 1.5,
          dash: series.dashed ? [6, 4] : undefined,
          points: { show: false },
          spanGaps: true,
        };
    }
  }

  /** How far above or below the pointer a point is drawn. */
  private distance(plot: uPlot, at: number): number {
    let least = Infinity;
    for (const series of this.data.series) {
      const y = series.y[at];
      if (series.kind !== 'dots' || y === null || y === undefined) continue;
      const top = series.atTop ? plot.valToPos(topShare, 'top') : plot.valToPos(y, 'y');
      least = Math.min(least, Math.abs(top - (plot.cursor.top ?? 0)));
    }
    return least;
  }

  private tell(plot: uPlot): void {
    const { idx } = plot.cursor;
    if (!this.byKeys)
      this.at =
        idx === null || idx === undefined ? null : nearestAtX(this.data.x, idx, (at) => this.distance(plot, at));
    const text = this.at === null || !this.options.describe ? '' : this.options.describe(this.at);
    if (this.said.textContent !== text) this.said.textContent = text;
  }

  private key(event: KeyboardEvent): void {
    const { plot } = this;
    const last = this.data.x.length - 1;
    if (plot === null || last < 0) return;
    const now = this.at ?? -1;
    const steps: Record<string, number> = {
      ArrowRight: now + 1,
      ArrowLeft: now - 1,
      Home: 0,
      End: last,
      PageDown: now + 50,
      PageUp: now - 50,
    };
    if (event.key === 'Enter' && this.at !== null) this.options.open?.(this.at);
    const next = steps[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.at = Math.min(last, Math.max(0, next));
    this.byKeys = true;
    plot.setCursor({ left: plot.valToPos(this.data.x[this.at]!, 'x'), top: plot.over.clientHeight / 2 });
  }
}
