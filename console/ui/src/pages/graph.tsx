// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// The graph of disks in time: a lane for each sandbox, a node for each snapshot, lines for what came of what. What is out of
// sight is not drawn, so that thousands cost no more than some.
import { exact, oneLine } from "../format";
import { useEffect, useRef, useSignal } from "../vendor/core";
import type { JSX, Signal } from "../vendor/core";
import type { Sandbox, Snapshot } from "../wire";

// Point is a node: the beginning of a sandbox, a snapshot, or a sandbox as it is now.
export interface Point { key: string; kind: "begin" | "snapshot" | "now"; lane: number; column: number; name: string; snapshot: Snapshot | null; sandbox: string | null; from: string | null; back: boolean; gone: boolean }

export interface Graph { lanes: string[]; points: Point[]; columns: number }

export const called = (s: Snapshot): string => oneLine(s.name ?? s.id);

const sandboxName = (id: string | null, all: ReadonlyMap<string, Sandbox>): string => (id === null ? "imported" : oneLine(all.get(id)?.key ?? id) + (all.has(id) ? "" : " (deleted)"));

// familyOf are the snapshots and sandboxes that have to do with a sandbox: by who was made of what.
export function familyOf(id: string, snapshots: Snapshot[], sandboxes: ReadonlyMap<string, Sandbox>): { snapshots: Snapshot[]; sandboxes: Sandbox[] } {
  const next = new Map<string, string[]>();
  const tie = (a: string | null | undefined, b: string | null | undefined): void => {
    if (!a || !b) return;
    next.set(a, [...(next.get(a) ?? []), b]);
    next.set(b, [...(next.get(b) ?? []), a]);
  };
  for (const s of snapshots) { tie(s.id, s.sandbox_id); tie(s.id, s.parent_snapshot); }
  for (const s of sandboxes.values()) { tie(s.id, s.parent_snapshot); tie(s.id, s.forked_from); }
  const found = new Set([id]), todo = [id];
  for (let at = todo.pop(); at !== undefined; at = todo.pop()) for (const n of next.get(at) ?? []) if (!found.has(n)) { found.add(n); todo.push(n); }
  return { snapshots: snapshots.filter((s) => found.has(s.id)), sandboxes: [...sandboxes.values()].filter((s) => found.has(s.id)) };
}

// graphOf lays out snapshots and sandboxes: time goes to the right, and each has a column.
export function graphOf(snapshots: Snapshot[], sandboxes: Sandbox[]): Graph {
  const by = new Map(sandboxes.map((s) => [s.id, s])), known = new Map(snapshots.map((s) => [s.id, s]));
  const steps: { at: string; kind: "begin" | "snapshot"; lane: string; snapshot: Snapshot | null }[] = [
    ...sandboxes.map((s) => ({ at: s.created_at, kind: "begin" as const, lane: s.id, snapshot: null })),
    ...snapshots.map((s) => ({ at: s.created_at, kind: "snapshot" as const, lane: s.sandbox_id ?? "", snapshot: s })),
  ];
  steps.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : a.kind < b.kind ? -1 : 1));
  const lanes: string[] = [], points: Point[] = [], last = new Map<string, Point>();
  // where is the node that something came of; "" is that of a snapshot that is gone.
  const add = (p: Point, lane: string): void => { points.push(p); last.set(lane, p); };
  steps.forEach((s, column) => {
    let lane = lanes.indexOf(s.lane);
    if (lane < 0) lane = lanes.push(s.lane) - 1;
    const before = last.get(s.lane);
    if (s.kind === "begin") {
      const box = by.get(s.lane)!, first = snapshots.filter((o) => o.sandbox_id === box.id).reduce<Snapshot | null>((m, o) => (!m || o.created_at < m.created_at ? o : m), null);
      const parent = first ? first.parent_snapshot : box.parent_snapshot, origin = parent ? known.get(parent) : undefined;
      const of = origin && origin.sandbox_id !== box.id ? origin.id : box.forked_from ? last.get(box.forked_from)?.key ?? null : null;
      add({ key: "begin " + box.id, kind: "begin", lane, column, name: "beginning of " + sandboxName(box.id, by), snapshot: null, sandbox: box.id, from: of, back: false, gone: false }, s.lane);
      return;
    }
    const one = s.snapshot!, parent = one.parent_snapshot, there = parent ? known.get(parent) : undefined;
    const origin = points.find((p) => p.key === "begin " + s.lane)?.from ?? null;
    // The first snapshot of a fork came of what the fork came of.
    let from: string | null = parent === null ? (before ? "begin " + s.lane : null) : there ? there.id : null;
    if (from !== null && (from === origin || (parent === null && !points.some((p) => p.key === from)))) from = points.some((p) => p.key === "begin " + s.lane) ? "begin " + s.lane : null;
    add({ key: one.id, kind: "snapshot", lane, column, name: called(one), snapshot: one, sandbox: one.sandbox_id, from, back: from !== null && before !== undefined && from !== before.key, gone: parent !== null && !there }, s.lane);
  });
  const columns = steps.length;
  for (const box of sandboxes) {
    const lane = lanes.indexOf(box.id), before = last.get(box.id), origin = points.find((p) => p.key === "begin " + box.id)?.from ?? null;
    const parent = box.parent_snapshot, from = parent === null || parent === origin || parent === undefined ? "begin " + box.id : known.has(parent) ? parent : null;
    points.push({ key: "now " + box.id, kind: "now", lane, column: columns, name: sandboxName(box.id, by) + " now", snapshot: null, sandbox: box.id, from, back: from !== null && before !== undefined && from !== before.key, gone: from === null });
  }
  return { lanes: lanes.map((l) => sandboxName(l || null, by)), points, columns: columns + 1 };
}

const wide = 46, high = 46, left = 24, top = 26; // pixels
const x = (p: Point): number => left + p.column * wide;
const y = (p: Point): number => top + p.lane * high;

// saying tells all of a node in words.
export function saying(p: Point, byKey: ReadonlyMap<string, Point>): string {
  const from = p.from ? byKey.get(p.from) : undefined;
  return p.name + (p.snapshot ? ", a snapshot of " + exact(p.snapshot.created_at) : "") + (p.gone ? ", of a snapshot that was deleted" : from && from.kind !== "begin" ? (p.back ? ", after going back to " : ", after ") + from.name : p.back ? ", after going back to the beginning" : "");
}

interface View { x: number; y: number; w: number; h: number }

// Lanes draws a graph; chosen is the key of a node.
export function Lanes(p: { graph: Graph; chosen: Signal<string> }): JSX.Element {
  const g = p.graph, box = useRef<HTMLDivElement>(null), view = useSignal<View>({ x: 0, y: 0, w: 1200, h: 400 }), moved = useRef(false), begun = useRef(false);
  const look = (): void => { const b = box.current; if (b) view.value = { x: b.scrollLeft, y: b.scrollTop, w: b.clientWidth, h: b.clientHeight }; };
  useEffect(() => {
    const size = new ResizeObserver(look);
    size.observe(box.current!);
    return () => size.disconnect();
  }, []);
  useEffect(() => {
    if (begun.current || g.points.length === 0) return;
    begun.current = true;
    box.current!.scrollLeft = box.current!.scrollWidth; // what is new is at the right
    look();
  }, [g.points.length]);
  const byKey = new Map(g.points.map((q) => [q.key, q])), now = byKey.get(p.chosen.value);
  useEffect(() => {
    const b = box.current;
    if (!b || !now || !moved.current) return;
    moved.current = false;
    b.scrollLeft = Math.max(Math.min(b.scrollLeft, x(now) - 3 * wide), x(now) + 3 * wide - b.clientWidth);
    b.scrollTop = Math.max(Math.min(b.scrollTop, y(now) - high), y(now) + high - b.clientHeight);
    look();
    requestAnimationFrame(() => b.querySelector<SVGElement>("[data-chosen]")?.focus({ preventScroll: true }));
  }, [p.chosen.value]);
  const key = (e: KeyboardEvent): void => {
    const at = now ?? g.points.at(-1);
    if (!at) return;
    const mates = g.points.filter((q) => q.lane === at.lane), i = mates.indexOf(at);
    const near = (lane: number): Point | undefined => g.points.filter((q) => q.lane === lane).reduce<Point | undefined>((m, q) => (!m || Math.abs(q.column - at.column) < Math.abs(m.column - at.column) ? q : m), undefined);
    const to = { ArrowLeft: mates[i - 1], ArrowRight: mates[i + 1], ArrowUp: near(at.lane - 1), ArrowDown: near(at.lane + 1), Home: mates[0], End: mates.at(-1) }[e.key];
    if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(e.key)) return;
    e.preventDefault();
    if (!to) return;
    moved.current = true;
    p.chosen.value = to.key;
  };
  const v = view.value, inX = (from: number, to: number): boolean => Math.max(from, to) > v.x - 3 * wide && Math.min(from, to) < v.x + v.w + 3 * wide, inY = (from: number, to: number): boolean => Math.max(from, to) > v.y - 3 * high && Math.min(from, to) < v.y + v.h + 3 * high;
  const seen = g.points.filter((q) => (inX(x(q), x(q)) && inY(y(q), y(q))) || q === now);
  const lines = g.points.filter((q) => q.from !== null && byKey.has(q.from)).map((q) => [byKey.get(q.from!)!, q] as const).filter(([a, b]) => inX(x(a), x(b)) && inY(y(a), y(b))).slice(0, 400);
  return (
    <div ref={box} class="graph" onScroll={look} onKeyDown={key}>
      <svg width={left + g.columns * wide + 90} height={top + g.lanes.length * high} role="group" aria-label="Graph of snapshots. The arrow keys go from one to the next; the table below has the same.">
        {g.lanes.map((name, i) => inY(top + i * high, top + i * high) && <text key={"lane " + i} class="lane" x={v.x + 4} y={top + i * high - 13}>{name.slice(0, 40)}</text>)}
        {lines.map(([a, b]) => <path key={"line " + b.key} class={"edge" + (b.back ? " back" : a.lane === b.lane ? "" : " fork")} d={edge(a, b)} />)}
        {seen.map((q) => (
          <g key={q.key} role="button" tabindex={q.key === p.chosen.value || (!now && q === seen.at(-1)) ? 0 : -1} aria-pressed={q.key === p.chosen.value} aria-label={saying(q, byKey)} data-chosen={q.key === p.chosen.value ? "" : undefined}
            class={"point " + q.kind + (q.snapshot?.auto ? " auto" : "")} onClick={() => { p.chosen.value = q.key; }} onKeyDown={(e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); p.chosen.value = q.key; } }}>
            <circle cx={x(q)} cy={y(q)} r={q.kind === "snapshot" ? (q.snapshot!.auto ? 5 : 7) : 6} />
            <text x={x(q)} y={y(q) + 18} text-anchor="middle">{q.kind === "now" ? "now" : q.snapshot && !q.snapshot.auto ? short(q.name) : ""}</text>
          </g>
        ))}
      </svg>
    </div>
  );
}

const short = (name: string): string => (name.length > 7 ? name.slice(0, 6) + "…" : name);

// edge is the line between two nodes; one that passes others of its lane goes around them.
function edge(a: Point, b: Point): string {
  if (a.lane === b.lane && !b.back) return "M" + x(a) + " " + y(a) + "H" + x(b);
  if (a.lane === b.lane) return "M" + x(a) + " " + y(a) + "C" + (x(a) + 20) + " " + (y(a) - 22) + " " + (x(b) - 20) + " " + (y(b) - 22) + " " + x(b) + " " + y(b);
  return "M" + x(a) + " " + y(a) + "C" + (x(a) + wide) + " " + y(a) + " " + (x(b) - wide) + " " + y(b) + " " + x(b) + " " + y(b);
}
