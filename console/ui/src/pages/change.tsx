// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// What can be changed of a sandbox, when it takes effect, and what somebody else changed meanwhile.
import { call, may } from "../api";
import { exact, oneLine, span } from "../format";
import { put } from "../live";
import { Action, Field, Link, Trouble } from "../parts/parts";
import { quote, Same, useList } from "../parts/list";
import { useId, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { MountVolume, Sandbox, UpdateSandbox, VolumeList } from "../wire";

// Part is a setting: how it reads now, and what a changed one makes of a request and of a command.
interface Part {
  id: string;
  label: string;
  group: string;
  kind: "text" | "number" | "seconds" | "lines" | string[];
  now: (s: Sandbox) => string;
  set: (value: string) => UpdateSandbox;
  flags: (value: string) => string;
  hint?: string;
  least?: number;
}

const limits = "Limits", clocks = "Clocks", rest = "Behaviour", name = "Name and labels", mounts = "Volumes";

// effects say when a change of a group holds.
const effects: Record<string, string> = {
  [limits]: "At once while it runs or is paused, where its runtime can do that; else the answer says that it has to be stopped. A stopped one gets them at its next start.",
  [clocks]: "At once.",
  [rest]: "At once.",
  [name]: "At once. By another name it is found alone from then on, and the host names of its previews follow.",
  [mounts]: "Only while it is stopped; they are mounted at its next start.",
};

const yes = ["true", "false"];
const number = (id: "cpu_cores" | "memory_mb" | "disk_mb" | "pids", label: string, flag: string, unit: string, least: number): Part =>
  ({ id, label, group: limits, kind: "number", least, now: (s) => String(s[id]), set: (v) => ({ [id]: Number(v) }), flags: (v) => flag + " " + v + unit });
const seconds = (id: "idle_timeout_seconds" | "retention_seconds" | "archive_after_seconds", label: string, flag: string): Part =>
  ({ id, label, group: clocks, kind: "seconds", now: (s) => String(s[id]), set: (v) => ({ [id]: Number(v) }), flags: (v) => flag + " " + v + "s" });
const word = (id: "idle_action" | "on_expiry" | "checkpoints", label: string, group: string, words: string[], flag: string): Part =>
  ({ id, label, group, kind: words, now: (s) => s[id], set: (v) => ({ [id]: v }), flags: (v) => flag + " " + v });
const choice = (id: "auto_delete" | "auto_start" | "auto_resume" | "sudo", label: string, group: string, flag: string): Part =>
  ({ id, label, group, kind: yes, now: (s) => String(s[id]), set: (v) => ({ [id]: v === "true" }), flags: (v) => flag + "=" + v });

const lines = (text: string): string[] => text.split("\n").map((l) => l.trim()).filter((l) => l !== "");

// labels are read from lines like team=data.
function labels(text: string): Record<string, string> {
  return Object.fromEntries(lines(text).map((l) => { const at = l.indexOf("="); return at < 0 ? [l, ""] : [l.slice(0, at).trim(), l.slice(at + 1).trim()]; }));
}

// mount reads a line like data/sub:/mnt/data:ro, as the command line has it.
function mount(line: string): MountVolume {
  const [from = "", path = "", mode] = line.split(":"), slash = from.indexOf("/");
  return { volume: slash < 0 ? from : from.slice(0, slash), path, ...(slash < 0 ? {} : { sub_path: from.slice(slash + 1) }), ...(mode === "ro" ? { read_only: true } : {}) };
}

const parts: Part[] = [
  { id: "key", label: "Name", group: name, kind: "text", now: (s) => s.key ?? "", set: (v) => ({ key: v.trim() }), flags: () => "" },
  { id: "metadata", label: "Labels", group: name, kind: "lines", hint: "One a line, such as team=data", now: (s) => Object.entries(s.metadata).map(([k, v]) => k + "=" + v).sort().join("\n"), set: (v) => ({ metadata: labels(v) }), flags: (v) => Object.entries(labels(v)).map(([k, x]) => "--label " + quote(k + "=" + x)).join(" ") },
  number("cpu_cores", "Processors", "--cpu", "", 0.05), number("memory_mb", "Memory in MiB", "--memory", "M", 16), number("disk_mb", "Disk in MiB", "--disk", "M", 16), number("pids", "Processes", "--pids", "", 8),
  seconds("idle_timeout_seconds", "Idle after, in seconds", "--idle-timeout"), word("idle_action", "When it is idle", clocks, ["stop", "pause"], "--idle-action"),
  { id: "timeout_seconds", label: "Expires, in seconds from now", group: clocks, kind: "seconds", now: () => "", set: (v) => (v === "" ? {} : { timeout_seconds: Number(v) }), flags: (v) => "--ttl " + v + "s", hint: "Empty: as it is. 0: never." },
  word("on_expiry", "When it expires", clocks, ["delete", "stop", "pause"], "--on-expiry"),
  { id: "ttl_seconds", label: "Deleted when it is not used for, in seconds", group: clocks, kind: "seconds", now: (s) => String(s.ttl_mode === "sliding" ? s.ttl_seconds ?? 0 : 0), set: (v) => ({ ttl_seconds: Number(v), ttl_mode: "sliding" }), flags: (v) => "--ttl " + v + "s --ttl-mode sliding" },
  seconds("retention_seconds", "Deleted when it is down for, in seconds", "--retention"), seconds("archive_after_seconds", "Archived when it is stopped for, in seconds", "--archive-after"),
  choice("auto_delete", "Deleted as soon as it is stopped", clocks, "--auto-delete"),
  choice("auto_start", "A call starts it when a clock or the host took it down", rest, "--auto-start"), choice("auto_resume", "A call resumes it when somebody paused it", rest, "--auto-resume"),
  word("checkpoints", "Snapshots by itself", rest, ["off", "command"], "--checkpoints"), choice("sudo", "Its user may become root", rest, "--sudo"),
  { id: "volumes", label: "Volumes that it mounts", group: mounts, kind: "lines", hint: "One a line: NAME:PATH, NAME/SUB:PATH or NAME:PATH:ro", now: (s) => s.volumes.map((m) => m.volume + (m.sub_path ? "/" + m.sub_path : "") + ":" + m.path + (m.read_only ? ":ro" : "")).join("\n"), set: (v) => ({ volumes: lines(v).map(mount) }), flags: (v) => lines(v).map((l) => "--volume " + quote(l)).join(" ") || "--no-volumes" },
];

// asTool is a request as the tool update_sandbox has it.
function asTool(body: UpdateSandbox): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [n, v] of Object.entries(body) as [string, unknown][]) {
    const minutes = typeof v === "number" ? Math.round(v / 0.6) / 100 : v;
    switch (n) {
      case "key": out["new_name"] = v; break;
      case "cpu_cores": out["cpus"] = v; break;
      case "metadata": out["labels"] = v; break;
      case "timeout_seconds": out["ttl_minutes"] = minutes; break;
      case "ttl_seconds": out["unused_ttl_minutes"] = minutes; break;
      case "ttl_mode": break;
      case "idle_timeout_seconds": out["idle_minutes"] = minutes; break;
      case "env_unset": out[n] = (v as string[]).join(", "); break;
      case "volumes": out[n] = (v as MountVolume[]).map((m) => m.volume + (m.sub_path ? "/" + m.sub_path : "") + ":" + m.path + (m.read_only ? ":ro" : "")).join(", "); break;
      default: out[n.replace(/_seconds$/, "_minutes")] = n.endsWith("_seconds") ? minutes : v;
    }
  }
  return out;
}

// Draft is a setting as it was when somebody began to change it here, and what they made of it.
interface Draft { from: string; to: string }

export function Change(p: { of: Sandbox }): JSX.Element {
  const s = p.of, write = may("sandboxes:write"), draft = useSignal<Record<string, Draft>>({}), failed = useSignal<unknown>(null), saved = useSignal("");
  const set = useSignal<Record<string, string>>({}), unset = useSignal<string[]>([]);
  const volumes = useList<VolumeList>("/volumes", 30_000);
  const edit = (part: Part, to: string): void => {
    const all = { ...draft.value }, from = all[part.id]?.from ?? part.now(s);
    if (to === part.now(s)) delete all[part.id];
    else all[part.id] = { from, to };
    draft.value = all;
    saved.value = "";
  };
  const changed = parts.filter((part) => part.id in draft.value && draft.value[part.id]!.to !== part.now(s));
  const conflicts = changed.filter((part) => draft.value[part.id]!.from !== part.now(s));
  const body: UpdateSandbox = Object.assign({}, ...changed.map((part) => part.set(draft.value[part.id]!.to)));
  if (Object.keys(set.value).length > 0) body.env_set = set.value;
  if (unset.value.length > 0) body.env_unset = unset.value;
  // A request that is shown has no value of a variable: they are written, and never read.
  const shownBody = body.env_set ? { ...body, env_set: Object.fromEntries(Object.keys(body.env_set).map((k) => [k, "…"])) } : body;
  const called = s.key ?? s.id, flags = changed.map((part) => part.flags(draft.value[part.id]!.to)).concat(Object.keys(set.value).map((k) => "--env-set " + quote(k) + "=…"), unset.value.map((k) => "--env-unset " + quote(k))).filter((f) => f !== "");
  const cli = [...("key" in body ? ["sandpit rename " + quote(called) + " " + quote(body.key ?? "")] : []), ...(flags.length ? ["sandpit update " + quote(body.key ?? called) + " " + flags.join(" ")] : [])].join("\n");
  const some = Object.keys(body).length > 0;
  const forget = (): void => { draft.value = {}; set.value = {}; unset.value = []; };
  return (
    <section aria-label="Settings">
      {!write && <p class="faint">The token that you are signed in by may only read.</p>}
      <form class="settings" onSubmit={(e) => e.preventDefault()}>
        {[name, limits, clocks, rest, mounts].map((group) => (
          <fieldset key={group} disabled={!write || (group === mounts && s.status !== "stopped")}>
            <legend>{group}</legend>
            <p class="faint small">{effects[group]}{group === clocks && s.expires_at ? " It expires " + exact(s.expires_at) + "." : ""}</p>
            {parts.filter((part) => part.group === group).map((part) => <Setting key={part.id} part={part} of={s} draft={draft.value[part.id]} edit={edit} theirs={() => { const all = { ...draft.value }; delete all[part.id]; draft.value = all; }} mine={() => { draft.value = { ...draft.value, [part.id]: { from: part.now(s), to: draft.value[part.id]!.to } }; }} />)}
            {group === mounts && <p class="faint small">{volumes.all.value && volumes.all.value.items.length > 0 ? <>There are {volumes.all.value.items.map((v) => <><code key={v.id}>{oneLine(v.name)}</code> </>)}</> : "The project has no volume. "}<Link to="/volumes">Volumes</Link></p>}
          </fieldset>
        ))}
        <fieldset disabled={!write}>
          <legend>Variables</legend>
          <p class="faint small">For commands that are begun from then on. Values are written here, and never shown.</p>
          {s.env_names.length === 0 && Object.keys(set.value).length === 0 && <p>It has none.</p>}
          <ul class="files">{[...new Set([...s.env_names, ...Object.keys(set.value)])].sort().map((n) => (
            <li key={n}><code>{oneLine(n)}</code> {unset.value.includes(n) ? <span class="bad">is taken away</span> : n in set.value ? <span class="good">gets a value</span> : null}
              {write && <> <button type="button" aria-label={(unset.value.includes(n) || n in set.value ? "Leave " : "Take away ") + oneLine(n)} onClick={() => {
                if (n in set.value) { const all = { ...set.value }; delete all[n]; set.value = all; }
                else unset.value = unset.value.includes(n) ? unset.value.filter((x) => x !== n) : [...unset.value, n];
              }}>{unset.value.includes(n) || n in set.value ? "Leave it" : "Take away"}</button></>}</li>
          ))}</ul>
          {write && <Variable add={(n, v) => { set.value = { ...set.value, [n]: v }; unset.value = unset.value.filter((x) => x !== n); saved.value = ""; }} />}
        </fieldset>
      </form>
      {some && <div class="bulk save" role="group" aria-label="What is changed">
        <span>{conflicts.length > 0 ? <span class="bad">Somebody else changed the same meanwhile: choose what holds.</span> : changed.map((part) => part.label).concat(body.env_set || body.env_unset ? ["Variables"] : []).join(", ")}</span>
        <Action class="primary" failed={failed} disabled={conflicts.length > 0} do={async () => { put(await call<Sandbox>("/sandboxes/" + s.id, { method: "PATCH", body })); forget(); saved.value = "It is changed."; }}>Save</Action>
        <button type="button" onClick={forget}>Leave it as it is</button>
        <Same cli={cli} rest={"PATCH /v1/sandboxes/" + s.id} body={shownBody} tool="update_sandbox" args={{ sandbox: called, ...asTool(shownBody) }} />
      </div>}
      <Trouble error={failed.value} />
      <p role="status" class="good">{saved.value}</p>
    </section>
  );
}

function Setting(p: { part: Part; of: Sandbox; draft: Draft | undefined; edit: (part: Part, to: string) => void; mine: () => void; theirs: () => void }): JSX.Element {
  const { part, draft } = p, now = part.now(p.of), value = draft?.to ?? now, about = useId();
  const change = (e: { currentTarget: { value: string } }): void => p.edit(part, e.currentTarget.value);
  const hint = part.hint ?? (part.kind === "seconds" ? (Number(value) > 0 ? span(Number(value)) : "never") : undefined);
  return (
    <>
      <Field label={part.label} {...(hint ? { hint } : {})}>{(id, described) =>
        Array.isArray(part.kind) ? <select id={id} aria-describedby={described} value={value} onChange={change}>{part.kind.map((w) => <option key={w} value={w}>{w === "true" ? "yes" : w === "false" ? "no" : w}</option>)}</select>
          : part.kind === "lines" ? <textarea id={id} aria-describedby={described} rows={Math.max(2, value.split("\n").length)} value={value} onInput={change} spellcheck={false} />
            : <input id={id} aria-describedby={described} type={(part.kind === "text" ? "text" : "number") as "number"} min={part.kind === "text" ? undefined : part.least ?? 0} step="any" value={value} onInput={change} />}</Field>
      {draft && draft.from !== now && draft.to !== now && <div class="trouble" role="alert" id={about}>
        <p>{part.label}: meanwhile somebody made <code>{oneLine(now) || "nothing"}</code> of <code>{oneLine(draft.from) || "nothing"}</code>.</p>
        <div class="buttons"><button type="button" onClick={p.mine}>Keep mine: {oneLine(draft.to) || "nothing"}</button><button type="button" onClick={p.theirs}>Take theirs</button></div>
      </div>}
    </>
  );
}

function Variable(p: { add: (name: string, value: string) => void }): JSX.Element {
  const n = useSignal(""), v = useSignal("");
  const right = /^[A-Za-z_][A-Za-z0-9_]*$/.test(n.value);
  return (
    <div class="filters">
      <label>Variable <input value={n.value} autocomplete="off" spellcheck={false} onInput={(e) => { n.value = e.currentTarget.value.trim(); }} /></label>
      <label>Its value <input type="password" autocomplete="off" value={v.value} onInput={(e) => { v.value = e.currentTarget.value; }} /></label>
      <button type="button" disabled={!right} onClick={() => { p.add(n.value, v.value); n.value = ""; v.value = ""; }}>Set it</button>
    </div>
  );
}
