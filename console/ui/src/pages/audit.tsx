// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// What happened on the server, as the audit log has it.
import { call, may, save } from "../api";
import { exact, millis, oneLine, shown } from "../format";
import { newest, sandboxes } from "../live";
import { Action, Link, Time, Trouble } from "../parts/parts";
import { useEffect, useRef, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { AuditPage, AuditRecord, AuditReport, Sandbox } from "../wire";

const outcomes = ["ok", "failed", "denied", "running"];

const times: [number, string][] = [[3600, "the last hour"], [86400, "the last day"], [0, "all"], [-1, "from … to …"]];

// pageRows is how many rows are shown at a time, and mostPages how many pages of the log are read to find them.
const pageRows = 100, mostPages = 10;

// reading has the names of operations and tools that change nothing, and take nothing out of the server but what is looked at.
const reading = /^(get|list|read|stat|watch|follow|find|search|diff|pack|wait)([A-Z_]|$)|(Log|Logs|Events|Branches|Remotes|Status|Summary)$|^(gitConfig|whoami|skillPackage|sandboxImagePool)$/;

// isRead reports whether a row is a read that went well: a refused one is always shown.
const isRead = (a: AuditRecord): boolean => (a.type === "call" || a.type === "tool") && a.outcome === "ok" && reading.test(a.call ?? "");

export function Audit(): JSX.Element {
  const rows = useSignal<AuditRecord[]>([]), cursor = useSignal(""), failed = useSignal<unknown>(null), read = useSignal(false);
  const words = useSignal(""), outcome = useSignal(""), all = useSignal(may("server:admin")), report = useSignal<AuditReport | null>(null);
  const time = useSignal(0), by = useSignal(""), type = useSignal(""), from = useSignal(""), until = useSignal(""), reads = useSignal(false), left = useSignal(0), box = useSignal<Sandbox | null>(null), asked = useRef(""), turn = useRef(0);
  // path is what is asked for. A word that is a sandbox's name or id asks for the rows of that sandbox.
  const path = (): string => {
    const q = new URLSearchParams(), w = words.value.trim(), who = by.value.trim();
    box.value = w === "" ? null : newest.value.find((s) => s.key === w || s.id === w) ?? null;
    if (box.value) q.set("sandbox", box.value.id);
    else if (w !== "") q.set("text", w);
    if (who !== "") q.set("token", who);
    if (outcome.value) q.set("outcome", outcome.value);
    const kinds = type.value.replace(/\s+/g, "");
    if (kinds !== "") q.set("type", kinds);
    if (time.value > 0) q.set("since", new Date(Date.now() - time.value * 1000).toISOString());
    if (time.value < 0 && from.value) q.set("since", new Date(from.value).toISOString());
    if (time.value < 0 && until.value) q.set("until", new Date(until.value).toISOString());
    if (all.value) q.set("project", "*");
    return q.toString();
  };
  const more = async (fresh: boolean): Promise<void> => {
    const mine = ++turn.current; // of two that are asked for at once the later one is shown
    try {
      if (fresh) asked.current = path();
      const found: AuditRecord[] = [];
      let next = fresh ? "" : cursor.value, out = fresh ? 0 : left.value;
      for (let pages = 0; pages < mostPages; pages++) {
        const page = await call<AuditPage>("/audit?limit=" + (reads.value ? pageRows : 500) + "&" + asked.current + (next && "&cursor=" + encodeURIComponent(next)));
        if (mine !== turn.current) return;
        const kept = reads.value ? page.items : page.items.filter((a) => !isRead(a));
        out += page.items.length - kept.length;
        found.push(...kept);
        next = page.next_cursor ?? "";
        if (next === "" || found.length >= pageRows) break;
      }
      rows.value = fresh ? found : rows.value.concat(found);
      cursor.value = next;
      left.value = out;
      failed.value = null;
      read.value = true;
    } catch (e) {
      if (mine === turn.current) failed.value = e;
    }
  };
  useEffect(() => { document.title = "Audit · sandpit"; }, []);
  useEffect(() => { void more(true); }, [outcome.value, all.value, time.value, reads.value]);
  const r = report.value;
  return (
    <section>
      <div class="title"><h1>Audit</h1></div>
      <form class="filters" role="search" onSubmit={(e) => { e.preventDefault(); void more(true); }}>
        <label>Search <input type="search" placeholder="a sandbox's name, or any text" value={words.value} onInput={(e) => { words.value = e.currentTarget.value; }} /></label>
        <label>Who <input type="search" class="short" placeholder="a token's name" value={by.value} onInput={(e) => { by.value = e.currentTarget.value; }} /></label>
        <label>Types <input class="short" placeholder="exec, call" value={type.value} onInput={(e) => { type.value = e.currentTarget.value; }} /></label><button type="submit">Search</button>
        <label>Time <select value={time.value} onChange={(e) => { time.value = Number(e.currentTarget.value); }}>{times.map(([n, says]) => <option key={n} value={n}>{says}</option>)}</select></label>
        {time.value < 0 && <><label>From <input type="datetime-local" value={from.value} onChange={(e) => { from.value = e.currentTarget.value; void more(true); }} /></label>
          <label>Before <input type="datetime-local" value={until.value} onChange={(e) => { until.value = e.currentTarget.value; void more(true); }} /></label></>}
        <label>Outcome <select value={outcome.value} onChange={(e) => { outcome.value = e.currentTarget.value; }}><option value="">all</option>{outcomes.map((o) => <option key={o} value={o}>{o}</option>)}</select></label>
        <label><input type="checkbox" checked={!reads.value} onChange={(e) => { reads.value = !e.currentTarget.checked; }} /> leave out reads</label>
        {may("server:admin") && <label><input type="checkbox" checked={all.value} onChange={(e) => { all.value = e.currentTarget.checked; }} /> all projects</label>}
        {may("server:admin") && <Action failed={failed} do={async () => { report.value = await call<AuditReport>("/audit/verify", { method: "POST" }); }}>Check that nothing was altered</Action>}
        <Action failed={failed} do={() => save("/audit/export?" + path(), "audit.jsonl")}>Export, signed</Action>
        <Action failed={failed} do={() => save("/audit/export?format=csv&" + path(), "audit.csv")}>Export as CSV</Action>
      </form>
      {r && <p role="status" class={r.altered.length === 0 ? "good" : "bad"}>{r.altered.length === 0 ? r.rows + " rows are as they were written" + (r.complete ? "." : ", as far as they are here.") : r.altered.length + " rows were altered: " + r.altered.slice(0, 20).join(", ")}</p>}
      <Trouble error={failed.value} again={() => void more(true)} />
      {read.value && box.value && <p class="faint" role="status">What concerns the sandbox {oneLine(box.value.key ?? box.value.id)} {box.value.key && <span class="small">{box.value.id}</span>}</p>}
      {read.value && rows.value.length === 0 && <p class="empty">{left.value > 0 ? "Here are only reads, " + left.value + " of them, which are left out." : "Nothing of that kind is in the log."}</p>}
      {rows.value.length > 0 && <table class="list">
        <thead><tr><th>When</th><th>Who</th><th>What</th><th>Outcome</th><th>Where</th></tr></thead>
        <tbody>{rows.value.map((a) => (
          <tr key={a.seq}>
            <td><Time at={a.at} /><span class="hidden">{exact(a.at)}</span></td>
            <td>{oneLine(a.actor ?? "–")} <span class="faint small">{a.via ?? ""} {a.address ?? ""}</span></td>
            <td>{oneLine(a.call ?? a.type)}{a.command && <div><code>{oneLine(a.command)}</code></div>}{a.detail && <div class="small">{shown(a.detail)}</div>}</td>
            <td><span class={a.outcome === "ok" ? "good" : a.outcome === "running" ? "" : "bad"}>{a.outcome}</span>{a.code && <span class="faint small"> {a.code}</span>}{a.duration_ms !== null && <span class="faint small"> {millis(a.duration_ms)}</span>}</td>
            <td>{a.sandbox_id ? <><Link to={"/sandboxes/" + a.sandbox_id + "/activity"}>{oneLine(sandboxes.value.get(a.sandbox_id)?.key ?? a.sandbox_id)}</Link>{sandboxes.value.get(a.sandbox_id)?.key && <span class="faint small nowrap"> {a.sandbox_id}</span>}</> : <span class="faint">{a.project ?? ""}</span>}</td>
          </tr>
        ))}</tbody>
      </table>}
      {cursor.value && <button type="button" onClick={() => void more(false)}>What was before</button>}
      {left.value > 0 && rows.value.length > 0 && <p class="faint small">{left.value} {left.value === 1 ? "read is" : "reads are"} left out.</p>}
    </section>
  );
}
