// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Templates: images and disks with defaults for the sandboxes that are made of them.
import { call, may, seg } from "../api";
import { megabytes, oneLine, shown } from "../format";
import { Code } from "../parts/copy";
import { Action, Dialog, Field, Link, Time, Trouble } from "../parts/parts";
import { Lose, quote, Same, useList } from "../parts/list";
import { go, query } from "../router";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX, Signal } from "../vendor/core";
import type { CreateTemplate, Template, TemplateList } from "../wire";

const called = (t: Template): string => oneLine(t.name) + "@" + t.version;

export function Templates(): JSX.Element {
  const list = useList<TemplateList>("/templates", 4000), failed = useSignal<unknown>(null), making = useSignal(false), gone = useSignal<Template | null>(null);
  const write = may("sandboxes:write"), all = list.all.value?.items ?? null, open = query.value.get("template");
  useEffect(() => { document.title = "Templates · sandpit"; }, []);
  // Those of the server are its administrator's to change.
  const own = (t: Template): boolean => write && (!t.server || may("server:admin")) && t.origin !== "config";
  return (
    <section>
      <div class="title"><h1>Templates</h1>{write && <button type="button" class="primary" onClick={() => { making.value = true; }}>Create a template</button>}</div>
      <p class="faint">A template is an image or a disk with limits, variables, a network, a command that runs from each start on, and what says that it is ready. A version never changes.</p>
      <Trouble error={failed.value ?? list.failed.value} again={() => { failed.value = null; void list.read(); }} />
      {all?.length === 0 && <div class="empty"><p>There are no templates. Create one here, or by the command line:</p><Code text="sandpit template create web --image python --start 'python3 -m http.server 8000' --ready-port 8000" /></div>}
      {all !== null && all.length > 0 && <div class="scroll" tabIndex={0} role="region" aria-label="List of templates"><table class="list">
        <thead><tr><th>Template</th><th>State</th><th>Made of</th><th>Starts</th><th>Created</th><th>By</th><th><span class="hidden">Actions</span></th></tr></thead>
        <tbody>{all.map((t) => (
          <tr key={t.id} class={t.id === open ? "chosen" : ""}>
            <td><button type="button" class="plain" aria-expanded={t.id === open} onClick={() => go("/templates" + (t.id === open ? "" : "?template=" + seg(t.id)), true)}>{called(t)}</button>{t.default && <span class="good small"> the default</span>}{t.server && <span class="faint small"> of the server</span>}{t.description && <div class="faint small">{oneLine(t.description)}</div>}</td>
            <td><span class={t.status === "failed" ? "bad" : t.status === "ready" ? "" : "good"}>{t.status}</span></td>
            <td>{oneLine(t.image ?? t.from_snapshot ?? "–")}{t.steps.length > 0 && <span class="faint small"> and {t.steps.length} {t.steps.length === 1 ? "step" : "steps"}</span>}</td>
            <td class="clip">{t.start ? <code>{oneLine(t.start)}</code> : "–"}</td><td><Time at={t.created_at} /></td><td>{oneLine(t.created_by)}</td>
            <td><span class="buttons">
              {write && t.status === "ready" && <button type="button" aria-label={"New sandbox of " + called(t)} onClick={() => go("/sandboxes?create&template=" + seg(t.name + "@" + t.version))}>New sandbox…</button>}
              {own(t) && t.status === "ready" && <Action failed={failed} label={(t.default ? "Not the default: " : "Make it the default: ") + called(t)} do={async () => { await call("/templates/" + seg(t.id), { method: "PATCH", body: { default: !t.default, ...(t.server ? { server: true } : {}) } }); await list.read(); }}>{t.default ? "Not the default" : "Make it the default"}</Action>}
              {own(t) && <button type="button" class="danger" aria-label={"Delete " + called(t)} onClick={() => { gone.value = t; }}>Delete…</button>}
            </span></td>
          </tr>
        ))}</tbody>
      </table></div>}
      {open && <One key={open} id={open} />}
      <New open={making} done={(t) => { void list.read(); go("/templates?template=" + seg(t.id), true); }} />
      <Lose of={gone} failed={failed} title={(t) => "Delete " + called(t)} do={async (t) => { await call("/templates/" + seg(t.id), { method: "DELETE" }); await list.read(); }}>{(t) => (
        <p>No more sandboxes are made of it{t.steps.length > 0 ? ", and the disk that its steps made is lost" : ""}{t.default ? "; creates that name nothing get the server's default from then on" : ""}. Sandboxes that were made of it stay as they are.</p>
      )}</Lose>
    </section>
  );
}

function One(p: { id: string }): JSX.Element {
  const one = useList<Template>("/templates/" + seg(p.id), 2000), t = one.all.value;
  return (
    <section aria-label="The template">
      <Trouble error={one.failed.value} />
      {t && <>
        <h2>{called(t)}</h2>
        {t.failure && <div class="trouble" role="alert"><p>Step {t.failure.step} failed: {shown(t.failure.reason)}{t.failure.exit_code ? ", exit " + t.failure.exit_code : ""}</p>{t.failure.command && <pre>{shown(t.failure.command)}</pre>}{t.failure.output && <pre class="log" tabIndex={0} aria-label="What the step wrote">{shown(t.failure.output)}</pre>}</div>}
        <dl>
          <dt>Id</dt><dd><code>{t.id}</code></dd>
          <dt>Made of</dt><dd>{t.image ? <Link to={"/images?image=" + seg(t.image)}>{oneLine(t.image)}</Link> : oneLine(t.from_snapshot ?? "–")}</dd>
          {t.cpu_cores !== null && t.cpu_cores !== undefined && <><dt>Processors</dt><dd>{t.cpu_cores}</dd></>}
          {t.memory_mb !== null && t.memory_mb !== undefined && <><dt>Memory</dt><dd>{megabytes(t.memory_mb)}</dd></>}
          {t.disk_mb !== null && t.disk_mb !== undefined && <><dt>Disk</dt><dd>{megabytes(t.disk_mb)}</dd></>}
          {t.network && <><dt>Network</dt><dd>{t.network.mode}{[...(t.network.allow_presets ?? []), ...(t.network.allow_domains ?? []), ...(t.network.allow_cidrs ?? [])].map((n) => " " + oneLine(n))}</dd></>}
          {t.start && <><dt>Starts</dt><dd><code>{oneLine(t.start)}</code></dd></>}
          {t.ready && <><dt>Ready</dt><dd>{t.ready.port ? "once port " + t.ready.port + " is listened on" : <>once <code>{oneLine(t.ready.command ?? "")}</code> ends with 0</>}</dd></>}
          {t.for_skills.length > 0 && <><dt>For skills</dt><dd>{t.for_skills.map(oneLine).join(", ")}</dd></>}
          {t.volumes.length > 0 && <><dt>Volumes</dt><dd>{t.volumes.map((v) => oneLine(v.volume + ":" + v.path)).join(", ")}</dd></>}
        </dl>
        {t.steps.length > 0 && <><h2>Steps</h2><ol>{t.steps.map((s, i) => <li key={i}><code>{oneLine(s)}</code></li>)}</ol></>}
        {Object.keys(t.env).length > 0 && <><h2>Variables</h2><dl>{Object.entries(t.env).map(([k, v]) => <><dt key={k}>{oneLine(k)}</dt><dd>{oneLine(v)}</dd></>)}</dl></>}
      </>}
    </section>
  );
}

function New(p: { open: Signal<boolean>; done: (t: Template) => void }): JSX.Element {
  const f = useSignal<Record<string, string>>({}), wrong = useSignal<unknown>(null);
  const v = (k: string): string => (f.value[k] ?? "").trim();
  const input = (k: string, kind = "text") => (id: string, hint?: string): JSX.Element => <input id={id} type={kind as "number"} aria-describedby={hint} value={f.value[k] ?? ""} onInput={(e) => { f.value = { ...f.value, [k]: e.currentTarget.value }; }} />;
  const steps = v("steps").split("\n").filter((l) => l.trim() !== ""), snapshot = v("from_snapshot");
  const body: CreateTemplate = {
    name: v("name"), ...(v("image") ? { image: v("image") } : {}), ...(snapshot ? { from_snapshot: snapshot } : {}), ...(v("description") ? { description: v("description") } : {}), ...(steps.length ? { steps } : {}),
    ...(v("start") ? { start: v("start") } : {}), ...(v("port") ? { ready: { port: Number(v("port")) } } : {}), ...(v("memory_mb") ? { memory_mb: Number(v("memory_mb")) } : {}), ...(v("cpu_cores") ? { cpu_cores: Number(v("cpu_cores")) } : {}), ...(v("network") ? { network: v("network") } : {}),
  };
  const flag = (name: string, value: string | undefined | null): string => (value ? " " + name + " " + quote(value) : "");
  const cli = "sandpit template create " + quote(body.name || "NAME") + flag("--image", v("image")) + flag("--snapshot", snapshot) + flag("--description", v("description")) + steps.map((s) => flag("--step", s)).join("") + flag("--start", v("start")) + flag("--ready-port", v("port")) + (v("memory_mb") ? " --memory " + v("memory_mb") + "M" : "") + flag("--cpu", v("cpu_cores")) + flag("--network", v("network"));
  // The tool has no limits and no description, and one script for all steps.
  const tool = { name: body.name, ...(body.image ? { image: body.image } : {}), ...(body.from_snapshot ? { snapshot: body.from_snapshot } : {}), ...(steps.length ? { steps: "set -e\n" + steps.join("\n") } : {}), ...(body.start ? { start: body.start } : {}), ...(body.ready ? { ready_port: body.ready.port } : {}), ...(body.network ? { network: body.network } : {}) };
  return (
    <Dialog title="Create a template" open={p.open}>
      <form onSubmit={(e) => e.preventDefault()}>
        <Field label="Name" hint="A name that is there already gets its next version.">{input("name")}</Field>
        <Field label="Image" hint="Left empty, the server's default, or the snapshot's.">{input("image")}</Field>
        <Field label="Snapshot" hint="The disk to begin with: an id, or SANDBOX/NAME.">{input("from_snapshot")}</Field>
        <Field label="What it is for">{input("description")}</Field>
        <Field label="Steps" hint="Shell commands, one a line, done as root in a sandbox of the image. The disk that they make is what its sandboxes begin with.">{(id, hint) => <textarea id={id} rows={3} spellcheck={false} aria-describedby={hint} value={f.value["steps"] ?? ""} onInput={(e) => { f.value = { ...f.value, steps: e.currentTarget.value }; }} />}</Field>
        <Field label="Starts" hint="A shell command that runs from each start on.">{input("start")}</Field>
        <Field label="Ready once this port is listened on">{input("port", "number")}</Field>
        <Field label="Memory in MiB">{input("memory_mb", "number")}</Field>
        <Field label="Processors">{input("cpu_cores", "number")}</Field>
        <Field label="Network">{(id) => <select id={id} value={f.value["network"] ?? ""} onChange={(e) => { f.value = { ...f.value, network: e.currentTarget.value }; }}><option value="">the server's default</option><option>off</option><option>restricted</option><option>open</option></select>}</Field>
        <Same cli={cli} rest="POST /v1/templates" body={body} tool="create_template" args={tool} />
        <Trouble error={wrong.value} />
        <div class="buttons">
          <Action class="primary" failed={wrong} do={async () => { p.done(await call<Template>("/templates", { method: "POST", body })); p.open.value = false; f.value = {}; }}>Create</Action>
          <button type="button" onClick={() => { p.open.value = false; }}>Leave</button>
        </div>
      </form>
    </Dialog>
  );
}
