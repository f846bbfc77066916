// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// The images that sandboxes are made of.
import { call, may, seg } from "../api";
import { bytes, oneLine, shown } from "../format";
import { Action, Dialog, Field, Time, Trouble } from "../parts/parts";
import { useEvery } from "../parts/again";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { Image, ImageList } from "../wire";

export function Images(): JSX.Element {
  const all = useSignal<Image[] | null>(null), failed = useSignal<unknown>(null), pulling = useSignal(false), reference = useSignal(""), wrong = useSignal<unknown>(null), deleting = useSignal(false), gone = useSignal<Image | null>(null);
  const read = async (): Promise<void> => {
    try {
      all.value = (await call<ImageList>("/images")).items;
      failed.value = null;
    } catch (e) {
      failed.value = e;
    }
  };
  useEffect(() => { document.title = "Images · sandpit"; }, []);
  useEvery(2000, read, []);
  const admin = may("admin");
  return (
    <section>
      <div class="title"><h1>Images</h1>{admin && <button type="button" class="primary" onClick={() => { pulling.value = true; }}>Pull an image</button>}</div>
      <Trouble error={failed.value} again={() => void read()} />
      {all.value !== null && <table class="list">
        <thead><tr><th>Image</th><th>State</th><th>Size</th><th>Sandboxes</th><th>Built</th><th><span class="hidden">Actions</span></th></tr></thead>
        <tbody>{all.value.map((i) => (
          <tr key={i.name}>
            <td><b>{oneLine(i.name)}</b>{i.default && <span class="good small"> the default</span>}{i.description && <div class="faint small">{oneLine(i.description)}</div>}{Object.keys(i.versions).length > 0 && <div class="faint small">{Object.entries(i.versions).map(([k, v]) => k + " " + v).map(oneLine).join(", ")}</div>}</td>
            <td>{i.status === "building" ? <><span class="good">building</span>{i.phase && <span class="faint small"> {oneLine(i.phase)}</span>}{i.progress !== null && i.progress !== undefined && <progress max={1} value={i.progress} aria-label={"Progress of " + oneLine(i.name)} />}</> : <span class={i.status === "failed" ? "bad" : ""}>{i.status}</span>}{i.error && <div class="small">{shown(i.error)}</div>}</td>
            <td>{i.status === "ready" ? bytes(i.size_bytes) : "–"}</td><td>{i.sandboxes ?? "–"}</td><td><Time at={i.built_at} /></td>
            <td>{admin && <span class="buttons">
              {(i.status === "missing" || i.status === "failed") && <Action failed={failed} label={"Build " + oneLine(i.name)} do={async () => { await call("/images/" + seg(i.name) + "/build?wait_seconds=0", { method: "POST" }); await read(); }}>Build</Action>}
              {i.status === "ready" && may("server:admin") && <button type="button" class="danger" aria-label={"Delete " + oneLine(i.name)} onClick={() => { gone.value = i; deleting.value = true; }}>Delete…</button>}
            </span>}</td>
          </tr>
        ))}</tbody>
      </table>}
      <Dialog title="Pull an image" open={pulling}>
        <form onSubmit={(e) => e.preventDefault()}>
          <Field label="Reference" hint="As registries have it, such as docker.io/library/alpine:3.20">{(id, hint) => <input id={id} aria-describedby={hint} value={reference.value} onInput={(e) => { reference.value = e.currentTarget.value; }} />}</Field>
          <Trouble error={wrong.value} />
          <div class="buttons">
            <Action class="primary" failed={wrong} do={async () => { await call("/images/pull?wait_seconds=0", { method: "POST", body: { reference: reference.value.trim() } }); pulling.value = false; reference.value = ""; await read(); }}>Pull it</Action>
            <button type="button" onClick={() => { pulling.value = false; }}>Leave</button>
          </div>
        </form>
      </Dialog>
      <Dialog title={"Delete " + oneLine(gone.value?.name ?? "")} open={deleting}>
        <p>Its files go from this machine. Sandboxes that are made of it keep it, and then it is refused. One of the catalogue can be built again.</p>
        <div class="buttons">
          <Action class="danger" failed={failed} do={async () => { deleting.value = false; await call("/images/" + seg(gone.value!.name), { method: "DELETE" }); await read(); }}>Delete it</Action>
          <button type="button" onClick={() => { deleting.value = false; }}>Keep it</button>
        </div>
      </Dialog>
    </section>
  );
}
