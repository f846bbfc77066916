// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// The list of sandboxes, live.
import { call, may, seg } from "../api";
import { bytes, megabytes, oneLine } from "../format";
import { known, newest, put } from "../live";
import { Action, Dialog, Field, Link, State, Time, Trouble } from "../parts/parts";
import { useEvery } from "../parts/again";
import { go, query } from "../router";
import { computed, signal, useEffect, useRef, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { Sandbox, StatsList } from "../wire";

const words = signal("");
const state = signal("");
const chosen = signal<ReadonlySet<string>>(new Set());
const failed = signal<unknown>(null);
const creating = signal(false);
const deleting = signal(false);

// use is what each sandbox that is up uses now, by id.
const use = signal<ReadonlyMap<string, StatsList["items"][number]>>(new Map());

const shownOnes = computed(() => {
  const text = words.value.trim().toLowerCase();
  return newest.value.filter((s) => (state.value === "" || s.status === state.value) &&
    (text === "" || [s.id, s.key ?? "", s.image, ...Object.entries(s.metadata).map(([k, v]) => k + "=" + v)].some((t) => t.toLowerCase().includes(text))));
});

export const nameOf = (s: Sandbox): string => oneLine(s.key ?? s.id);

async function each(verb: (id: string) => Promise<unknown>): Promise<void> {
  const all = [...chosen.value];
  const errors: unknown[] = [];
  for (let i = 0; i < all.length; i += 4) {
    await Promise.all(all.slice(i, i + 4).map((id) => verb(id).catch((e: unknown) => { errors.push(e); })));
  }
  chosen.value = new Set();
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
    if (query.value.get("create") !== null) creating.value = true;
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
        <span class="faint" role="status">{known.value ? all.length + " of " + newest.value.length : "Reading…"}</span>
      </form>
      {write && picked > 0 && <div class="bulk" role="group" aria-label="The chosen sandboxes">
        <span>{picked} chosen</span>
        <Action failed={failed} do={() => each(post("start"))}>Start</Action>
        <Action failed={failed} do={() => each(post("stop"))}>Stop</Action>
        <Action failed={failed} do={() => each(post("pause"))}>Pause</Action>
        <button type="button" class="danger" onClick={() => { deleting.value = true; }}>Delete…</button>
        <button type="button" onClick={() => { chosen.value = new Set(); }}>Choose none</button>
      </div>}
      <Trouble error={failed.value} />
      {known.value && newest.value.length === 0 && <div class="empty"><p>There are no sandboxes yet. Make one here, or by the command line:</p><pre>sandpit run -- echo hello</pre></div>}
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
      <Create />
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

function Create(): JSX.Element {
  const wrong = useSignal<unknown>(null);
  const body = useSignal<{ key?: string; image?: string; memory_mb?: number; cpu_cores?: number }>({});
  const set = (name: "key" | "image", value: string): void => {
    const b = { ...body.value };
    if (value) b[name] = value;
    else delete b[name];
    body.value = b;
  };
  const count = (name: "memory_mb" | "cpu_cores", value: string): void => {
    const b = { ...body.value };
    if (value) b[name] = Number(value);
    else delete b[name];
    body.value = b;
  };
  const make = async (): Promise<void> => {
    const s = await call<Sandbox>("/sandboxes", { method: "POST", body: body.value });
    put(s);
    creating.value = false;
    body.value = {};
    go("/sandboxes/" + seg(s.id));
  };
  return (
    <Dialog title="Create a sandbox" open={creating}>
      <form onSubmit={(e) => e.preventDefault()}>
        <Field label="Name" hint="Left empty, it has an id alone.">{(id, hint) => <input id={id} aria-describedby={hint} value={body.value.key ?? ""} onInput={(e) => set("key", e.currentTarget.value)} />}</Field>
        <Field label="Image" hint="Left empty, the server's default.">{(id, hint) => <input id={id} aria-describedby={hint} value={body.value.image ?? ""} onInput={(e) => set("image", e.currentTarget.value)} />}</Field>
        <Field label="Memory in MiB">{(id) => <input id={id} type="number" min={16} value={body.value.memory_mb ?? ""} onInput={(e) => count("memory_mb", e.currentTarget.value)} />}</Field>
        <Field label="Processors">{(id) => <input id={id} type="number" min={0.1} step={0.1} value={body.value.cpu_cores ?? ""} onInput={(e) => count("cpu_cores", e.currentTarget.value)} />}</Field>
        <details><summary>The same by the command line, REST and MCP</summary>
          <pre>{"sandpit create" + (body.value.key ? " --name " + quote(body.value.key) : "") + (body.value.image ? " --image " + quote(body.value.image) : "") + (body.value.memory_mb ? " --memory " + body.value.memory_mb + "M" : "") + (body.value.cpu_cores ? " --cpu " + body.value.cpu_cores : "")}</pre>
          <pre>{"POST /v1/sandboxes\n" + JSON.stringify(body.value, null, 2)}</pre>
          <pre>{"create_sandbox " + JSON.stringify(body.value)}</pre>
        </details>
        <Trouble error={wrong.value} />
        <div class="buttons">
          <Action class="primary" failed={wrong} do={make}>Create</Action>
          <button type="button" onClick={() => { creating.value = false; }}>Leave</button>
        </div>
      </form>
    </Dialog>
  );
}

// quote is a word as a shell has to have it.
const quote = (word: string): string => (/^[A-Za-z0-9._:\/-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'");
