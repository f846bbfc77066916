// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Volumes: directories that outlive sandboxes.
import { call, may, seg } from "../api";
import { bytes, megabytes, oneLine } from "../format";
import { sandboxes } from "../live";
import { Code } from "../parts/copy";
import { Action, Dialog, Field, Link, Time, Trouble } from "../parts/parts";
import { Lose, quote, Same, useList } from "../parts/list";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { CreateVolume, Volume, VolumeList } from "../wire";

export function Volumes(): JSX.Element {
  const list = useList<VolumeList>("/volumes", 4000), failed = useSignal<unknown>(null), wrong = useSignal<unknown>(null), making = useSignal(false), gone = useSignal<Volume | null>(null), name = useSignal(""), size = useSignal(""), days = useSignal("");
  const write = may("sandboxes:write"), all = list.all.value?.items ?? null;
  useEffect(() => { document.title = "Volumes · sandpit"; }, []);
  const body: CreateVolume = { name: name.value.trim(), ...(size.value ? { size_mb: Number(size.value) } : {}), ...(days.value ? { lifetime_seconds: Math.round(Number(days.value) * 86400) } : {}) };
  return (
    <section>
      <div class="title"><h1>Volumes</h1>{write && <button type="button" class="primary" onClick={() => { wrong.value = null; making.value = true; }}>Create a volume</button>}</div>
      <p class="faint">A volume is a directory with a name that outlives sandboxes, and that several may mount at once.</p>
      <Trouble error={failed.value ?? list.failed.value} again={() => { failed.value = null; void list.read(); }} />
      {all?.length === 0 && <div class="empty"><p>There are no volumes. Create one here, or by the command line:</p><Code text={"sandpit volume create data --size 10G\nsandpit create --volume data:/mnt/data"} /></div>}
      {all !== null && all.length > 0 && <div class="scroll" tabIndex={0} role="region" aria-label="List of volumes"><table class="list">
        <thead><tr><th>Volume</th><th>Holds</th><th>Used by</th><th>Created</th><th>Expires</th><th>By</th><th>Runtime</th><th><span class="hidden">Actions</span></th></tr></thead>
        <tbody>{all.map((v) => (
          <tr key={v.id}>
            <td><b>{oneLine(v.name)}</b>{v.status !== "ready" && <span class="faint small"> {v.status}</span>}</td>
            <td>{bytes(v.used_bytes)}{v.size_mb > 0 ? " of " + megabytes(v.size_mb) : ""}</td>
            <td>{v.users.length === 0 ? <span class="faint">nobody</span> : v.users.map((id) => <><Link key={id} to={"/sandboxes/" + seg(id)}>{oneLine(sandboxes.value.get(id)?.key ?? id)}</Link> </>)}</td>
            <td><Time at={v.created_at} /></td><td>{v.expires_at === null ? <span class="faint">never</span> : <Time at={v.expires_at} />}</td><td>{oneLine(v.created_by)}</td><td>{v.runtime}</td>
            <td>{write && v.status === "ready" && <button type="button" class="danger" aria-label={"Delete " + oneLine(v.name)} disabled={v.users.length > 0} title={v.users.length > 0 ? "Sandboxes mount it" : undefined} onClick={() => { gone.value = v; }}>Delete…</button>}</td>
          </tr>
        ))}</tbody>
      </table></div>}
      <Dialog title="Create a volume" open={making}>
        <form onSubmit={(e) => e.preventDefault()}>
          <Field label="Name">{(id) => <input id={id} value={name.value} onInput={(e) => { name.value = e.currentTarget.value; }} />}</Field>
          <Field label="Size in MiB" hint="The most that it holds. Left empty, it has no limit of its own.">{(id, hint) => <input id={id} aria-describedby={hint} type="number" min={1} value={size.value} onInput={(e) => { size.value = e.currentTarget.value; }} />}</Field>
          <Field label="Lifetime in days" hint="It is deleted so long after its creation, or as soon after that as no sandbox mounts it. Left empty, it stays until it is deleted.">{(id, hint) => <input id={id} aria-describedby={hint} type="number" min={0} max={3650} step="any" value={days.value} onInput={(e) => { days.value = e.currentTarget.value; }} />}</Field>
          <Same cli={"sandpit volume create " + quote(body.name || "NAME") + (body.size_mb ? " --size " + body.size_mb + "M" : "") + (body.lifetime_seconds ? " --lifetime " + body.lifetime_seconds + "s" : "")} rest="POST /v1/volumes" body={body} tool="create_volume" />
          <Trouble error={wrong.value} />
          <div class="buttons">
            <Action class="primary" failed={wrong} do={async () => { await call<Volume>("/volumes", { method: "POST", body }); making.value = false; name.value = ""; size.value = ""; days.value = ""; await list.read(); }}>Create</Action>
            <button type="button" onClick={() => { making.value = false; }}>Leave</button>
          </div>
        </form>
      </Dialog>
      <Lose of={gone} failed={failed} title={(v) => "Delete the volume " + oneLine(v.name)} do={async (v) => { await call("/volumes/" + seg(v.id), { method: "DELETE" }); await list.read(); }}>{(v) => (
        <p>All that is in it is lost{v.used_bytes ? ", " + bytes(v.used_bytes) : ""}: no snapshot of a sandbox has files of a volume.</p>
      )}</Lose>
    </section>
  );
}
