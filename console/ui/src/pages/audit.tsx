// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// What happened on the server, as the audit log has it.
import { call, may, save } from "../api";
import { exact, millis, oneLine, shown } from "../format";
import { Action, Link, Time, Trouble } from "../parts/parts";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { AuditPage, AuditRecord, AuditReport } from "../wire";

const outcomes = ["ok", "failed", "denied", "running"];

export function Audit(): JSX.Element {
  const rows = useSignal<AuditRecord[]>([]), cursor = useSignal(""), failed = useSignal<unknown>(null), read = useSignal(false);
  const who = useSignal(""), where = useSignal(""), type = useSignal(""), since = useSignal(""), until = useSignal("");
  const words = useSignal(""), outcome = useSignal(""), all = useSignal(may("server:admin")), report = useSignal<AuditReport | null>(null);
  const filter = (): string => {
    const q = new URLSearchParams();
    const set = (name: string, value: string): void => { if (value) q.set(name, value); };
    set("text", words.value.trim()); set("outcome", outcome.value); set("token", who.value.trim()); set("sandbox", where.value.trim()); set("type", type.value.replace(/\s+/g, ""));
    for (const [name, at] of [["since", since.value], ["until", until.value]] as const) set(name, at && new Date(at).toISOString());
    set("project", all.value ? "*" : "");
    return q.toString();
  };
  const path = (): string => "/audit?limit=100&" + filter();
  const more = async (fresh: boolean): Promise<void> => {
    try {
      const page = await call<AuditPage>(path() + (!fresh && cursor.value ? "&cursor=" + encodeURIComponent(cursor.value) : ""));
      rows.value = fresh ? page.items : rows.value.concat(page.items);
      cursor.value = page.next_cursor ?? "";
      failed.value = null;
      read.value = true;
    } catch (e) {
      failed.value = e;
    }
  };
  useEffect(() => { document.title = "Audit · sandpit"; }, []);
  useEffect(() => { void more(true); }, [outcome.value, all.value]);
  const r = report.value;
  return (
    <section>
      <div class="title"><h1>Audit</h1></div>
      <form class="filters" role="search" onSubmit={(e) => { e.preventDefault(); void more(true); }}>
        <label>Search <input type="search" value={words.value} onInput={(e) => { words.value = e.currentTarget.value; }} /></label><button type="submit">Search</button>
        <label>Outcome <select value={outcome.value} onChange={(e) => { outcome.value = e.currentTarget.value; }}><option value="">all</option>{outcomes.map((o) => <option key={o} value={o}>{o}</option>)}</select></label>
        <label>Token <input class="short" value={who.value} onInput={(e) => { who.value = e.currentTarget.value; }} /></label>
        <label>Sandbox id <input class="short" value={where.value} onInput={(e) => { where.value = e.currentTarget.value; }} /></label>
        <label>Types <input class="short" placeholder="exec, call" value={type.value} onInput={(e) => { type.value = e.currentTarget.value; }} /></label>
        <label>From <input type="datetime-local" value={since.value} onChange={(e) => { since.value = e.currentTarget.value; }} /></label>
        <label>Before <input type="datetime-local" value={until.value} onChange={(e) => { until.value = e.currentTarget.value; }} /></label>
        {may("server:admin") && <label><input type="checkbox" checked={all.value} onChange={(e) => { all.value = e.currentTarget.checked; }} /> all projects</label>}
        {may("server:admin") && <Action failed={failed} do={async () => { report.value = await call<AuditReport>("/audit/verify", { method: "POST" }); }}>Check the chain</Action>}
        <Action failed={failed} do={() => save("/audit/export?" + filter(), "audit.jsonl")}>Export, signed</Action>
        <Action failed={failed} do={() => save("/audit/export?format=csv&" + filter(), "audit.csv")}>Export as CSV</Action>
      </form>
      {r && <p role="status" class={r.altered.length === 0 ? "good" : "bad"}>{r.altered.length === 0 ? r.rows + " rows are as they were written" + (r.complete ? "." : ", as far as they are here.") : r.altered.length + " rows were altered: " + r.altered.slice(0, 20).join(", ")}</p>}
      <Trouble error={failed.value} again={() => void more(true)} />
      {read.value && rows.value.length === 0 && <p class="empty">Nothing of that kind is in the log.</p>}
      {rows.value.length > 0 && <table class="list">
        <thead><tr><th>When</th><th>Who</th><th>What</th><th>Outcome</th><th>Where</th></tr></thead>
        <tbody>{rows.value.map((a) => (
          <tr key={a.seq}>
            <td><Time at={a.at} /><span class="hidden">{exact(a.at)}</span></td>
            <td>{oneLine(a.actor ?? "–")} <span class="faint small">{a.via ?? ""} {a.address ?? ""}</span></td>
            <td>{oneLine(a.call ?? a.type)}{a.command && <div><code>{oneLine(a.command)}</code></div>}{a.detail && <div class="small">{shown(a.detail)}</div>}</td>
            <td><span class={a.outcome === "ok" ? "good" : a.outcome === "running" ? "" : "bad"}>{a.outcome}</span>{a.code && <span class="faint small"> {a.code}</span>}{a.duration_ms !== null && <span class="faint small"> {millis(a.duration_ms)}</span>}</td>
            <td>{a.sandbox_id ? <Link to={"/sandboxes/" + a.sandbox_id + "/activity"}>{a.sandbox_id}</Link> : <span class="faint">{a.project ?? ""}</span>}</td>
          </tr>
        ))}</tbody>
      </table>}
      {cursor.value && <button type="button" onClick={() => void more(false)}>What was before</button>}
    </section>
  );
}
