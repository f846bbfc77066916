// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Snapshots of a sandbox and of those that it has to do with: taken, gone back to, forked from, compared.
import { call, may, raw, seg } from "../api";
import { bytes, oneLine } from "../format";
import { put, sandboxes } from "../live";
import { useDownloads } from "../parts/download";
import { Action, Dialog, Field, Link, Time, Trouble } from "../parts/parts";
import { Lines } from "../parts/textdiff";
import { useEvery } from "../parts/again";
import { go } from "../router";
import { useComputed, useEffect, useRef, useSignal } from "../vendor/core";
import type { JSX, Signal } from "../vendor/core";
import type { Diff, Sandbox, SandboxList, Snapshot, SnapshotPage } from "../wire";
import { called, familyOf, graphOf, Lanes, saying } from "./graph";

const mostPages = 10, perPage = 500; // of snapshots that are read

const rows = 30; // of the table at a time

// useSnapshots reads those of the project; again reads them anew.
function useSnapshots(failed: Signal<unknown>): { all: Signal<Snapshot[] | null>; more: Signal<boolean>; again: () => Promise<void> } {
  const all = useSignal<Snapshot[] | null>(null), more = useSignal(false), first = useRef("");
  const again = async (): Promise<void> => {
    try {
      const page = await call<SnapshotPage>("/snapshots?limit=" + perPage), now = JSON.stringify(page);
      if (now === first.current) return; // what is older changes with the total
      let got = page.items, cursor = page.next_cursor;
      for (let i = 1; i < mostPages && cursor; i++) {
        const next = await call<SnapshotPage>("/snapshots?limit=" + perPage + "&cursor=" + seg(cursor));
        got = got.concat(next.items);
        cursor = next.next_cursor;
      }
      first.current = now;
      all.value = got;
      more.value = cursor !== null;
      failed.value = null;
    } catch (e) {
      failed.value = e;
    }
  };
  useEvery(4000, again, []);
  return { all, more, again };
}

export function TimeTravel(p: { of: Sandbox }): JSX.Element {
  const s = p.of, failed = useSignal<unknown>(null), name = useSignal(""), { all, more, again } = useSnapshots(failed), wide = useSignal(false), chosen = useSignal("now " + s.id), page = useSignal(0);
  const from = useSignal(""), to = useSignal("now"), diff = useSignal<Diff | null>(null), between = useSignal(""), lines = useSignal(""), back = useSignal(false), backTo = useSignal<Snapshot | null>(null), losing = useSignal(false), told = useSignal(""), first = useSignal(true), forking = useSignal<{ of: Snapshot; count: number } | null>(null), downloads = useDownloads(), input = useRef<HTMLInputElement>(null);
  const write = may("sandboxes:write"), path = "/sandboxes/" + s.id;
  const family = useComputed(() => (wide.value ? { snapshots: all.value ?? [], sandboxes: [...sandboxes.value.values()] } : familyOf(s.id, all.value ?? [], sandboxes.value)));
  const graph = useComputed(() => graphOf(family.value.snapshots, family.value.sandboxes));
  const points = new Map(graph.value.points.map((q) => [q.key, q])), point = points.get(chosen.value), one = point?.snapshot ?? null;
  const byId = new Map((all.value ?? []).map((o) => [o.id, o])), mine = family.value.snapshots, newest = mine.find((o) => o.sandbox_id === s.id) ?? mine[0];
  const goBack = async (o: Snapshot): Promise<void> => {
    told.value = "";
    if (able && first.value) await call(path + "/snapshots", { method: "POST", body: {} });
    put(await call<Sandbox>(path + "/rollback", { method: "POST", body: { to: o.id } }));
    back.value = false;
    chosen.value = "now " + s.id;
    diff.value = null; // it compared what is no more
    told.value = "Went back to " + called(o) + ".";
    await again();
  };
  const where = (id: string): string => (id === "now" ? "now" : id === "base" ? "its image" : byId.has(id) ? called(byId.get(id)!) : id);
  const at = Math.min(page.value, Math.max(0, Math.ceil(mine.length / rows) - 1)), start = from.value || newest?.id || "base";
  const able = s.status === "running" || s.status === "paused" || s.status === "stopped"; // to be kept as it is now
  return (
    <section aria-label="Snapshots">
      <div class="filters">
        {write && <form class="filters" onSubmit={(e) => e.preventDefault()}>
          <label>Name <input value={name.value} onInput={(e) => { name.value = e.currentTarget.value; }} placeholder="optional" /></label>
          <Action class="primary" failed={failed} do={async () => { await call(path + "/snapshots", { method: "POST", body: name.value ? { name: name.value } : {} }); name.value = ""; put(await call<Sandbox>(path)); await again(); }}>Take a snapshot</Action>
          <input ref={input} type="file" accept=".gz,.tgz" hidden onChange={(e) => { const f = e.currentTarget.files?.[0]; e.currentTarget.value = ""; if (f) raw("/snapshots/import" + (name.value ? "?name=" + seg(name.value) : ""), { method: "POST", headers: { "Content-Type": "application/gzip" }, body: f }).then(again, (error: unknown) => { failed.value = error; }); }} />
          <button type="button" onClick={() => input.current?.click()}>Import…</button>
        </form>}
        <label><input type="checkbox" checked={wide.value} onChange={(e) => { wide.value = e.currentTarget.checked; }} /> All sandboxes, not only what came of this one</label>
      </div>
      <Trouble error={failed.value} />
      <p role="status" class="good">{told.value}</p>
      {downloads.shown}
      {all.value !== null && mine.length === 0 && <div class="empty"><p>There are no snapshots. One keeps all files as they are, so that they can be gone back to:</p><pre>{"sandpit snapshot create " + (s.key ?? s.id)}</pre></div>}
      {mine.length > 0 && <>
        <Lanes graph={graph.value} chosen={chosen} />
        {more.value && <p class="faint">Older snapshots than these {perPage * mostPages} are not shown.</p>}
        {point && <section class="chosen-point" aria-label="Chosen in the graph">
          <p role="status"><strong>{saying(point, points)}</strong>{point.sandbox && point.sandbox !== s.id && sandboxes.value.has(point.sandbox) && <> · <Link to={"/sandboxes/" + seg(point.sandbox)}>its sandbox</Link></>}</p>
          {one && <p class="faint small">{one.id} · {one.status}{one.auto ? " · automatic" : ""} · by {oneLine(one.created_by)} · {bytes(one.size_bytes)} · {oneLine(one.image)}{one.detail ? " · " + oneLine(one.detail) : ""}</p>}
          {one && one.status === "ready" && <Deeds key={one.id} of={s} one={one} fork={(count) => { forking.value = { of: one, count }; }} failed={failed}
            back={() => { backTo.value = one; first.value = true; back.value = true; }} lose={() => { losing.value = true; }} save={() => downloads.get("/snapshots/" + one.id + "/archive", (one.name ?? one.id).replace(/[^A-Za-z0-9._-]+/g, "-") + ".tar.gz", false)}
            from={() => { from.value = one.id; }} to={() => { to.value = one.id; }} />}
          {point.kind === "now" && point.sandbox === s.id && <div class="buttons"><button type="button" onClick={() => { to.value = "now"; }}>Compare to now</button></div>}
        </section>}
        <h2>Snapshots</h2>
        <table class="list">
          <thead><tr><th>Snapshot</th><th>Of</th><th>Taken</th><th>By</th><th>After</th><th>Size</th><th><span class="hidden">Actions</span></th></tr></thead>
          <tbody>{mine.slice(at * rows, (at + 1) * rows).map((o) => (
            <tr key={o.id} class={o.id === chosen.value ? "chosen" : ""}>
              <td><button type="button" class="plain" aria-pressed={o.id === chosen.value} onClick={() => { chosen.value = o.id; }}>{called(o)}</button>{o.id === s.parent_snapshot && <span class="good small"> you are here</span>}{o.auto && <span class="faint small"> automatic</span>}{o.status !== "ready" && <span class="faint small"> {o.status}</span>}{o.detail && <div class="faint small">{oneLine(o.detail)}</div>}</td>
              <td>{o.sandbox_id === s.id ? "this sandbox" : o.sandbox_id === null ? "imported" : oneLine(sandboxes.value.get(o.sandbox_id)?.key ?? o.sandbox_id)}</td>
              <td><Time at={o.created_at} /></td><td>{oneLine(o.created_by)}</td>
              <td>{o.parent_snapshot ? oneLine(byId.get(o.parent_snapshot)?.name ?? o.parent_snapshot) : <span class="faint">the image</span>}</td>
              <td>{bytes(o.size_bytes)}</td>
              <td>{write && o.status === "ready" && <span class="buttons"><button type="button" onClick={() => { backTo.value = o; first.value = true; back.value = true; }}>Go back…</button><button type="button" aria-label={"Fork from " + called(o)} onClick={() => { forking.value = { of: o, count: 1 }; }}>Fork…</button></span>}</td>
            </tr>
          ))}</tbody>
        </table>
        {mine.length > rows && <div class="buttons"><button type="button" disabled={at === 0} onClick={() => { page.value = at - 1; }}>Newer</button><span>{at * rows + 1} to {Math.min(mine.length, (at + 1) * rows)} of {mine.length}</span><button type="button" disabled={(at + 1) * rows >= mine.length} onClick={() => { page.value = at + 1; }}>Older</button></div>}
        <h2>Compare</h2>
        <form class="filters" onSubmit={(e) => e.preventDefault()}>
          <span>From <strong>{where(start)}</strong> to <strong>{where(to.value)}</strong> <span class="faint small">(choose others in the graph)</span></span>
          <button type="button" onClick={() => { from.value = "base"; }}>From its image</button>
          <Action failed={failed} do={async () => {
            const points = "&from=" + seg(start) + (to.value === "now" ? "" : "&to=" + seg(to.value));
            diff.value = null;
            lines.value = "";
            diff.value = await call<Diff>(path + "/diff?limit=200" + points);
            between.value = points;
          }}>Compare</Action>
        </form>
        {diff.value && <>
          <p role="status">{diff.value.total} {diff.value.total === 1 ? "difference" : "differences"}{diff.value.truncated ? ", of which the first are shown" : ""}</p>
          <ul class="files differences">{diff.value.items.map((f) => <li key={f.path}><span class={"change " + f.action}>{f.action}</span> {f.escaped ? <code>{oneLine(f.path)}</code> : <button type="button" class="plain" aria-expanded={lines.value === f.path} onClick={() => { lines.value = lines.value === f.path ? "" : f.path; }}><code>{oneLine(f.path)}</code></button>} <span class="faint">{f.action === "deleted" ? "" : bytes(f.size_bytes)}</span>
            {lines.value === f.path && <Lines sandbox={s.id} path={f.path} points={between.value} />}</li>)}</ul>
        </>}
      </>}
      <Dialog title={"Go back to " + (backTo.value ? called(backTo.value) : "")} open={back}>
        <p>The files of this sandbox become what they were there. What was changed since then is lost, unless another snapshot has it; commands that run end.</p>
        {able && <p><label><input type="checkbox" checked={first.value} onChange={(e) => { first.value = e.currentTarget.checked; }} /> Take a snapshot of now first</label></p>}
        <Trouble error={failed.value} />
        <div class="buttons">
          <button type="button" onClick={() => { back.value = false; }}>Stay</button>
          <Action class="danger" failed={failed} do={() => goBack(backTo.value!)}>Go back</Action>
        </div>
      </Dialog>
      <Forking of={forking} path={path} failed={failed} />
      <Dialog title={"Delete the snapshot " + (one ? called(one) : "")} open={losing}>
        <p>The files as they were {one && <Time at={one.created_at} />} are lost, and can no more be gone back to{one?.size_bytes ? "; " + bytes(one.size_bytes) + " become free" : ""}. Sandboxes and snapshots that were made of it stay.</p>
        <Trouble error={failed.value} />
        <div class="buttons">
          <button type="button" onClick={() => { losing.value = false; }}>Keep it</button>
          <Action class="danger" failed={failed} do={async () => { await call("/snapshots/" + one!.id, { method: "DELETE" }); losing.value = false; chosen.value = "now " + s.id; await again(); }}>Delete it</Action>
        </div>
      </Dialog>
    </section>
  );
}

// Forking asks how forks of a snapshot are to be called, and makes them.
function Forking(p: { of: Signal<{ of: Snapshot; count: number } | null>; path: string; failed: Signal<unknown> }): JSX.Element {
  const open = useSignal(false), key = useSignal(""), one = p.of.value;
  useEffect(() => { key.value = ""; open.value = one !== null; }, [one]);
  useEffect(() => { if (!open.value) p.of.value = null; }, [open.value]);
  if (!one) return <Dialog title="" open={open}>{null}</Dialog>;
  return (
    <Dialog title={"Fork from " + called(one.of)} open={open}>
      <form onSubmit={(e) => e.preventDefault()}>
        <p>{one.count === 1 ? "A new sandbox with these files starts at once. This one goes on as it is." : one.count + " new sandboxes with these files start at once. This one goes on as it is."}</p>
        {one.count === 1 && <Field label="Name" hint="Optional.">{(id, hint) => <input id={id} aria-describedby={hint} value={key.value} onInput={(e) => { key.value = e.currentTarget.value; }} />}</Field>}
        <Trouble error={p.failed.value} />
        <div class="buttons">
          <Action class="primary" failed={p.failed} do={async () => {
            const made = await call<SandboxList>(p.path + "/fork", { method: "POST", body: { from: one.of.id, count: one.count, ...(key.value.trim() && one.count === 1 ? { key: key.value.trim() } : {}) } });
            for (const f of made.items) put(f);
            open.value = false;
            if (one.count === 1 && made.items[0]) go("/sandboxes/" + seg(made.items[0].id));
          }}>{one.count === 1 ? "Fork and start it" : "Fork and start them"}</Action>
          <button type="button" onClick={() => { open.value = false; }}>Leave it</button>
        </div>
      </form>
    </Dialog>
  );
}

// Deeds are what can be done with a snapshot.
function Deeds(p: { of: Sandbox; one: Snapshot; failed: Signal<unknown>; fork: (count: number) => void; back: () => void; lose: () => void; save: () => Promise<void>; from: () => void; to: () => void }): JSX.Element {
  const count = useSignal(1), making = useSignal(false), key = useSignal(""), write = may("sandboxes:write");
  return (
    <div class="buttons">
      {write && <>
        <button type="button" onClick={p.back}>Go back to it…</button>
        <span class="buttons"><button type="button" onClick={() => p.fork(count.value)}>Fork…</button><label>copies <input type="number" min={1} max={100} size={4} value={count.value} onInput={(e) => { count.value = Math.max(1, Math.min(100, Number(e.currentTarget.value) || 1)); }} /></label></span>
        <button type="button" onClick={() => { key.value = ""; making.value = true; }}>Begin a sandbox with it…</button>
      </>}
      <button type="button" onClick={p.from}>Compare from here</button>
      <button type="button" onClick={p.to}>Compare to here</button>
      <Action failed={p.failed} do={p.save}>Export</Action>
      {write && <button type="button" class="danger" onClick={p.lose}>Delete…</button>}
      <Dialog title={"A new sandbox with " + called(p.one)} open={making}>
        <form onSubmit={(e) => e.preventDefault()}>
          <p>It has the files, the image, the limits and the variables of the snapshot.</p>
          <Field label="Name" hint="Optional.">{(id, hint) => <input id={id} aria-describedby={hint} value={key.value} onInput={(e) => { key.value = e.currentTarget.value; }} />}</Field>
          <pre>{"sandpit create" + (key.value ? " --name " + key.value : "") + " --from-snapshot " + p.one.id}</pre>
          <Trouble error={p.failed.value} />
          <div class="buttons">
            <Action class="primary" failed={p.failed} do={async () => {
              const made = await call<Sandbox>("/sandboxes", { method: "POST", body: { from_snapshot: p.one.id, if_exists: "refuse", ...(key.value ? { key: key.value } : {}) } });
              put(made);
              making.value = false;
              go("/sandboxes/" + seg(made.id));
            }}>Create</Action>
            <button type="button" onClick={() => { making.value = false; }}>Leave it</button>
          </div>
        </form>
      </Dialog>
    </div>
  );
}
