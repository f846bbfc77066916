// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// The list of sandboxes, live.
import { call, may, seg } from "../api";
import { bytes, megabytes, oneLine } from "../format";
import { known, newest } from "../live";
import { Code } from "../parts/copy";
import { Action, Dialog, Link, State, Time, Trouble } from "../parts/parts";
import { useEvery } from "../parts/again";
import { computed, signal, useEffect, useRef, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { Sandbox, StatsList } from "../wire";
import { Create } from "./create";

const words = signal("");
const state = signal("");
const image = signal("");
const label = signal("");
const order = signal("created");
const chosen = signal<ReadonlySet<string>>(new Set());
const failed = signal<unknown>(null);
const creating = signal(false);
const deleting = signal(false);

// use is what each sandbox that is up uses now, by id.
const use = signal<ReadonlyMap<string, StatsList["items"][number]>>(new Map());

const shownOnes = computed(() => {
  const text = words.value.trim().toLowerCase();
  const some = newest.value.filter((s) => (state.value === "" || s.status === state.value) && (image.value === "" || s.image === image.value) && (label.value === "" || has(s, label.value)) &&
    (text === "" || [s.id, s.key ?? "", s.image, ...Object.entries(s.metadata).map(([k, v]) => k + "=" + v)].some((t) => t.toLowerCase().includes(text))));
  const by = orders[order.value]?.[1];
  return by ? some.sort((a, b) => { const x = by(a), y = by(b); return x < y ? -1 : x > y ? 1 : 0; }) : some;
});

// has reports whether a sandbox has a label, such as team=data.
const has = (s: Sandbox, one: string): boolean => Object.entries(s.metadata).some(([k, v]) => k + "=" + v === one);

// orders are what the list can be sorted by; as it comes, the newest is the first.
const orders: Record<string, [string, ((s: Sandbox) => number | string)?]> = {
  created: ["newest"],
  name: ["name", (s) => (s.key ?? s.id).toLowerCase()],
  state: ["state", (s) => s.status],
  image: ["image", (s) => s.image],
  used: ["last used", (s) => -Date.parse(s.last_activity_at ?? s.created_at)],
  cpus: ["processors in use", (s) => -(use.value.get(s.id)?.now?.cpus ?? -1)],
  memory: ["memory in use", (s) => -(use.value.get(s.id)?.now?.memory_bytes ?? -1)],
  disk: ["disk in use", (s) => -(use.value.get(s.id)?.now?.disk_bytes ?? -1)],
};

export const nameOf = (s: Sandbox): string => oneLine(s.key ?? s.id);

async function each(verb: (id: string) => Promise<unknown>): Promise<void> {
  const all = [...chosen.value];
  const errors: unknown[] = [], failing: string[] = []; // those stay chosen
  for (let i = 0; i < all.length; i += 4) {
    await Promise.all(all.slice(i, i + 4).map((id) => verb(id).catch((e: unknown) => { errors.push(e); failing.push(id); })));
  }
  chosen.value = new Set(failing);
  if (errors.length) throw errors[0];
}

const post = (verb: string) => (id: string): Promise<unknown> => call("/sandboxes/" + seg(id) + "/" + verb, { method: "POST" });

// rowHeight is that of a row, in pixels: rows are made as they come into view.
const rowHeight = 44;

export function Sandboxes(): JSX.Element {
  const list = useRef<HTMLDivElement>(null);
  const from = useSignal(0);
  const room = useSignal(30);
  useEffect(() => {
    document.title = "Sandboxes · sandpit";
    const place = (): void => {
      const top = list.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(0, Math.floor(-top / rowHeight) - 10);
      if (Math.abs(first - from.value) >= 5 || first === 0) from.value = first;
      room.value = Math.ceil(innerHeight / rowHeight) + 25;
    };
    place();
    addEventListener("scroll", place, { passive: true });
    addEventListener("resize", place);
    return () => {
      removeEventListener("scroll", place);
      removeEventListener("resize", place);
    };
  }, []);
  useEvery(3000, () => call<StatsList>("/stats").then((l) => { use.value = new Map(l.items.map((i) => [i.id, i])); }, () => {}), []);
  const all = shownOnes.value;
  const first = Math.min(from.value, Math.max(0, all.length - 1));
  const rows = all.slice(first, first + room.value);
  const images = [...new Set(newest.value.map((s) => s.image))].sort(), labels = [...new Set(newest.value.flatMap((s) => Object.entries(s.metadata).map(([k, v]) => k + "=" + v)))].sort().slice(0, 500);
  const states = [...new Set(newest.value.map((s) => s.status))].sort();
  const write = may("sandboxes:write");
  const picked = chosen.value.size;
  return (
    <section>
      <div class="title"><h1>Sandboxes</h1>{write && <button type="button" class="primary" onClick={() => { creating.value = true; }}>Create a sandbox</button>}</div>
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <label>Search <input type="search" value={words.value} placeholder="id, name, image or label" onInput={(e) => { words.value = e.currentTarget.value; }} /></label>
        <label>State <select value={state.value} onChange={(e) => { state.value = e.currentTarget.value; }}>
          <option value="">all</option>{states.map((s) => <option key={s} value={s}>{s}</option>)}
        </select></label>
        {images.length > 1 && <label>Image <select value={image.value} onChange={(e) => { image.value = e.currentTarget.value; }}>
          <option value="">all</option>{images.map((s) => <option key={s} value={s}>{oneLine(s)}</option>)}
        </select></label>}
        {labels.length > 0 && <label>Label <select value={label.value} onChange={(e) => { label.value = e.currentTarget.value; }}>
          <option value="">all</option>{labels.map((s) => <option key={s} value={s}>{oneLine(s)}</option>)}
        </select></label>}
        <label>Sorted by <select value={order.value} onChange={(e) => { order.value = e.currentTarget.value; }}>
          {Object.entries(orders).map(([id, [says]]) => <option key={id} value={id}>{says}</option>)}
        </select></label>
        <span class="faint" role="status">{known.value ? all.length + " of " + newest.value.length : "Reading…"}</span>
      </form>
      {write && picked > 0 && <div class="bulk" role="group" aria-label="The chosen sandboxes">
        <span>{picked} chosen</span>
        <Action failed={failed} do={() => each(post("start"))}>Start</Action>
        <Action failed={failed} do={() => each(post("stop"))}>Stop</Action>
        <Action failed={failed} do={() => each(post("pause"))}>Pause</Action>
        <Action failed={failed} do={() => each(post("resume"))}>Resume</Action>
        {all.length > picked && <button type="button" onClick={() => { chosen.value = new Set(all.map((s) => s.id)); }}>Choose all {all.length}</button>}
        <button type="button" class="danger" onClick={() => { deleting.value = true; }}>Delete…</button>
        <button type="button" onClick={() => { chosen.value = new Set(); }}>Choose none</button>
      </div>}
      <Trouble error={failed.value} />
      {known.value && newest.value.length === 0 && <div class="empty"><p>There are no sandboxes yet. Make one here, or by the command line:</p><Code text="sandpit run -- echo hello" /></div>}
      {known.value && newest.value.length > 0 && all.length === 0 && <p class="empty">None of the {newest.value.length} is so. <button type="button" onClick={() => { words.value = state.value = image.value = label.value = ""; }}>Show all</button></p>}
      {all.length > 0 && <div ref={list} class="rows" role="table" aria-label="Sandboxes" aria-rowcount={all.length + 1}>
        <div role="row" class="row head">
          {write && <span role="columnheader" class="pick"><span class="hidden">Choose</span></span>}
          <span role="columnheader">Name</span><span role="columnheader">State</span><span role="columnheader" class="wide">Image</span>
          <span role="columnheader" class="wide">Processors</span><span role="columnheader" class="wide">Memory</span><span role="columnheader" class="wide">Disk</span><span role="columnheader">Last used</span>
        </div>
        <div style={{ height: first * rowHeight + "px" }} />
        {rows.map((s, i) => <Row key={s.id} of={s} index={first + i + 2} write={write} />)}
        <div style={{ height: Math.max(0, all.length - first - rows.length) * rowHeight + "px" }} />
      </div>}
      <Create open={creating} />
      <Delete />
    </section>
  );
}

function Row(p: { of: Sandbox; index: number; write: boolean }): JSX.Element {
  const s = p.of, u = use.value.get(s.id)?.now ?? null;
  const pick = (on: boolean): void => {
    const all = new Set(chosen.value);
    if (on) all.add(s.id);
    else all.delete(s.id);
    chosen.value = all;
  };
  const cpus = u && u.cpus !== null ? u.cpus.toFixed(2) + " of " + s.cpu_cores : "–";
  return (
    <div role="row" aria-rowindex={p.index} class="row">
      {p.write && <span role="cell" class="pick"><input type="checkbox" aria-label={"Choose " + nameOf(s)} checked={chosen.value.has(s.id)} onChange={(e) => pick(e.currentTarget.checked)} /></span>}
      <span role="cell" class="name"><Link to={"/sandboxes/" + seg(s.id)}>{nameOf(s)}</Link>{s.key && <span class="faint small"> {s.id}</span>}</span>
      <span role="cell"><State of={s.status} />{s.stop_cause && s.status !== "running" && <span class="faint small"> {s.stop_cause}</span>}</span>
      <span role="cell" class="wide">{oneLine(s.image)}</span>
      <span role="cell" class="wide">{cpus}</span>
      <span role="cell" class="wide">{u ? bytes(u.memory_bytes) + " of " + megabytes(s.memory_mb) : "–"}</span>
      <span role="cell" class="wide">{u ? bytes(u.disk_bytes) + " of " + megabytes(s.disk_mb) : "–"}</span>
      <span role="cell"><Time at={s.last_activity_at} /></span>
    </div>
  );
}

function Delete(): JSX.Element {
  const all = [...chosen.value];
  return (
    <Dialog title={"Delete " + (all.length === 1 ? "a sandbox" : all.length + " sandboxes")} open={deleting}>
      <p>Their files and all that runs in them are lost. Snapshots that were taken of them stay.</p>
      <div class="buttons">
        <Action class="danger" failed={failed} do={async () => { deleting.value = false; await each((id) => call("/sandboxes/" + seg(id), { method: "DELETE" })); }}>Delete {all.length === 1 ? "it" : "them"}</Action>
        <button type="button" onClick={() => { deleting.value = false; }}>Keep {all.length === 1 ? "it" : "them"}</button>
      </div>
    </Dialog>
  );
}
