// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// The server's settings: what each is, where that comes from; what holds at once is changed here, and shown before it is.
import { call, may } from "../api";
import { oneLine, shown, span } from "../format";
import { quote } from "../parts/list";
import { Action, Dialog, Field, Time, Trouble } from "../parts/parts";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { Configuration, ConfiguredValue, Setting, SettingList, UpdateSettings } from "../wire";

// choices are the values of settings that take one of a few.
const choices: Record<string, string[]> = { log_level: ["debug", "info", "warn", "error"], max_network: ["off", "restricted", "open"], max_previews: ["private", "public"] };

const sources: Record<string, string> = { default: "the default", file: "the configuration file", environment: "the environment", flag: "the command line", set: "set by a call" };

// text is a value as people read it.
function text(s: Setting, v: unknown): string {
  if (Array.isArray(v)) return v.length === 0 ? "none" : v.map((x) => oneLine(String(x))).join(", ");
  if (typeof v === "boolean") return v ? "yes" : "no";
  if (v === 0 && s.name.startsWith("max_")) return "any number";
  if (typeof v === "number" && s.name.endsWith("_seconds")) return v === 0 ? (s.name.startsWith("command") ? "0" : "never") : v + " s (" + span(v) + ")";
  if (v === "" || v === null || v === undefined) return "none";
  return oneLine(String(v));
}

// written is a value as an input has it, and read back by parsed.
const written = (v: unknown): string => (Array.isArray(v) ? v.join("\n") : String(v ?? ""));

function parsed(s: Setting, t: string): unknown {
  if (Array.isArray(s.value)) return t.split("\n").map((l) => l.trim()).filter((l) => l !== "");
  if (typeof s.value === "boolean") return t === "true";
  if (typeof s.value === "number") return t.trim() === "" || !Number.isFinite(Number(t)) ? t : Number(t);
  return t;
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

export function Settings(): JSX.Element {
  const all = useSignal<Setting[] | null>(null), failed = useSignal<unknown>(null), open = useSignal(false), of = useSignal<Setting | null>(null), value = useSignal(""), wrong = useSignal<unknown>(null), back = useSignal(false), done = useSignal("");
  const runs = may("server:admin");
  const read = async (): Promise<void> => {
    try {
      all.value = (await call<SettingList>("/settings")).items;
      failed.value = null;
    } catch (e) {
      failed.value = e;
    }
  };
  useEffect(() => { document.title = "Settings · sandpit"; if (runs) void read(); }, []);
  const ask = (s: Setting, takeBack: boolean): void => {
    of.value = s; back.value = takeBack; value.value = written(s.value); wrong.value = null; done.value = ""; open.value = true;
  };
  const s = of.value, to = s && (back.value ? s.otherwise : parsed(s, value.value));
  const make = async (): Promise<void> => {
    const body: UpdateSettings = back.value ? { unset: [s!.name] } : { [s!.name]: to };
    all.value = (await call<SettingList>("/settings", { method: "PATCH", body })).items;
    done.value = s!.name + " is " + text(s!, to) + " now.";
    open.value = false;
  };
  return (
    <section>
      <div class="title"><h1>Settings</h1></div>
      {!runs && <p class="empty">These are the server's. The token that you are signed in by is a project's, and may not see them.</p>}
      {runs && <p>What is here holds from the moment that it is changed, and after a restart. All else, such as addresses, certificates, runtimes and directories, <a href="#restart">needs a restart</a>.</p>}
      <Trouble error={failed.value} again={() => void read()} />
      {done.value && <p class="good" role="status">{done.value}</p>}
      {all.value !== null && <table class="list settings">
        <thead><tr><th>Setting</th><th>Value</th><th>From</th><th>Holds for</th><th><span class="hidden">Actions</span></th></tr></thead>
        <tbody>{all.value.map((x) => (
          <tr key={x.name}>
            <td class="about"><code>{x.name}</code><div class="faint small">{x.about}</div></td>
            <td class="value"><b>{text(x, x.value)}</b>{x.source === "set" && <div class="faint small">else {text(x, x.otherwise)}</div>}</td>
            <td>{sources[x.source] ?? x.source}{x.changed_at && <div class="faint small"><Time at={x.changed_at} /> by {oneLine(x.changed_by ?? "")}</div>}</td>
            <td>{x.holds === "new" ? "new sandboxes" : "all, at once"}</td>
            <td><span class="buttons">
              <button type="button" aria-label={"Change " + x.name} onClick={() => ask(x, false)}>Change…</button>
              {x.source === "set" && <button type="button" aria-label={"Take back " + x.name} onClick={() => ask(x, true)}>Take back…</button>}
            </span></td>
          </tr>
        ))}</tbody>
      </table>}
      {runs && <Started />}
      <Dialog title={s ? (back.value ? "Take back " : "Change ") + s.name : ""} open={open}>
        {s && <form onSubmit={(e) => e.preventDefault()}>
          <p class="faint">{s.about}</p>
          {!back.value && <Field label="Value" hint={Array.isArray(s.value) ? "One a line." : undefined}>{(id, hint) =>
            typeof s.value === "boolean" ? <select id={id} value={value.value} onChange={(e) => { value.value = e.currentTarget.value; }}><option value="true">yes</option><option value="false">no</option></select>
            : choices[s.name] ? <select id={id} value={value.value} onChange={(e) => { value.value = e.currentTarget.value; }}>{choices[s.name]!.map((c) => <option key={c} value={c}>{c}</option>)}</select>
            : Array.isArray(s.value) ? <textarea id={id} aria-describedby={hint} rows={5} value={value.value} onInput={(e) => { value.value = e.currentTarget.value; }} />
            : <input id={id} inputMode={typeof s.value === "number" ? "numeric" : undefined} value={value.value} onInput={(e) => { value.value = e.currentTarget.value; wrong.value = null; }} />}</Field>}
          <h3>The change</h3>
          {same(to, s.value) && !back.value ? <p class="faint">It is so already.</p> : <>
            <p class="change-of"><del>{text(s, s.value)}</del> → <ins>{text(s, to)}</ins></p>
            <p class="small">{s.holds === "new" ? "It holds for sandboxes that are made from now on." : "It holds for all that there is, at once."} {back.value && "What a call set is taken back: " + "the command line, the environment, the file or the default holds again."}</p>
            <pre aria-label="The same by command">{back.value ? "sandpit settings unset " + s.name : "sandpit settings set " + quote(s.name + "=" + (Array.isArray(to) ? to.join(",") : shown(String(to))))}</pre>
          </>}
          <Trouble error={wrong.value} />
          <div class="buttons">
            <Action class="primary" failed={wrong} disabled={same(to, s.value) && !back.value} do={make}>Make the change</Action>
            <button type="button" onClick={() => { open.value = false; }}>Leave</button>
          </div>
        </form>}
      </Dialog>
    </section>
  );
}

// told is a value of the configuration as people read it.
function told(v: unknown): string {
  if (Array.isArray(v)) return v.length === 0 ? "none" : v.map(told).join(", ");
  if (v !== null && typeof v === "object") return Object.keys(v).length === 0 ? "none" : Object.entries(v).map(([k, of]) => oneLine(k) + ": " + told(of)).join("; ");
  if (typeof v === "boolean") return v ? "yes" : "no";
  return v === "" || v === null || v === undefined ? "none" : oneLine(String(v));
}

// empty reports whether a default says nothing: what holds then, the key's documentation has.
const empty = (v: unknown): boolean => v === 0 || v === "0s" || told(v) === "none";

// Started is what the server was started with. What no setting begins with needs a restart.
function Started(): JSX.Element {
  const all = useSignal<ConfiguredValue[] | null>(null), failed = useSignal<unknown>(null), words = useSignal(""), changed = useSignal(false);
  const read = (): void => { call<Configuration>("/settings/configuration").then((c) => { all.value = c.items; failed.value = null; }, (e: unknown) => { failed.value = e; }); };
  useEffect(read, []);
  const has = words.value.trim().toLowerCase();
  const found = (all.value ?? []).filter((v) => !v.setting && (!changed.value || v.source !== "default") && (v.key + " " + told(v.value)).toLowerCase().includes(has));
  return (
    <section aria-labelledby="restart">
      <h2 id="restart" tabIndex={-1}>What needs a restart</h2>
      <p class="faint">What the server was started with, by the keys of its configuration file (docs/operations.md). What is changed there, in the environment or on the command line holds after the next start. Secrets are not shown.</p>
      <Trouble error={failed.value} again={read} />
      <div class="filters">
        <label>Find <input type="search" value={words.value} onInput={(e) => { words.value = e.currentTarget.value; }} /></label>
        <label><input type="checkbox" checked={changed.value} onChange={(e) => { changed.value = e.currentTarget.checked; }} /> leave out defaults</label>
        {all.value !== null && <span class="faint" role="status">{found.length} {found.length === 1 ? "key" : "keys"}</span>}
      </div>
      {found.length > 0 && <table class="list settings">
        <thead><tr><th>Key</th><th>Value</th><th>From</th></tr></thead>
        <tbody>{found.map((v) => (
          <tr key={v.key}><td class="about"><code>{v.key}</code></td><td class="value">{v.source !== "default" ? <b>{told(v.value)}</b> : empty(v.value) ? <span class="faint">not set</span> : told(v.value)}{v.secret && <span class="faint small"> secret</span>}</td><td>{sources[v.source] ?? v.source}</td></tr>
        ))}</tbody>
      </table>}
    </section>
  );
}
