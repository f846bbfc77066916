// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// What listens in a sandbox, and the links to it.
import { call, may, seg } from "../api";
import { exact, oneLine } from "../format";
import { Code } from "../parts/copy";
import { Frame, frames } from "../parts/frame";
import { Action, Link, Time, Trouble } from "../parts/parts";
import { useActivity } from "../parts/again";
import { useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { Port, PortList, PreviewLink, PreviewLinkList, Sandbox } from "../wire";

const lives: [number, string][] = [[3600, "an hour"], [86400, "a day"], [604800, "a week"]];

export function Ports(p: { of: Sandbox }): JSX.Element {
  const s = p.of, ports = useSignal<Port[] | null>(null), links = useSignal<PreviewLink[]>([]), failed = useSignal<unknown>(null), life = useSignal(3600), shown = useSignal("");
  const write = may("sandboxes:write"), path = "/sandboxes/" + s.id, up = s.status === "running";
  const read = async (): Promise<void> => {
    try {
      // A sandbox that is stopped has none.
      ports.value = up ? (await call<PortList>(path + "/ports")).items : [];
      if (write) links.value = (await call<PreviewLinkList>(path + "/preview-links")).items;
      failed.value = null;
    } catch (e) {
      failed.value = e;
    }
  };
  useActivity(s.id, read, [up]);
  const make = (port: number) => async (): Promise<void> => {
    await call<PreviewLink>(path + "/preview-links", { method: "POST", body: { port, expires_seconds: life.value } });
    await read();
  };
  const framed = links.value.find((l) => l.id === shown.value && l.url);
  return (
    <section aria-label="Ports">
      <Trouble error={failed.value} again={() => void read()} />
      <div class="buttons">
        {up && <button type="button" onClick={() => void read()}>Look again</button>}
        {write && (ports.value ?? []).length > 0 && <label>New links are good for <select value={life.value} onChange={(e) => { life.value = Number(e.currentTarget.value); }}>{lives.map(([n, name]) => <option key={n} value={n}>{name}</option>)}</select></label>}
      </div>
      {ports.value?.length === 0 && <div class="empty"><p>{up ? "Nothing listens. A program that serves is listed here as soon as it does:" : "It does not run, so that nothing listens."}</p>{up && <Code text={"sandpit exec --detach " + (s.key ?? s.id) + " -- python3 -m http.server 8000"} />}</div>}
      {ports.value !== null && ports.value.length > 0 && <>
        <table class="list">
          <thead><tr><th>Port</th><th>Address</th><th>Program</th><th>User</th><th><span class="hidden">Actions</span></th></tr></thead>
          <tbody>{ports.value.map((one) => (
            <tr key={one.protocol + one.port + one.address}>
              <td>{one.port}{one.protocol !== "tcp" && <span class="faint small"> {one.protocol}</span>}</td><td>{one.address}</td><td>{oneLine(one.command ?? "–")}{one.pid ? <span class="faint small"> {one.pid}</span> : ""}</td><td>{oneLine(one.user)}</td>
              <td>{write && one.protocol === "tcp" && <Action failed={failed} do={make(one.port)} label={"Make a link to port " + one.port}>Make a link</Action>}</td>
            </tr>
          ))}</tbody>
        </table>
      </>}
      {links.value.length > 0 && <>
        <h2>Links</h2>
        <p class="faint">Whoever has a link can open it, until it is revoked or expires.</p>
        <table class="list">
          <thead><tr><th>Link</th><th>Port</th><th>Made</th><th>Ends</th><th><span class="hidden">Actions</span></th></tr></thead>
          <tbody>{links.value.map((l) => (
            <tr key={l.id}>
              <td>{l.url ? <a href={l.url} target="_blank" rel="noopener noreferrer">{l.url}</a> : <span class="faint">this browser reaches no host of previews; see docs/previews.md</span>}</td>
              <td>{l.port}</td><td><Time at={l.created_at} /> <span class="faint">{oneLine(l.created_by)}</span></td>
              <td>{l.expires_at ? <span title={exact(l.expires_at)}><Time at={l.expires_at} /></span> : "with the sandbox"}</td>
              <td><span class="buttons">
                {l.url && frames() && <button type="button" aria-label={"Show it here: port " + l.port} aria-pressed={shown.value === l.id} onClick={() => { shown.value = shown.value === l.id ? "" : l.id; }}>Show it here</button>}
                {l.url && frames() && <Link to={"/sandboxes/" + seg(s.id) + "/terminal?preview=" + seg(l.id)}>Beside a terminal</Link>}
                <Action failed={failed} class="danger" label={"Revoke the link to port " + l.port} do={async () => { await call(path + "/preview-links/" + seg(l.id), { method: "DELETE" }); await read(); }}>Revoke</Action>
              </span></td>
            </tr>
          ))}</tbody>
        </table>
        {framed && <Frame key={framed.id} link={framed} close={() => { shown.value = ""; }} />}
      </>}
    </section>
  );
}
