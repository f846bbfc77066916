// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Snapshots of a sandbox: taken, gone back to, forked from, compared.
import { call, may, seg } from "../api";
import { bytes, oneLine } from "../format";
import { put } from "../live";
import { Action, Dialog, Field, Time, Trouble } from "../parts/parts";
import { useEvery } from "../parts/again";
import { go } from "../router";
import { useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { Diff, Sandbox, SandboxList, Snapshot, SnapshotPage } from "../wire";

const called = (s: Snapshot): string => oneLine(s.name ?? s.id);

export function TimeTravel(p: { of: Sandbox }): JSX.Element {
  const s = p.of, all = useSignal<Snapshot[] | null>(null), cursor = useSignal(""), failed = useSignal<unknown>(null), name = useSignal("");
  const from = useSignal(""), to = useSignal("now"), diff = useSignal<Diff | null>(null), back = useSignal(false), backTo = useSignal<Snapshot | null>(null);
  const write = may("sandboxes:write"), path = "/sandboxes/" + s.id;
  const read = async (): Promise<void> => {
    try {
      const page = await call<SnapshotPage>(path + "/snapshots?limit=200");
      all.value = page.items;
      cursor.value = page.next_cursor ?? "";
      failed.value = null;
    } catch (e) {
      failed.value = e;
    }
  };
  useEvery(4000, read, [s.id]);
  const fork = (one: Snapshot) => async (): Promise<void> => {
    const made = await call<SandboxList>(path + "/fork", { method: "POST", body: { from: one.id } });
    for (const f of made.items) put(f);
    if (made.items[0]) go("/sandboxes/" + seg(made.items[0].id));
  };
  const points: [string, string][] = [["now", "now"], ["base", "its image"], ...(all.value ?? []).map((one): [string, string] => [one.id, called(one)])];
  return (
    <section aria-label="Time">
      {write && <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <label>Name <input value={name.value} onInput={(e) => { name.value = e.currentTarget.value; }} placeholder="optional" /></label>
        <Action class="primary" failed={failed} do={async () => { await call(path + "/snapshots", { method: "POST", body: name.value ? { name: name.value } : {} }); name.value = ""; await read(); }}>Take a snapshot</Action>
      </form>}
      <Trouble error={failed.value} />
      {all.value?.length === 0 && <p class="empty">There are no snapshots. One keeps all files as they are, so that they can be gone back to.</p>}
      {all.value !== null && all.value.length > 0 && <table class="list">
        <thead><tr><th>Snapshot</th><th>Taken</th><th>By</th><th>After</th><th>Size</th><th><span class="hidden">Actions</span></th></tr></thead>
        <tbody>{all.value.map((one) => (
          <tr key={one.id}>
            <td>{called(one)}{one.id === s.parent_snapshot && <span class="good small"> the disk is based on it</span>}{one.auto && <span class="faint small"> automatic</span>}{one.status !== "ready" && <span class="faint small"> {one.status}</span>}{one.detail && <div class="faint small">{oneLine(one.detail)}</div>}</td>
            <td><Time at={one.created_at} /></td><td>{oneLine(one.created_by)}</td>
            <td>{one.parent_snapshot ? oneLine(all.value!.find((o) => o.id === one.parent_snapshot)?.name ?? one.parent_snapshot) : <span class="faint">the image</span>}</td>
            <td>{bytes(one.size_bytes)}</td>
            <td>{write && one.status === "ready" && <span class="buttons">
              <button type="button" onClick={() => { backTo.value = one; back.value = true; }}>Go back…</button>
              <Action failed={failed} do={fork(one)} label={"Fork from " + called(one)}>Fork</Action>
              <Action failed={failed} class="danger" label={"Delete the snapshot " + called(one)} do={async () => { await call(path + "/snapshots/" + one.id, { method: "DELETE" }); await read(); }}>Delete</Action>
            </span>}</td>
          </tr>
        ))}</tbody>
      </table>}
      {cursor.value && <p class="faint">Older ones are not shown.</p>}
      <Dialog title={"Go back to " + (backTo.value ? called(backTo.value) : "")} open={back}>
        <p>The files become what they were. What was changed since then is lost, unless another snapshot has it; commands that run end.</p>
        <div class="buttons">
          <Action class="danger" failed={failed} do={async () => { put(await call<Sandbox>(path + "/rollback", { method: "POST", body: { to: backTo.value!.id } })); back.value = false; await read(); }}>Go back</Action>
          <button type="button" onClick={() => { back.value = false; }}>Stay</button>
        </div>
      </Dialog>
      {(all.value?.length ?? 0) > 0 && <>
        <h2>Compare</h2>
        <form class="filters" onSubmit={(e) => e.preventDefault()}>
          <Field label="From">{(id) => <select id={id} value={from.value || all.value![0]!.id} onChange={(e) => { from.value = e.currentTarget.value; }}>{points.filter(([v]) => v !== "now").map(([v, n]) => <option key={v} value={v}>{n}</option>)}</select>}</Field>
          <Field label="To">{(id) => <select id={id} value={to.value} onChange={(e) => { to.value = e.currentTarget.value; }}>{points.filter(([v]) => v !== "base").map(([v, n]) => <option key={v} value={v}>{n}</option>)}</select>}</Field>
          <Action failed={failed} do={async () => {
            const a = from.value || all.value![0]!.id;
            diff.value = await call<Diff>(path + "/diff?limit=1000" + "&from=" + seg(a) + (to.value === "now" ? "" : "&to=" + seg(to.value)));
          }}>Compare</Action>
        </form>
        {diff.value && <>
          <p role="status">{diff.value.total} {diff.value.total === 1 ? "difference" : "differences"}{diff.value.truncated ? ", of which the first are shown" : ""}</p>
          <ul class="files">{diff.value.items.map((f) => <li key={f.path}><span class={"change " + f.action}>{f.action}</span> <code>{oneLine(f.path)}</code> <span class="faint">{f.action === "deleted" ? "" : bytes(f.size_bytes)}</span></li>)}</ul>
        </>}
      </>}
    </section>
  );
}
