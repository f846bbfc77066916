// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Runs of a sandbox, what they printed and the files that they left; contexts of code and shells.
import { call, Failure, may, seg } from "../api";
import { bytes, millis, oneLine, shown } from "../format";
import { Code } from "../parts/copy";
import { Action, Field, Time, Trouble } from "../parts/parts";
import { quote, Same, useList } from "../parts/list";
import { useActivity } from "../parts/again";
import { go, query } from "../router";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { Artifact, ArtifactLink, Context, ContextList, Run, RunCommand, RunList, Sandbox, Shell, ShellList } from "../wire";

const pending = (r: Run): boolean => r.ended_at === null;
const color = (state: string): string => (state === "completed" ? "good" : state === "failed" ? "bad" : "");

export function Runs(p: { of: Sandbox }): JSX.Element {
  const s = p.of, list = useList<RunList>("/sandboxes/" + s.id + "/runs?limit=100", 2000), open = query.value.get("run");
  const show = (id: string | null): void => go("/sandboxes/" + seg(s.id) + "/runs" + (id ? "?run=" + seg(id) : ""), true);
  return (
    <section aria-label="Runs and artifacts">
      {may("sandboxes:write") && <Start of={s} done={(r) => { show(r.run_id); void list.read(); }} />}
      <Trouble error={list.failed.value} again={() => void list.read()} />
      {list.all.value?.items.length === 0 && <div class="empty"><p>There are no runs. One is a batch of commands whose output and files stay, whoever goes away:</p><Code text={"sandpit runs start " + quote(s.key ?? s.id) + " 'echo hello > /artifacts/hello.txt'"} /></div>}
      {(list.all.value?.items.length ?? 0) > 0 && <table class="list">
        <thead><tr><th>Run</th><th>State</th><th>Begun</th><th>Took</th><th>Artifacts</th></tr></thead>
        <tbody>{list.all.value!.items.map((r) => (
          <tr key={r.run_id} class={r.run_id === open ? "chosen" : ""}>
            <td><button type="button" class="plain" aria-expanded={r.run_id === open} onClick={() => show(r.run_id === open ? null : r.run_id)}>{r.run_id}</button></td>
            <td><span class={color(r.state)}>{r.state}</span>{r.error && <div class="small">{oneLine(r.error)}</div>}</td><td><Time at={r.created_at} /></td>
            <td>{r.started_at ? millis((r.ended_at ? Date.parse(r.ended_at) : Date.now()) - Date.parse(r.started_at)) : "–"}</td><td>{r.artifacts.length}</td>
          </tr>
        ))}</tbody>
      </table>}
      {list.all.value?.next_cursor && <p class="faint">Older ones are not shown.</p>}
      {open && <One key={open} id={open} changed={() => void list.read()} />}
      <Contexts of={s} />
    </section>
  );
}

function Start(p: { of: Sandbox; done: (r: Run) => void }): JSX.Element {
  const text = useSignal(""), wrong = useSignal<unknown>(null);
  const commands = text.value.split("\n").filter((l) => l.trim() !== "").map((shell) => ({ shell }));
  return (
    <details>
      <summary>Start a run</summary>
      <form onSubmit={(e) => e.preventDefault()}>
        <Field label="Commands" hint="One a line, done one after the other. Files that they leave under /artifacts are kept.">{(id, hint) => <textarea id={id} aria-describedby={hint} rows={3} spellcheck={false} value={text.value} onInput={(e) => { text.value = e.currentTarget.value; }} />}</Field>
        <Same cli={"sandpit runs start " + quote(p.of.key ?? p.of.id) + commands.map((c) => " " + quote(c.shell)).join("")} rest={"POST /v1/sandboxes/" + p.of.id + "/runs"} body={{ commands }} tool="run_sandbox" args={{ identifier: p.of.key ?? p.of.id, commands }} />
        <Trouble error={wrong.value} />
        <div class="buttons"><Action class="primary" failed={wrong} disabled={commands.length === 0} do={async () => { p.done(await call<Run>("/sandboxes/" + p.of.id + "/runs", { method: "POST", body: { commands } })); text.value = ""; }}>Start it</Action></div>
      </form>
    </details>
  );
}

function One(p: { id: string; changed: () => void }): JSX.Element {
  const run = useList<Run>("/runs/" + seg(p.id), 2000), failed = useSignal<unknown>(null), r = run.all.value;
  return (
    <section aria-label="The run">
      <h2>Run <code>{oneLine(p.id)}</code></h2>
      <Trouble error={failed.value ?? run.failed.value} />
      {r && pending(r) && may("sandboxes:write") && <div class="buttons"><Action class="danger" failed={failed} do={async () => { await call("/runs/" + seg(p.id) + "/cancel", { method: "POST" }); await run.read(); p.changed(); }}>Cancel it</Action></div>}
      {(r?.commands ?? []).map((c) => <Command key={c.index} of={c} />)}
      {r && <><h2>Artifacts</h2>
        {r.artifacts_error && <p class="bad">{shown(r.artifacts_error)}</p>}
        {r.artifacts.length === 0 && <p class="faint">{pending(r) ? "They are copied out when it ends." : "It left none. What is under /artifacts when it ends is kept."}</p>}
        <ul class="events">{r.artifacts.map((a) => <File key={a.path + a.sha256} run={p.id} of={a} />)}</ul></>}
    </section>
  );
}

function Command(p: { of: RunCommand }): JSX.Element {
  const c = p.of, how = c.status === "skipped" ? "not done" : c.exit_code !== null && c.exit_code !== undefined ? "exit " + c.exit_code : c.signal ?? c.status;
  return (
    <article>
      <p><code>{oneLine(c.shell ?? (c.argv ?? []).join(" "))}</code> <span class={c.exit_code === 0 ? "good" : c.exit_code ? "bad" : "faint"}>{how}</span>{c.cause && c.cause !== "exit" ? " " + oneLine(c.cause) : ""}{c.error && <span class="bad"> {oneLine(c.error)}</span>} <span class="faint small">in {oneLine(c.cwd)}</span></p>
      {(c.stdout || c.stderr) && <pre class="log" tabIndex={0} aria-label={"Output of command " + (c.index + 1)}>{shown(c.stdout)}{c.stdout_truncated && <span class="gap">{"\n[" + bytes(c.stdout_bytes) + " in all]\n"}</span>}{c.stderr && <span class="stderr">{shown(c.stderr)}{c.stderr_truncated ? "\n[" + bytes(c.stderr_bytes) + " in all]" : ""}</span>}</pre>}
    </article>
  );
}

const pictures: Record<string, string> = { png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp" };

// most is how much of an artifact is shown as text.
const most = 256 * 1024;

// File shows an artifact: a picture by a blob of one of four kinds, all else as text, whatever it says that it is.
function File(p: { run: string; of: Artifact }): JSX.Element {
  const a = p.of, text = useSignal<string | null>(null), picture = useSignal(""), failed = useSignal<unknown>(null), name = a.path.split("/").at(-1) ?? "file", kind = pictures[name.toLowerCase().split(".").at(-1) ?? ""];
  useEffect(() => () => { if (picture.value) URL.revokeObjectURL(picture.value); }, []);
  const get = async (): Promise<Blob> => {
    const link = new URL((await call<ArtifactLink>("/runs/" + seg(p.run) + "/links", { method: "POST", body: { path: a.path, expires_seconds: 60 } })).url, location.href);
    // By the address that this page has of the server, whatever the link says.
    const answer = await fetch(link.pathname + link.search, { cache: "no-store", credentials: "omit" });
    if (!answer.ok) throw new Failure(answer.status, (await answer.json().catch(() => ({ detail: "The file cannot be read." }))) as object);
    return answer.blob();
  };
  const show = async (): Promise<void> => {
    if (text.value !== null || picture.value) {
      URL.revokeObjectURL(picture.value);
      text.value = null;
      picture.value = "";
      return;
    }
    const body = await get();
    if (kind) picture.value = URL.createObjectURL(new Blob([body], { type: kind }));
    else {
      const part = await body.slice(0, most).arrayBuffer();
      text.value = new Uint8Array(part).subarray(0, 8192).includes(0) ? "It is not text: it can be downloaded." : shown(new TextDecoder().decode(part)) + (body.size > most ? "\n[" + bytes(body.size) + " in all]" : "");
    }
  };
  const download = async (): Promise<void> => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await get());
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  return (
    <li>
      <p><code>{oneLine(a.path)}</code> <span class="faint">{bytes(a.size)}</span></p>
      <div class="buttons"><Action failed={failed} label={(text.value !== null || picture.value ? "Hide " : "Show ") + oneLine(a.path)} do={show}>{text.value !== null || picture.value ? "Hide" : "Show"}</Action><Action failed={failed} label={"Download " + oneLine(a.path)} do={download}>Download</Action></div>
      <Trouble error={failed.value} />
      {picture.value && <img src={picture.value} alt={oneLine(name)} class="picture" />}
      {text.value !== null && <pre class="log" tabIndex={0} aria-label={"Contents of " + oneLine(a.path)}>{text.value}</pre>}
    </li>
  );
}

// Contexts are where code and shells go on from call to call. To ask for them is a use of the sandbox: it is asked once something
// happened in it.
function Contexts(p: { of: Sandbox }): JSX.Element {
  const s = p.of, path = "/sandboxes/" + s.id, contexts = useSignal<Context[]>([]), shells = useSignal<Shell[]>([]), failed = useSignal<unknown>(null), read0 = useSignal(false);
  const up = s.status === "running", write = may("sandboxes:write");
  const read = async (): Promise<void> => {
    if (!up) return;
    try {
      const [c, h] = await Promise.all([call<ContextList>(path + "/code/contexts"), call<ShellList>(path + "/shells")]);
      contexts.value = c.items;
      shells.value = h.items;
      read0.value = true;
      failed.value = null;
    } catch (e) {
      if (!(e instanceof Failure && e.status === 0)) failed.value = e;
    }
  };
  useActivity(s.id, read, [up]);
  const post = (rest: string) => async (): Promise<void> => { await call(path + rest, { method: "POST" }); await read(); };
  const end = (rest: string) => async (): Promise<void> => { await call(path + rest, { method: "DELETE" }); await read(); };
  return (
    <section aria-label="Contexts">
      <h2>Contexts of code, and shells</h2>
      <Trouble error={failed.value} />
      {!up && <p class="faint">It is {s.status}: what they knew ended with it.</p>}
      {up && read0.value && contexts.value.length + shells.value.length === 0 && <div class="empty"><p>There are none. One keeps variables from call to call:</p><Code text={"sandpit code " + quote(s.key ?? s.id) + " -c 'x = 1'"} /></div>}
      {up && contexts.value.length + shells.value.length > 0 && <table class="list">
        <thead><tr><th>Context</th><th>Language</th><th>State</th><th>User</th><th>Calls</th><th>Since</th><th><span class="hidden">Actions</span></th></tr></thead>
        <tbody>
          {contexts.value.map((c) => <tr key={c.id}><td><code>{oneLine(c.id)}</code>{c.default && <span class="good small"> the default</span>}<div class="faint small">{oneLine(c.cwd)}</div></td><td>{oneLine(c.language)}</td><td>{c.status}{c.queued > 0 ? ", " + c.queued + " wait" : ""}{c.ended && <div class="small">{oneLine(c.ended)}</div>}</td><td>{oneLine(c.user)}</td><td>{c.executions}</td><td><Time at={c.created_at} /></td>
            <td>{write && <span class="buttons"><Action failed={failed} label={"Interrupt " + oneLine(c.id)} do={post("/code/contexts/" + seg(c.id) + "/interrupt")}>Interrupt</Action><Action failed={failed} label={"Restart " + oneLine(c.id)} do={post("/code/contexts/" + seg(c.id) + "/restart")}>Restart</Action><Action failed={failed} class="danger" label={"End " + oneLine(c.id)} do={end("/code/contexts/" + seg(c.id))}>End</Action></span>}</td></tr>)}
          {shells.value.map((h) => <tr key={"shell " + h.name}><td><code>{oneLine(h.name)}</code><div class="faint small">{oneLine(h.cwd)}</div></td><td>shell</td><td>{h.status}{h.queued > 0 ? ", " + h.queued + " wait" : ""}{h.ended_reason && <div class="small">{oneLine(h.ended_reason)}</div>}</td><td>{oneLine(h.user)}</td><td>–</td><td><Time at={h.created_at} /></td>
            <td>{write && <span class="buttons"><Action failed={failed} label={"Interrupt " + oneLine(h.name)} do={post("/shells/" + seg(h.name) + "/interrupt")}>Interrupt</Action><Action failed={failed} class="danger" label={"End " + oneLine(h.name)} do={end("/shells/" + seg(h.name))}>End</Action></span>}</td></tr>)}
        </tbody>
      </table>}
    </section>
  );
}
