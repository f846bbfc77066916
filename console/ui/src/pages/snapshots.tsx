// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Snapshots of all sandboxes of the project.
import { call, Failure, may, save, seg } from "../api";
import { bytes, oneLine } from "../format";
import { sandboxes } from "../live";
import { useEvery } from "../parts/again";
import { Code } from "../parts/copy";
import { Action, Link, Time, Trouble } from "../parts/parts";
import { Lose, quote, readPages } from "../parts/list";
import { Send } from "../parts/send";
import { go } from "../router";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { Snapshot } from "../wire";

const called = (s: Snapshot): string => oneLine(s.name ?? s.id);

export function Snapshots(): JSX.Element {
  const all = useSignal<Snapshot[] | null>(null), failed = useSignal<unknown>(null), words = useSignal(""), gone = useSignal<Snapshot | null>(null), name = useSignal(""), told = useSignal("");
  const write = may("sandboxes:write");
  const read = async (): Promise<void> => {
    try {
      all.value = await readPages<Snapshot>("/snapshots");
      failed.value = null;
    } catch (e) {
      if (!(all.value !== null && e instanceof Failure && e.status === 0)) failed.value = e;
    }
  };
  useEffect(() => { document.title = "Snapshots · sandpit"; }, []);
  useEvery(5000, read, []);
  const of = (s: Snapshot): string => (s.sandbox_id === null ? "" : sandboxes.value.get(s.sandbox_id)?.key ?? s.sandbox_id);
  const text = words.value.trim().toLowerCase();
  const some = (all.value ?? []).filter((s) => [s.name ?? "", s.id, s.image, of(s)].some((t) => t.toLowerCase().includes(text)));
  const held = (s: Snapshot): number => (all.value ?? []).filter((o) => o.parent_snapshot === s.id).length;
  return (
    <section>
      <div class="title"><h1>Snapshots</h1></div>
      <p class="faint">A snapshot has all files of a sandbox as they were at one moment. One with a name stays when its sandbox is deleted.</p>
      <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
        <label>Search <input type="search" value={words.value} placeholder="name, sandbox or image" onInput={(e) => { words.value = e.currentTarget.value; }} /></label>
        <span class="faint" role="status">{all.value === null ? "Reading…" : some.length + " of " + all.value.length + ", " + bytes(some.reduce((n, s) => n + (s.size_bytes ?? 0), 0))}</span>
      </form>
      <Trouble error={failed.value} again={() => void read()} />
      {write && <details>
        <summary>Import a snapshot</summary>
        <p>A file that an export wrote, here or on another server. It becomes a snapshot of the project, of no sandbox.</p>
        <label>Name <input value={name.value} placeholder="as the file has it" onInput={(e) => { name.value = e.currentTarget.value; }} /></label>
        <Send label="Choose the file" accept=".gz,.tgz,application/gzip" kind="application/gzip" path={() => "/snapshots/import" + (name.value.trim() ? "?name=" + seg(name.value.trim()) : "")} done={(s) => { told.value = called(s as Snapshot) + " is imported."; name.value = ""; void read(); }} />
        <Code text={"sandpit snapshot import " + (name.value.trim() ? "--name " + quote(name.value.trim()) + " " : "") + "FILE"} />
      </details>}
      <p role="status" class="good">{told.value}</p>
      {all.value?.length === 0 && <div class="empty"><p>There are no snapshots. A sandbox's part Snapshots takes one, and so does the command line:</p><Code text="sandpit snapshot create SANDBOX --name before" /></div>}
      {some.length > 0 && <div class="scroll" tabIndex={0} role="region" aria-label="List of snapshots"><table class="list">
        <thead><tr><th>Snapshot</th><th>Sandbox</th><th>Image</th><th>Size</th><th>Taken</th><th>By</th><th><span class="hidden">Actions</span></th></tr></thead>
        <tbody>{some.map((s) => (
          <tr key={s.id}>
            <td><b>{called(s)}</b>{s.name && <span class="faint small"> {s.id}</span>}{s.auto && <span class="faint small"> automatic</span>}{s.status !== "ready" && <span class="faint small"> {s.status}</span>}{s.archive && <span class="faint small"> archived</span>}{s.detail && <div class="faint small">{oneLine(s.detail)}</div>}</td>
            <td>{s.sandbox_id === null ? <span class="faint">none</span> : sandboxes.value.has(s.sandbox_id) ? <Link to={"/sandboxes/" + seg(s.sandbox_id) + "/time"}>{oneLine(of(s))}</Link> : <span class="faint">{oneLine(s.sandbox_id)}, deleted</span>}</td>
            <td>{oneLine(s.image)}</td><td>{bytes(s.size_bytes)}</td><td><Time at={s.created_at} /></td><td>{oneLine(s.created_by)}</td>
            <td>{s.status === "ready" && <span class="buttons">
              {write && <button type="button" aria-label={"New sandbox from " + called(s)} onClick={() => go("/sandboxes?create&from_snapshot=" + seg(s.id))}>New sandbox…</button>}
              <Action failed={failed} label={"Export " + called(s)} do={() => save("/snapshots/" + seg(s.id) + "/archive", (s.name ?? s.id).replace(/[^A-Za-z0-9._-]/g, "_") + ".tar.gz")}>Export</Action>
              {write && <button type="button" class="danger" aria-label={"Delete " + called(s)} onClick={() => { gone.value = s; }}>Delete…</button>}
            </span>}</td>
          </tr>
        ))}</tbody>
      </table></div>}
      {(all.value?.length ?? 0) >= 1000 && <p class="faint">The newest 1,000 are shown; all are in <code>sandpit snapshot ls</code>.</p>}
      <Lose of={gone} failed={failed} title={(s) => "Delete the snapshot " + called(s)} do={async (s) => { await call("/snapshots/" + seg(s.id), { method: "DELETE" }); await read(); }}>{(s) => (
        <p>The files as they were {s.sandbox_id && sandboxes.value.has(s.sandbox_id) ? "then can no more be gone back to" : "are lost: its sandbox is no more"}{s.size_bytes ? ", " + bytes(s.size_bytes) : ""}. What was made from it stays{held(s) ? ", also the " + held(s) + (held(s) === 1 ? " snapshot" : " snapshots") + " taken after it" : ""}.</p>
      )}</Lose>
    </section>
  );
}
