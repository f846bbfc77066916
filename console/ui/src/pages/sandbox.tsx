// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// One sandbox: what it is, and its parts.
import { call, Failure, may, seg } from "../api";
import { bytes, exact, megabytes, oneLine, shown, span } from "../format";
import { put, sandboxes } from "../live";
import { Action, Dialog, Field, Link, Meter, now, State, Tabs, Time, Trouble } from "../parts/parts";
import { useEvery } from "../parts/again";
import { Plots } from "../parts/plots";
import { go } from "../router";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX, Signal } from "../vendor/core";
import type { Event, EventPage, Sandbox, SandboxPage as ListPage, SandboxStats } from "../wire";
import { Activity } from "./activity";
import { Later } from "../parts/later";
import { Files } from "./files";
import { Network } from "./network";
import { Processes } from "./processes";
import { nameOf } from "./sandboxes";
import { Terminals } from "./terminals";
import { TimeTravel } from "./time";

const tabs: [string, string][] = [["", "Overview"], ["terminal", "Terminal"], ["files", "Files"], ["processes", "Processes"], ["activity", "Activity"], ["time", "Snapshots"], ["network", "Network"], ["ports", "Ports"], ["runs", "Runs and artifacts"], ["settings", "Settings"]];

export function SandboxPage(p: { id: string; tab: string }): JSX.Element {
  const failed = useSignal<unknown>(null);
  const missing = useSignal<unknown>(null);
  // An address may have its key, by which a link stays good when the sandbox is made anew.
  const s = sandboxes.value.get(p.id) ?? [...sandboxes.value.values()].find((one) => one.key === p.id);
  useEffect(() => {
    missing.value = null;
    if (!s) call<Sandbox>("/sandboxes/" + seg(p.id)).then(put, (e: unknown) => { missing.value = e; });
  }, [p.id, s === undefined]);
  useEffect(() => { document.title = (s ? nameOf(s) : oneLine(p.id)) + " · sandpit"; }, [s?.key, s?.id]);
  if (!s) return <section><h1>{oneLine(p.id)}</h1>{missing.value ? <><Trouble error={missing.value} /><p><Link to="/sandboxes">All sandboxes</Link></p></> : <p role="status">Reading…</p>}</section>;
  const to = (tab: string): string => "/sandboxes/" + seg(p.id) + (tab && "/" + tab);
  return (
    <section class="sandbox">
      <div class="title">
        <h1><Link to="/sandboxes" class="up">Sandboxes</Link> / {nameOf(s)}</h1>
        <State of={s.status} />
        {may("sandboxes:write") && <Verbs of={s} failed={failed} />}
      </div>
      {s.stop_detail && s.status !== "running" && <p class="faint">{s.stop_cause}: {shown(s.stop_detail)}</p>}
      {s.unresponsive_since && <p class="trouble" role="status">Its agent has not answered since {exact(s.unresponsive_since)}.</p>}
      <Trouble error={failed.value} />
      <Tabs of={tabs} current={p.tab} to={to} label="Parts of the sandbox" />
      {p.tab === "" && <Overview of={s} />}
      {p.tab === "terminal" && <Terminals of={s} />}
      {p.tab === "processes" && <Processes of={s} />}
      {p.tab === "activity" && <Activity of={s} />}
      {p.tab === "files" && <Files of={s} />}
      {p.tab === "time" && <TimeTravel of={s} />}
      {p.tab === "network" && <Network of={s} />}
      {p.tab === "ports" && <Later page={(m) => <m.Ports of={s} />} />}
      {p.tab === "runs" && <Later page={(m) => <m.Runs of={s} />} />}
      {p.tab === "settings" && <Later page={(m) => <m.Change key={s.id} of={s} />} />}
      {!tabs.some(([id]) => id === p.tab) && <p>There is no such part. <Link to={to("")}>Overview</Link></p>}
    </section>
  );
}

function Verbs(p: { of: Sandbox; failed: Signal<unknown> }): JSX.Element {
  const s = p.of, deleting = useSignal(false), typed = useSignal("");
  const verb = (name: string) => async (): Promise<void> => { put(await call<Sandbox>("/sandboxes/" + s.id + "/" + name, { method: "POST" })); };
  const is = (...all: string[]): boolean => all.includes(s.status);
  const name = s.key ?? s.id;
  const runs = is("running", "paused");
  return (
    <span class="buttons">
      {is("stopped", "archived", "failed") && <Action failed={p.failed} do={verb("start")}>Start</Action>}
      {is("paused") && <Action failed={p.failed} do={verb("resume")}>Resume</Action>}
      {is("running") && <Action failed={p.failed} do={verb("pause")}>Pause</Action>}
      {is("running", "paused") && <Action failed={p.failed} do={verb("stop")}>Stop</Action>}
      <button type="button" class="danger" onClick={() => { typed.value = ""; deleting.value = true; }}>Delete…</button>
      <Dialog title={"Delete " + nameOf(s)} open={deleting}>
        <form onSubmit={(e) => e.preventDefault()}>
          <p>Its files are lost{runs ? ", and what runs in it ends" : ""}. Snapshots that were taken of it stay.</p>
          {runs && <Field label={"It runs. Type its name, " + oneLine(name) + ", to delete it."}>{(id) => <input id={id} autocomplete="off" value={typed.value} onInput={(e) => { typed.value = e.currentTarget.value; }} />}</Field>}
          <div class="buttons">
            <Action class="danger" failed={p.failed} disabled={runs && typed.value !== name} do={async () => {
              await call("/sandboxes/" + s.id, { method: "DELETE" });
              deleting.value = false;
              go("/sandboxes");
            }}>Delete it</Action>
            <button type="button" onClick={() => { deleting.value = false; }}>Keep it</button>
          </div>
        </form>
      </Dialog>
    </span>
  );
}

// Clock counts down to something that the server will do.
function Clock(p: { name: string; at: number | null; says: string }): JSX.Element | null {
  if (p.at === null) return null;
  const left = Math.round((p.at - now.value) / 1000);
  return <><dt>{p.name}</dt><dd><time dateTime={new Date(p.at).toISOString()} title={exact(new Date(p.at))}>{left > 0 ? "in " + span(left) : "due"}</time> <span class="faint">{p.says}</span></dd></>;
}

function Overview(p: { of: Sandbox }): JSX.Element {
  const s = p.of, stats = useSignal<SandboxStats | null>(null), failed = useSignal<unknown>(null), runs = useSignal<Event[]>([]);
  useEvery(2000, async () => {
    try {
      // No use of the sandbox, as getting it alone would be: when it was used last is told of by no event, and its activity has what runs.
      const [used, found, happened] = await Promise.all([call<SandboxStats>("/sandboxes/" + s.id + "/stats"), call<ListPage>("/sandboxes?limit=10&search=" + seg(s.id)), call<EventPage>("/sandboxes/" + s.id + "/activity?type=exec&limit=200")]);
      stats.value = used;
      runs.value = happened.items.filter((e) => e.status === "running");
      const shown = sandboxes.peek().get(s.id), record = found.items.find((one) => one.id === s.id);
      if (shown && record && shown.updated_at <= record.updated_at) put(record);
      failed.value = null;
    } catch (e) {
      if (!(e instanceof Failure && e.status === 0)) failed.value = e;
    }
  }, [s.id]);
  const u = stats.value?.now ?? null, last = s.last_activity_at ? Date.parse(s.last_activity_at) : null;
  const running = s.status === "running", up = running || s.status === "paused", to = "/sandboxes/" + seg(s.id);
  return (
    <><div class="columns">
      <section aria-label="Use">
        <h2>Use</h2>
        <Trouble error={failed.value} />
        <Meter name="Processors" used={u?.cpus ?? null} of={s.cpu_cores} text={(u && u.cpus !== null ? u.cpus.toFixed(2) : "–") + " of " + s.cpu_cores} />
        <Meter name="Memory" used={u?.memory_bytes ?? null} of={s.memory_mb * 1048576} text={bytes(u?.memory_bytes) + " of " + megabytes(s.memory_mb)} />
        <Meter name="Disk" used={u?.disk_bytes ?? null} of={s.disk_mb * 1048576} text={bytes(u?.disk_bytes) + " of " + megabytes(s.disk_mb)} />
        <Meter name="Processes" used={u?.tasks ?? null} of={s.pids} text={(u?.tasks ?? "–") + " of " + s.pids} />
      </section>
      <section aria-label="What runs">
        <h2>What runs now</h2>
        {up && runs.value.length > 0 ? <ul class="files">{runs.value.map((e) => <li key={e.seq}><Link to={to + "/processes?process=" + seg(e.process_id ?? "")}><code>{oneLine(e.name ?? e.command ?? e.process_id ?? "")}</code></Link> <span class="faint">{span(Math.max(0, (now.value - Date.parse(e.at)) / 1000))}</span></li>)}</ul> : <p class="faint">No command.</p>}
      </section>
      <section aria-label="Clocks">
        <h2>Clocks</h2>
        <dl>
          {running && s.idle_timeout_seconds > 0 && last !== null && <Clock name="Idle" at={last + s.idle_timeout_seconds * 1000} says={"then it is " + (s.idle_action === "pause" ? "paused" : "stopped") + ", unless it is used"} />}
          {s.expires_at && <Clock name="Expires" at={Date.parse(s.expires_at)} says={"then " + (s.on_expiry === "delete" ? "it is deleted" : s.on_expiry)} />}
          <dt>Created</dt><dd><Time at={s.created_at} /></dd>
          <dt>Started</dt><dd><Time at={s.started_at} /></dd>
          <dt>Last used</dt><dd><Time at={s.last_activity_at} /></dd>
        </dl>
      </section>
      <section aria-label="What it is">
        <h2>What it is</h2>
        <dl>
          <dt>Id</dt><dd><code>{s.id}</code></dd>
          <dt>Image</dt><dd>{oneLine(s.image)} <code class="faint small">{s.image_digest.slice(0, 19)}</code></dd>
          <dt>Runtime</dt><dd>{s.runtime}</dd>
          <dt>Network</dt><dd>{s.network}</dd>
          <dt>User</dt><dd>{oneLine(s.user)}{s.sudo ? ", with sudo" : ""}</dd>
          <dt>Directory</dt><dd><code>{oneLine(s.workspace_path)}</code></dd>
          <dt>Commands</dt><dd><Link to={to + "/activity"}>{s.exec_count}</Link></dd>
          {s.forked_from && <><dt>Forked from</dt><dd><Link to={"/sandboxes/" + seg(s.forked_from)}>{sandboxes.value.has(s.forked_from) ? nameOf(sandboxes.value.get(s.forked_from)!) : s.forked_from}</Link></dd></>}
        </dl>
        {Object.keys(s.metadata).length > 0 && <><h2>Labels</h2><dl>{Object.entries(s.metadata).map(([k, v]) => <><dt key={k}>{oneLine(k)}</dt><dd>{oneLine(v)}</dd></>)}</dl></>}
        {s.env_names.length > 0 && <><h2>Variables</h2><p>{s.env_names.map((n) => <><code key={n}>{oneLine(n)}</code> </>)}</p></>}
      </section>
    </div>
    <section aria-label="Use over time">
      <h2>Use over time</h2>
      <Plots key={s.id} stats={stats.value} />
    </section></>
  );
}
