// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// What happened to a sandbox: each command with its outcome and the files that it changed.
import { call, seg } from "../api";
import { bytes, exact, millis, oneLine, shown, span } from "../format";
import { Link, now, Time, Trouble } from "../parts/parts";
import { signal, useEffect, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { Event, EventPage, Sandbox } from "../wire";

const kinds: [string, string][] = [["", "everything"], ["exec,code", "commands and code"], ["sandbox", "its life"]];
const actor = signal("");

// most is how many the list grows to by itself; what was before them is read when it is asked for.
const most = 200;

export function Activity(p: { of: Sandbox }): JSX.Element {
  const s = p.of, all = useSignal<Event[]>([]), cursor = useSignal<string | null>(null), failed = useSignal<unknown>(null), kind = useSignal(""), read = useSignal(false);
  const path = "/sandboxes/" + s.id + "/activity?limit=50";
  const wanted = (e: Event): boolean => (actor.value === "" || e.actor === actor.value) &&
    (kind.value === "" || (kind.value === "sandbox" ? e.type.startsWith("sandbox.") : kind.value.split(",").includes(e.type)));
  const more = async (): Promise<void> => {
    const at = cursor.value;
    try {
      const page = await call<EventPage>(path + (at ? "&cursor=" + seg(at) : ""));
      if (cursor.value !== at) return; // it began anew meanwhile
      all.value = all.value.concat(page.items);
      cursor.value = page.next_cursor;
      failed.value = null;
      read.value = true;
    } catch (e) {
      failed.value = e;
    }
  };
  useEffect(() => {
    all.value = [];
    cursor.value = null;
    read.value = false;
    void more();
    const timer = setInterval(() => {
      if (document.hidden || !read.value) return;
      call<EventPage>(path).then((page) => {
        const newest = all.value[0]?.seq ?? -1;
        const fresh = page.items.filter((e) => e.seq > newest);
        // There may be more that are new than a page has, and a list that only grew would have no end: it begins anew at its top. Who
        // reads further down keeps what is there.
        const over = fresh.length > 0 && (all.value.length + fresh.length > most || (fresh.length === page.items.length && page.next_cursor !== null));
        if (over && scrollY <= innerHeight) {
          all.value = page.items;
          cursor.value = page.next_cursor;
          return;
        }
        // A command that ran when it was read may have ended.
        const anew = new Map(page.items.map((e) => [e.seq, e]));
        all.value = (over ? [] : fresh).concat(all.value.map((e) => anew.get(e.seq) ?? e));
      }, () => {});
    }, 2000);
    return () => clearInterval(timer);
  }, [s.id]);
  const actors = [...new Set(all.value.map((e) => e.actor))].sort();
  const some = all.value.filter(wanted);
  return (
    <section aria-label="Activity">
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <label>Show <select value={kind.value} onChange={(e) => { kind.value = e.currentTarget.value; }}>{kinds.map(([id, name]) => <option key={id} value={id}>{name}</option>)}</select></label>
        <label>By <select value={actor.value} onChange={(e) => { actor.value = e.currentTarget.value; }}><option value="">everyone</option>{actors.map((a) => <option key={a} value={a}>{oneLine(a)}</option>)}</select></label>
      </form>
      <Trouble error={failed.value} again={() => void more()} />
      {read.value && some.length === 0 && <p class="empty">Nothing of that kind happened{cursor.value ? " lately" : ""}.</p>}
      <ol class="events">{some.map((e) => <Entry key={e.seq} of={e} sandbox={s} />)}</ol>
      {cursor.value && <button type="button" onClick={() => void more()}>What was before</button>}
    </section>
  );
}

function Entry(p: { of: Event; sandbox: Sandbox }): JSX.Element {
  const e = p.of, files = e.files_changed ?? [];
  const bad = e.signal !== undefined || (e.exit_code ?? 0) !== 0 || e.ok === false, running = e.status === "running";
  // Of what was refused: the name or address that the policy could let through.
  const host = e.type === "network.refused" ? /^(?:dns|tcp|udp): ([\w.-]+)(?::\d+)?(?: \([^)]*\))? (?:is not among|is neither|is denied)/.exec(e.detail ?? "")?.[1] : undefined;
  return (
    <li>
      <p><Time at={e.at} /> <span class="kind">{oneLine(e.type)}</span> <span class="faint">{oneLine(e.actor)} · {oneLine(e.via)}</span></p>
      {e.command !== undefined && <p><code>{oneLine(e.command)}</code></p>}
      {e.detail && <p>{shown(e.detail)}</p>}
      {e.type === "network.refused" && <p><Link to={"/sandboxes/" + seg(p.sandbox.id) + "/network" + (host ? "?host=" + seg(host) : "")}>{host ? "Allow it on the page Network" : "What was tried"}</Link></p>}
      {(e.exit_code !== undefined && e.exit_code !== null || e.signal || e.status === "running") && <p>
        <span class={e.status === "running" ? "good" : bad ? "bad" : ""}>{e.status === "running" ? "running" : e.signal ? oneLine(e.signal) : "exit " + e.exit_code}</span>
        {(running || e.duration_ms !== undefined) && <span class="faint"> · {running ? span(Math.max(0, (now.value - Date.parse(e.at)) / 1000)) : millis(e.duration_ms)}</span>}
        {e.process_id && e.type === "exec" && <> · <Link to={"/sandboxes/" + seg(p.sandbox.id) + "/processes?process=" + seg(e.process_id)}>output{running ? " so far" : ", " + bytes((e.stdout_bytes ?? 0) + (e.stderr_bytes ?? 0))}</Link></>}
      </p>}
      {files.length > 0 && <details><summary>{e.files_changed_total ?? files.length} {(e.files_changed_total ?? files.length) === 1 ? "file" : "files"} changed</summary>
        <ul class="files">{files.map((f) => <li key={f.path}><span class={"change " + f.action}>{f.action}</span> <code>{oneLine(f.path)}</code> <span class="faint">{f.action === "deleted" ? "" : bytes(f.size_bytes)}</span></li>)}</ul>
      </details>}
      <p class="hidden">{exact(e.at)}</p>
    </li>
  );
}
