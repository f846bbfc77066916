// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// The images that sandboxes are made of: what is in each, who uses it, and builds as they go on.
import { call, Failure, may, seg } from "../api";
import { bytes, oneLine, shown } from "../format";
import { sandboxes } from "../live";
import { Action, Dialog, Field, Link, Time, Trouble } from "../parts/parts";
import { Code } from "../parts/copy";
import { Send } from "../parts/send";
import { Lose, quote, Same, useList } from "../parts/list";
import { go, query } from "../router";
import { useEffect, useRef, useSignal } from "../vendor/core";
import type { JSX, Signal } from "../vendor/core";
import type { Image, ImageDetails, ImageList, PulledLayer } from "../wire";

const build = (name: string, anew: boolean): Promise<unknown> => call("/images/" + seg(name) + "/build?wait_seconds=0", { method: "POST", body: anew ? { rebuild: true } : {} });

// pulled reports whether an image is of a registry: names of the catalogue are none of a registry.
const pulled = (i: { name: string }): boolean => /[/:]/.test(i.name);

export function Images(): JSX.Element {
  const list = useList<ImageList>("/images", 1000), failed = useSignal<unknown>(null), pulling = useSignal(false), bringing = useSignal(false), brought = useSignal(""), gone = useSignal<Image | null>(null);
  useEffect(() => { document.title = "Images · sandpit"; }, []);
  const admin = may("admin"), server = may("server:admin"), all = list.all.value?.items ?? null, open = query.value.get("image");
  const show = (name: string | null): void => go("/images" + (name === null ? "" : "?image=" + seg(name)), true);
  const total = (all ?? []).reduce((n, i) => n + (i.status === "ready" ? i.size_bytes : 0), 0);
  return (
    <section>
      <div class="title"><h1>Images</h1>{admin && <span class="buttons"><button type="button" onClick={() => { bringing.value = !bringing.value; }} aria-expanded={bringing.value}>Import an archive</button> <button type="button" class="primary" onClick={() => { pulling.value = true; }}>Pull an image</button></span>}</div>
      <Trouble error={failed.value ?? list.failed.value} again={() => { failed.value = null; void list.read(); }} />
      {admin && bringing.value && <section aria-label="Import an archive">
        <p class="faint">What <code>docker save</code> wrote, or a tar of an OCI layout, compressed or not. By the command line:</p>
        <Code text="sandpit image import FILE" />
        <Send label="Choose an archive" accept=".tar,.gz,.tgz,.zst" kind="application/x-tar" path={() => "/images/import"} done={() => { brought.value = "It is imported."; void list.read(); }} />
        <p role="status" class="good">{brought.value}</p>
      </section>}
      {all !== null && <p class="faint" role="status">{all.filter((i) => i.status === "ready").length} of {all.length} are on this server, {bytes(total)}</p>}
      {all !== null && <div class="scroll" tabIndex={0} role="region" aria-label="List of images"><table class="list images">
        <thead><tr><th>Image</th><th>State</th><th>Size</th><th>Sandboxes</th><th>Built</th><th><span class="hidden">Actions</span></th></tr></thead>
        <tbody>{all.map((i) => (
          <tr key={i.name} class={i.name === open ? "chosen" : ""}>
            <td><button type="button" class="plain" aria-expanded={i.name === open} onClick={() => show(i.name === open ? null : i.name)}><b>{oneLine(i.name)}</b></button>{i.default && <span class="good small"> the default</span>}{!i.allowed && <span class="faint small"> not for new sandboxes</span>}{i.description && <div class="faint small">{oneLine(i.description)}</div>}{Object.keys(i.versions).length > 0 && <div class="faint small">{Object.entries(i.versions).map(([k, v]) => k + " " + v).map(oneLine).join(", ")}</div>}</td>
            <td>{i.status === "building" ? <><span class="good">building</span>{(i.text ?? i.phase) && <span class="faint small"> {oneLine(i.text ?? i.phase ?? "")}</span>}{i.progress !== null && i.progress !== undefined && <progress max={1} value={i.progress} aria-label={"Progress of " + oneLine(i.name)} />}</> : <span class={i.status === "failed" ? "bad" : ""}>{i.status === "missing" ? "not built" : i.status}</span>}{i.error && <div class="small">{shown(i.error)}</div>}</td>
            <td>{i.status === "ready" ? bytes(i.size_bytes) : "–"}</td><td>{i.sandboxes ?? "–"}</td><td><Time at={i.built_at} /></td>
            <td><span class="buttons">
              {admin && i.status === "failed" && pulled(i) && <Action failed={failed} label={"Pull again " + oneLine(i.name)} do={async () => { await call("/images/pull?wait_seconds=0", { method: "POST", body: { reference: i.name } }); await list.read(); }}>Pull again</Action>}
              {admin && (i.status === "missing" || i.status === "failed") && !pulled(i) && <Action failed={failed} label={"Import " + oneLine(i.name)} do={async () => { await build(i.name, false); show(i.name); await list.read(); }}>Import</Action>}
              {i.status === "ready" && i.allowed && may("sandboxes:write") && <button type="button" aria-label={"New sandbox of " + oneLine(i.name)} onClick={() => go("/sandboxes?create&image=" + seg(i.name))}>New sandbox…</button>}
              {i.status === "ready" && !i.default && server && <Action failed={failed} label={"Make it the default: " + oneLine(i.name)} do={async () => { await call("/settings", { method: "PATCH", body: { default_image: i.name } }); await list.read(); }}>Make it the default</Action>}
              {i.status === "ready" && server && !i.config && <Action failed={failed} label={"Rebuild " + oneLine(i.name)} do={async () => { await build(i.name, true); show(i.name); await list.read(); }}>Rebuild</Action>}
              {i.status === "ready" && server && <button type="button" class="danger" aria-label={"Delete " + oneLine(i.name)} onClick={() => { gone.value = i; }}>Delete…</button>}
            </span></td>
          </tr>
        ))}</tbody>
      </table></div>}
      {open && <One key={open} name={open} now={all?.find((i) => i.name === open)} />}
      <Pull open={pulling} done={(i) => { void list.read().then(() => show(i.name)); }} />
      <Lose of={gone} failed={failed} title={(i) => "Delete " + oneLine(i.name)} do={async (i) => { await call("/images/" + seg(i.name), { method: "DELETE" }); if (open === i.name) show(null); await list.read(); }}>{(i) => (
        <p>Its files go from this machine, {bytes(i.size_bytes)}.{i.sandboxes ? " " + i.sandboxes + (i.sandboxes === 1 ? " sandbox is" : " sandboxes are") + " made of it: refused while sandboxes use it." : ""} {i.config ? "It has to be pulled again to be used." : "It can be imported again."}</p>
      )}</Lose>
    </section>
  );
}

function Pull(p: { open: Signal<boolean>; done: (i: Image) => void }): JSX.Element {
  const reference = useSignal(""), wrong = useSignal<unknown>(null), body = { reference: reference.value.trim() };
  return (
    <Dialog title="Pull an image" open={p.open}>
      <form onSubmit={(e) => e.preventDefault()}>
        <Field label="Reference" hint="As registries have it, such as docker.io/library/alpine:3.20">{(id, hint) => <input id={id} aria-describedby={hint} value={reference.value} onInput={(e) => { reference.value = e.currentTarget.value; }} />}</Field>
        <Same cli={"sandpit image pull " + quote(body.reference || "REFERENCE")} rest="POST /v1/images/pull" body={body} none="what comes from elsewhere is the operator's to decide" />
        <Trouble error={wrong.value} />
        <div class="buttons">
          <Action class="primary" failed={wrong} do={async () => { p.done(await call<Image>("/images/pull?wait_seconds=0", { method: "POST", body })); p.open.value = false; reference.value = ""; }}>Pull it</Action>
          <button type="button" onClick={() => { p.open.value = false; }}>Leave</button>
        </div>
      </form>
    </Dialog>
  );
}

// Layers shows how far each layer of an image is that is pulled.
function Layers(p: { of: PulledLayer[] }): JSX.Element {
  return (
    <section aria-label="Layers">
      <h2>Layers</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="List of layers"><table class="list">
        <thead><tr><th>Layer</th><th>State</th><th>Here</th><th>Size</th><th><span class="hidden">Progress</span></th></tr></thead>
        <tbody>{p.of.map((l, n) => (
          <tr key={l.digest}><td><code title={l.digest}>{oneLine(l.digest.slice(0, 19))}</code></td><td class={l.status === "ready" ? "good" : ""}>{l.status}</td><td>{bytes(l.done_bytes)}</td><td>{l.size_bytes > 0 ? bytes(l.size_bytes) : "–"}</td>
            <td><progress max={l.size_bytes || 1} value={l.done_bytes} aria-label={"Layer " + (n + 1)} /></td></tr>
        ))}</tbody>
      </table></div>
    </section>
  );
}

function One(p: { name: string; now: Image | undefined }): JSX.Element {
  const building = p.now?.status === "building", layers = p.now?.pulling ?? [];
  // Of what is pulled there is no more to read before it is here.
  const one = useList<ImageDetails>(building && pulled(p) ? null : "/images/" + seg(p.name), 5000), d = one.all.value;
  return (
    <section aria-label="The image">
      <h2>{oneLine(p.name)}</h2>
      <Trouble error={one.failed.value} />
      {layers.length > 0 && <Layers of={layers} />}
      {may("admin") && !pulled(p) && (building || d?.status === "failed") && <Log key={String(building)} name={p.name} />}
      {d && <>
        <div class="columns">
          <section aria-label="What is inside">
            <dl>
              {d.aliases.length > 0 && <><dt>Also called</dt><dd>{d.aliases.map((a) => oneLine(a) + (d.alias_notes?.[a] ? " (" + oneLine(d.alias_notes[a]!) + ")" : "")).join(", ")}</dd></>}
              {Object.entries(d.versions).map(([k, v]) => <><dt key={k}>{oneLine(k)}</dt><dd>{oneLine(v)}</dd></>)}
              <dt>Files</dt><dd>{d.files}</dd><dt>Disk</dt><dd>{bytes(d.disk_bytes)}</dd>
              {d.config && <><dt>Command</dt><dd><code>{oneLine([...(d.config.entrypoint ?? []), ...(d.config.cmd ?? [])].join(" ")) || "none"}</code></dd><dt>User</dt><dd>{oneLine(d.config.user || "root")}</dd><dt>For</dt><dd>{oneLine(d.config.architecture)}</dd></>}
              {d.start && d.start.length > 0 && <><dt>Starts</dt><dd>{d.start.map((s) => <code key={s}>{oneLine(s)} </code>)}</dd></>}
              {d.absent && d.absent.length > 0 && <><dt>Lacks</dt><dd>{d.absent.map(oneLine).join(", ")}</dd></>}
            </dl>
          </section>
          <section aria-label="Variables of the image">{Object.keys(d.env ?? {}).length > 0 && <details><summary>{Object.keys(d.env ?? {}).length} variables</summary><dl>{Object.entries(d.env ?? {}).map(([k, v]) => <><dt key={k}>{oneLine(k)}</dt><dd>{oneLine(v)}</dd></>)}</dl></details>}</section>
        </div>
        {d.builds.length > 0 && <><h2>Builds on this server</h2><div class="scroll" tabIndex={0} role="region" aria-label="Builds"><table class="list">
          <thead><tr><th>Build</th><th>Built</th><th>Size</th><th>Files</th><th>Used by</th></tr></thead>
          <tbody>{d.builds.map((b) => (
            <tr key={b.digest}><td><code title={b.digest}>{b.digest.slice(0, 19)}</code>{b.current && <span class="good small"> the current one</span>}</td><td><Time at={b.built_at} /></td><td>{bytes(b.size_bytes)}</td><td>{b.files}</td>
              <td>{b.users.sandbox_count + b.users.snapshot_count === 0 && Object.keys(b.users.pools).length === 0 && <span class="faint">nobody</span>}
                {b.users.sandboxes.map((u) => <><Link key={u.id} to={"/sandboxes/" + seg(u.id)}>{oneLine(sandboxes.value.get(u.id)?.key ?? u.id)}</Link> </>)}{b.users.sandbox_count > b.users.sandboxes.length && "and " + (b.users.sandbox_count - b.users.sandboxes.length) + " more sandboxes "}
                {b.users.snapshot_count > 0 && <Link to="/snapshots">{b.users.snapshot_count} {b.users.snapshot_count === 1 ? "snapshot" : "snapshots"}</Link>}{Object.keys(b.users.pools).length > 0 && " pools: " + Object.keys(b.users.pools).map(oneLine).join(", ")}</td></tr>
          ))}</tbody>
        </table></div></>}
        {d.output && d.output.length > 0 && <><h2>What the step that failed wrote</h2><pre class="log" tabIndex={0} aria-label="Output of the step">{shown(d.output.join("\n"))}</pre></>}
      </>}
    </section>
  );
}

// keptLog is how many characters of a build's output are on the page.
const keptLog = 200_000;

// Log shows a build's output as it comes.
function Log(p: { name: string }): JSX.Element {
  const text = useSignal(""), cut = useSignal(false), failed = useSignal<unknown>(null), log = useRef<HTMLPreElement>(null), stick = useRef(true);
  useEffect(() => {
    const stop = new AbortController();
    const read = async (): Promise<void> => {
      try {
        const answer = await fetch("/v1/images/" + seg(p.name) + "/log?follow=true", { cache: "no-store", signal: stop.signal });
        if (!answer.ok) throw new Failure(answer.status, (await answer.json().catch(() => ({}))) as object);
        const words = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
        for (;;) {
          const { value, done } = await words.read();
          if (done) return;
          const all = text.value + shown(value);
          cut.value ||= all.length > keptLog;
          text.value = all.slice(-keptLog);
        }
      } catch (e) {
        // A server that restarts ends its builds.
        if (!stop.signal.aborted && !(e instanceof Failure && e.status === 404)) failed.value = e instanceof Failure ? e : null;
      }
    };
    void read();
    return () => stop.abort();
  }, [p.name]);
  const all = text.value;
  useEffect(() => { if (stick.current && log.current) log.current.scrollTop = log.current.scrollHeight; }, [all]);
  return (
    <>
      <Trouble error={failed.value} />
      {cut.value && <p class="faint small">What came before is in <code>sandpit image logs {quote(oneLine(p.name))}</code>.</p>}
      {all && <pre ref={log} class="log" tabIndex={0} aria-label="Output of the build" onScroll={(e) => { const l = e.currentTarget; stick.current = l.scrollTop + l.clientHeight > l.scrollHeight - 30; }}>{all}</pre>}
    </>
  );
}
