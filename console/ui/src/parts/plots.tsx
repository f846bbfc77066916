// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// What a sandbox used over the last hour: the server's samples, one a minute, and those that the page has read lately. The same is
// there as a table.
import { bytes, exact } from "../format";
import { useEffect, useRef, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { SandboxStats, StatsSample } from "../wire";

const lately = 600; // seconds: what is older is there by the minute, from the server

interface Measure { name: string; of: (s: StatsSample) => number | null; text: (n: number) => string; least: number; color: string }

const perSecond = (n: number): string => bytes(n) + "/s";

// measures are those that samples have. One that no sample has is not drawn: the runtime cannot tell.
const measures: Measure[] = [
  { name: "Processors", of: (s) => s.cpus, text: (n) => n.toFixed(2), least: 0.1, color: "--c4" },
  { name: "Memory", of: (s) => s.memory_bytes, text: bytes, least: 1 << 20, color: "--c5" },
  { name: "Disk", of: (s) => s.disk_bytes, text: bytes, least: 1 << 20, color: "--c6" },
  { name: "Processes and threads", of: (s) => s.tasks, text: (n) => n.toFixed(0), least: 4, color: "--c3" },
  { name: "Network, in", of: (s) => s.network_in_bytes_per_second, text: perSecond, least: 1 << 10, color: "--c4" },
  { name: "Network, out", of: (s) => s.network_out_bytes_per_second, text: perSecond, least: 1 << 10, color: "--c5" },
];

const seconds = (s: StatsSample): number => Date.parse(s.time) / 1000;

// merged are the samples of the server and of the page, oldest first.
function merged(stats: SandboxStats | null, seen: StatsSample[]): StatsSample[] {
  const all = new Map<string, StatsSample>();
  for (const s of [...(stats?.history ?? []), ...seen]) all.set(s.time, s);
  return [...all.values()].sort((a, b) => seconds(a) - seconds(b));
}

// Plots shows them; stats is what was read last.
export function Plots(p: { stats: SandboxStats | null }): JSX.Element | null {
  const seen = useRef<StatsSample[]>([]), now = p.stats?.now ?? null, table = useSignal(false);
  if (now && seen.current.at(-1)?.time !== now.time) {
    // A clock that was set back begins anew, so does one that jumped.
    const kept = seen.current.filter((s) => seconds(s) < seconds(now) && seconds(s) > seconds(now) - lately);
    seen.current = [...kept, now];
  }
  const all = merged(p.stats, seen.current);
  if (all.length === 1) return <p class="faint" role="status">Plots are here once there are two samples.</p>;
  if (all.length === 0) return p.stats ? <p class="faint">Nothing is measured while it does not run.</p> : null;
  const told = measures.filter((m) => all.some((s) => m.of(s) !== null));
  const shown = table.value ? minutes(all) : [];
  return (
    <>
      <div class="plots">{told.map((m) => <One key={m.name} measure={m} samples={all} />)}</div>
      <p class="faint small">Since {exact(all[0]!.time)}: one sample a minute by the server, for an hour, as long as the sandbox and the server run; of the last ten minutes each that this page has read, too. The tab Network has each
        connection.</p>
      <details onToggle={(e) => { table.value = e.currentTarget.open; }}>
        <summary>The same as a table</summary>
        {table.value && <table class="list">
          <thead><tr><th>Time</th>{told.map((m) => <th key={m.name}>{m.name}</th>)}</tr></thead>
          <tbody>{shown.map((s) => <tr key={s.time}><td><time dateTime={s.time}>{clock(seconds(s), true)}</time></td>{told.map((m) => <td key={m.name}>{written(m, m.of(s))}</td>)}</tr>)}</tbody>
        </table>}
      </details>
    </>
  );
}

const written = (m: Measure, n: number | null): string => (n === null ? "–" : m.text(n));

const clock = (at: number, exactly: boolean): string => new Date(at * 1000).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", ...(exactly ? { second: "2-digit" } : {}) });

// minutes are the samples, newest first, of each minute the last.
function minutes(all: StatsSample[]): StatsSample[] {
  const out = new Map<number, StatsSample>();
  for (const s of all) out.set(Math.floor(seconds(s) / 60), s);
  return [...out.values()].reverse();
}

// drawn is what the library of the plots has to do for one of them.
interface Drawn { setData: (data: [number[], (number | null)[]]) => void; redraw: () => void; destroy: () => void; setSize: (size: { width: number; height: number }) => void }

const height = 150;

// doubles are the steps of an axis of bytes.
const doubles = Array.from({ length: 50 }, (_, i) => 2 ** i);

function One(p: { measure: Measure; samples: StatsSample[] }): JSX.Element {
  const box = useRef<HTMLDivElement>(null), plot = useRef<Drawn | null>(null), samples = useRef(p.samples), at = useSignal<number | null>(null), m = p.measure;
  samples.current = p.samples;
  const data = (): [number[], (number | null)[]] => [samples.current.map(seconds), samples.current.map(m.of)];
  useEffect(() => {
    let over = false;
    const clean: (() => void)[] = [];
    void import("../vendor/plots").then(({ Plot }) => {
      const b = box.current;
      if (over || !b) return;
      const color = (name: string) => (): string => getComputedStyle(b).getPropertyValue(name).trim();
      const axis = { stroke: color("--faint"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
      const one = new Plot({
        width: b.clientWidth, height, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false }, sync: { key: "use" } },
        scales: { x: { time: true }, y: { range: (_: unknown, __: number, most: number) => [0, Math.max(m.least, (most || 0) * 1.15)] } },
        axes: [
          { ...axis, space: 80, size: 30, values: (_: unknown, all: number[]) => all.map((v) => clock(v, all.length > 1 && all[1]! - all[0]! < 60)) },
          { ...axis, space: 35, size: 75, ...(m.text === bytes || m.text === perSecond ? { incrs: doubles } : {}), values: (_: unknown, all: number[]) => all.map((v) => (m.of === measures[3]!.of && v % 1 ? "" : m.text(v))) },
        ],
        series: [{}, { stroke: color(m.color), width: 2, spanGaps: false, points: { size: 5 } }],
        hooks: { setCursor: [(u: { cursor: { idx?: number | null } }) => { at.value = u.cursor.idx ?? null; }] },
      }, data(), b);
      plot.current = one;
      const size = new ResizeObserver(() => one.setSize({ width: b.clientWidth, height }));
      size.observe(b);
      const theme = new MutationObserver(() => one.redraw());
      theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
      const dark = matchMedia("(prefers-color-scheme: dark)"), again = (): void => one.redraw();
      dark.addEventListener("change", again);
      clean.push(() => size.disconnect(), () => theme.disconnect(), () => dark.removeEventListener("change", again), () => one.destroy());
    }, () => { /* The table has all of it. */ });
    return () => {
      over = true;
      plot.current = null;
      for (const f of clean) f();
    };
  }, []);
  const last = p.samples.at(-1)!;
  useEffect(() => { plot.current?.setData(data()); }, [p.samples.length, last.time]);
  const pointed = at.value === null ? undefined : p.samples[at.value];
  const most = Math.max(...p.samples.map((s) => m.of(s) ?? 0));
  const words = "now " + written(m, m.of(last)) + ", at most " + m.text(most);
  return (
    <figure class="plot">
      <figcaption>{m.name}<br /><span class="faint small">{pointed ? clock(seconds(pointed), true) + ": " + written(m, m.of(pointed)) : words}</span></figcaption>
      <div ref={box} role="img" aria-label={m.name + " over time: " + words} />
    </figure>
  );
}
