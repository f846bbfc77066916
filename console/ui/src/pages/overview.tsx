// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// What the server, or a project, is at: what there is, what is in use, the last hour, what is wrong, what happened last.
import { call, may } from "../api";
import { bytes, exact, millis, oneLine, shown } from "../format";
import { newest } from "../live";
import { Bars, hourOf } from "../parts/bars";
import { Link, Meter, State, Time, Trouble } from "../parts/parts";
import { useEvery } from "../parts/again";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { AuditPage, AuditRecord, DoctorReport, Hour, HostStats, Minute, Overview as Told, Percentiles } from "../wire";

const order = ["running", "paused", "creating", "starting", "stopping", "stopped", "archived", "failed"];
const place = (state: string): number => { const n = order.indexOf(state); return n < 0 ? order.length : n; };

const count = (n: number, one: string): string => n + " " + one + (n === 1 ? "" : "s");

const share = (n: number | null, of: string): string => (n === null ? "not known" : n.toFixed(2) + " of " + of);

export function Overview(): JSX.Element {
  const told = useSignal<Told | null>(null), failed = useSignal<unknown>(null), runs = may("server:admin"), all = useSignal(runs);
  useEffect(() => { document.title = "Overview · sandpit"; }, []);
  const read = async (): Promise<void> => {
    try {
      told.value = await call<Told>("/overview" + (all.value ? "?all_projects=true" : ""));
      failed.value = null;
    } catch (e) {
      failed.value = e;
    }
  };
  useEvery(5000, read, [all.value]);
  const o = told.value;
  return (
    <section class="overview">
      <div class="title"><h1>Overview</h1>
        {o && <span class="faint">{o.project === null ? "all projects" : "project " + o.project} · the server runs since <Time at={o.started_at} /></span>}
        {runs && <label><input type="checkbox" checked={all.value} onChange={(e) => { all.value = e.currentTarget.checked; }} /> all projects</label>}
      </div>
      <Trouble error={failed.value} again={() => void read()} />
      {o && <>
        {runs && <Health />}
        <div class="columns">
          <div><h2>Sandboxes</h2><States of={o.sandboxes} /><Use of={o} /></div>
          {o.host && <div><h2>The host</h2><Host of={o} host={o.host} /></div>}
        </div>
        <LastHour of={o.hour} until={Date.parse(o.time)} />
        {o.host && <HostHour of={o.host} until={Date.parse(o.time)} />}
        <h2>What happened last</h2>
        {may("admin") ? <Last all={all.value} /> : <LastUsed />}
      </>}
    </section>
  );
}

function States(p: { of: Record<string, number> }): JSX.Element {
  const states = Object.entries(p.of).filter(([, n]) => n > 0).sort(([a], [b]) => place(a) - place(b));
  if (states.length === 0) return <div class="empty"><p>There are none yet. {may("sandboxes:write") && <><Link to="/sandboxes?create">Create one</Link>, or say:</>}</p>{may("sandboxes:write") && <pre>sandpit create --name first</pre>}</div>;
  return <ul class="states">{states.map(([state, n]) => <li key={state}><b>{n}</b> <State of={state} /></li>)}</ul>;
}

function Use(p: { of: Told }): JSX.Element {
  const u = p.of.use;
  if (!u) return <p class="faint small">What they use is read once a minute; the first reading is still to come.</p>;
  return (
    <dl>
      <dt>Processors</dt><dd>{u.cpus === null ? "–" : u.cpus.toFixed(2)}</dd><dt>Memory</dt><dd>{bytes(u.memory_bytes)}</dd>
      <dt>Disk</dt><dd>{bytes(u.disk_bytes)}</dd><dt>Processes</dt><dd>{u.tasks ?? "–"}</dd>
      <dt>Read</dt><dd><Time at={u.time} />, of {u.sandboxes} that are up</dd>
    </dl>
  );
}

function Host(p: { of: Told; host: HostStats }): JSX.Element {
  const h = p.host, f = p.of.open_files;
  return (
    <div>
      <Meter name="Processors" used={h.now.cpus} of={h.cpu_limit} text={share(h.now.cpus, String(h.cpu_limit))} />
      <Meter name="Memory" used={h.now.memory_bytes} of={h.memory_limit_bytes} text={bytes(h.now.memory_bytes) + " of " + bytes(h.memory_limit_bytes)} />
      <Meter name="Disk of the data directory" used={h.now.disk_bytes} of={h.disk_limit_bytes} text={bytes(h.now.disk_bytes) + " of " + bytes(h.disk_limit_bytes)} />
      {p.of.stores.map((s) => <div key={s.runtime}>
        <Meter name={"Store of the runtime " + s.runtime} used={s.size_bytes - s.free_bytes} of={s.size_bytes} text={bytes(s.size_bytes - s.free_bytes) + " of " + bytes(s.size_bytes) + "; sandboxes may take " + bytes(s.room_bytes) + " more"} />
        {[s.failed, s.full].map((why) => why && <p key={why} class="bad">{shown(why)}</p>)}
      </div>)}
      <Meter name="Processes and threads" used={h.now.tasks} of={h.task_limit} text={(h.now.tasks ?? "not known") + " of " + h.task_limit} />
      {f && <Meter name="Open files of the server" used={f.server} of={f.server_limit} text={f.server + " of " + f.server_limit} />}
      {f && <Meter name="Open files of the host" used={f.host} of={f.host_limit} text={f.host + " of " + (f.host_limit > 1e12 ? "any number" : f.host_limit)} />}
      {p.of.records_full && <p class="bad">{shown(p.of.records_full)}</p>}
    </div>
  );
}

const waits = (p: Percentiles): JSX.Element | null => (p.p50 === null ? null : <span class="faint"> half within {millis(p.p50)}, 95 % within {millis(p.p95)}</span>);

function LastHour(p: { of: Hour; until: number }): JSX.Element {
  const h = p.of, since = Date.parse(h.since);
  const bars = (of: (m: Minute) => number | null, missing: number | null) => hourOf(h.minutes.map((m) => ({ at: Date.parse(m.time), value: of(m) })), p.until, since, missing);
  const one = (n: string) => (v: number): string => count(v, n), fails = h.failures.reduce((a, f) => a + f.count, 0);
  return (
    <>
      <h2>The last hour {since > p.until - 59 * 60_000 && <span class="faint small">as far as the server was up: since <Time at={h.since} /></span>}</h2>
      {!h.counted ? <p class="empty">Too many other projects are busy to count this one by itself.</p> : <div class="figures">
        <div><p><b>{h.creates}</b> {h.creates === 1 ? "sandbox" : "sandboxes"} created{waits(h.create_ms)}</p><Bars name="Sandboxes created" of={bars((m) => m.creates, 0)} say={one("create")} /></div>
        <div><p><b>{h.commands}</b> {h.commands === 1 ? "command" : "commands"}{waits(h.exec_ms)}</p><Bars name="Commands" of={bars((m) => m.commands, 0)} say={one("command")} /></div>
        <div><p><b class={h.failures.length ? "bad" : ""}>{fails}</b> {fails === 1 ? "failure" : "failures"}{h.failures.length > 0 && ": " + h.failures.map((f) => f.count + " " + f.of + " " + f.cause).join(", ")}</p><Bars name="Failures" bad of={bars((m) => m.failures, 0)} say={one("failure")} /></div>
        <div><p><b>{h.refused_connections}</b> {h.refused_connections === 1 ? "connection" : "connections"} refused by network policies</p><Bars name="Connections refused" bad of={bars((m) => m.refused_connections, 0)} say={one("refusal")} /></div>
        <div><p>How long callers waited for a command</p><Bars name="95 % of commands within" of={bars((m) => m.exec_ms.p95, null)} say={millis} /></div>
        <div><p>How long callers waited for a sandbox</p><Bars name="95 % of creates within" of={bars((m) => m.create_ms.p95, null)} say={millis} /></div>
      </div>}
    </>
  );
}

function HostHour(p: { of: HostStats; until: number }): JSX.Element | null {
  const h = p.of;
  if (h.history.length === 0) return null;
  const bars = (of: (m: HostStats["history"][number]) => number | null) => hourOf(h.history.map((m) => ({ at: Date.parse(m.time), value: of(m) })), p.until, p.until, null);
  return (
    <div class="figures">
      <div><p>Processors of the host</p><Bars name="Processors in use" of={bars((m) => m.cpus)} most={h.cpu_limit} say={(v) => share(v, String(h.cpu_limit))} /></div>
      <div><p>Memory of the host</p><Bars name="Memory in use" of={bars((m) => m.memory_bytes)} most={h.memory_limit_bytes} say={(v) => bytes(v) + " of " + bytes(h.memory_limit_bytes)} /></div>
    </div>
  );
}

// Health is what the server finds wrong with itself and its host, with the remedies.
function Health(): JSX.Element {
  const report = useSignal<DoctorReport | null>(null), failed = useSignal<unknown>(null);
  const read = async (): Promise<void> => {
    try {
      report.value = await call<DoctorReport>("/doctor");
      failed.value = null;
    } catch (e) {
      failed.value = e;
    }
  };
  useEvery(60_000, read, []);
  const r = report.value, wrong = r?.items.filter((i) => i.status !== "ok") ?? [], fine = r?.items.filter((i) => i.status === "ok") ?? [];
  wrong.sort((a, b) => Number(b.status === "failed") - Number(a.status === "failed"));
  return (
    <>
      <h2>Health</h2>
      <Trouble error={failed.value} again={() => void read()} />
      {r && wrong.length === 0 && <p class="good">All {fine.length} checks of the server and its host passed.</p>}
      {wrong.length > 0 && <ul class="findings">{wrong.map((i) => (
        <li key={i.name + i.detail} class={i.status}><b class={i.status === "failed" ? "bad" : "busy"}>{i.status}</b> <code>{oneLine(i.name)}</code> {shown(i.detail)}{i.remedy && <div class="remedy">→ {shown(i.remedy)}</div>}</li>
      ))}</ul>}
      {r && <details><summary>{fine.length} checks passed, <Time at={r.time} /></summary><ul class="findings">{fine.map((i) => <li key={i.name}><code>{oneLine(i.name)}</code> <span class="faint">{shown(i.detail)}</span></li>)}</ul></details>}
    </>
  );
}

// Last is what happened, as the audit log has it.
function Last(p: { all: boolean }): JSX.Element {
  const rows = useSignal<AuditRecord[] | null>(null), failed = useSignal<unknown>(null);
  const read = async (): Promise<void> => {
    try {
      rows.value = (await call<AuditPage>("/audit?limit=15" + (p.all ? "&project=*" : ""))).items;
      failed.value = null;
    } catch (e) {
      failed.value = e;
    }
  };
  useEvery(5000, read, [p.all]);
  return (
    <>
      <Trouble error={failed.value} again={() => void read()} />
      {rows.value?.length === 0 && <p class="empty">Nothing is on record yet.</p>}
      {rows.value !== null && rows.value.length > 0 && <table class="list">
        <thead><tr><th>When</th><th>Who</th><th>What</th><th>Outcome</th><th>Where</th></tr></thead>
        <tbody>{rows.value.map((a) => (
          <tr key={a.seq}>
            <td><Time at={a.at} /><span class="hidden">{exact(a.at)}</span></td><td>{oneLine(a.actor ?? "–")}</td>
            <td>{oneLine(a.call ?? a.type)}{a.command && <div class="clip"><code>{oneLine(a.command)}</code></div>}</td>
            <td><span class={a.outcome === "ok" ? "good" : a.outcome === "running" ? "" : "bad"}>{a.outcome}</span>{a.code && <span class="faint small"> {a.code}</span>}</td>
            <td>{a.sandbox_id ? <Link to={"/sandboxes/" + a.sandbox_id + "/activity"}>{a.sandbox_id}</Link> : <span class="faint">{a.project ?? ""}</span>}</td>
          </tr>
        ))}</tbody>
      </table>}
      <p><Link to="/audit">All of the audit log</Link></p>
    </>
  );
}

// LastUsed is for tokens that may not read the audit log: the sandboxes that were used last, each with its activity.
function LastUsed(): JSX.Element {
  const used = newest.value.filter((s) => s.last_activity_at).sort((a, b) => (a.last_activity_at! < b.last_activity_at! ? 1 : -1)).slice(0, 15);
  if (used.length === 0) return <p class="empty">Nothing was used yet.</p>;
  return (
    <table class="list">
      <thead><tr><th>Sandbox</th><th>State</th><th>Last used</th></tr></thead>
      <tbody>{used.map((s) => <tr key={s.id}><td><Link to={"/sandboxes/" + s.id + "/activity"}>{oneLine(s.key ?? s.id)}</Link></td><td><State of={s.status} /></td><td><Time at={s.last_activity_at} /></td></tr>)}</tbody>
    </table>
  );
}
