// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// The form that creates a sandbox, and the same as a command, a request and a call of a tool.
import { call, may, seg } from "../api";
import { oneLine } from "../format";
import { put } from "../live";
import { Action, Dialog, Field, Trouble } from "../parts/parts";
import { quote, Same, useList } from "../parts/list";
import { go, query } from "../router";
import { useEffect, useId, useSignal } from "../vendor/core";
import type { JSX, Signal } from "../vendor/core";
import type { CreateSandbox, ImageList, Sandbox, TemplateList } from "../wire";

// fields are those of the form, by their names in the address.
const fields = ["key", "image", "template", "from_snapshot", "cpu_cores", "memory_mb", "disk_mb", "idle_timeout_seconds", "network", "labels"] as const;
type Name = (typeof fields)[number];

export function Create(p: { open: Signal<boolean> }): JSX.Element {
  const wrong = useSignal<unknown>(null), f = useSignal<Partial<Record<Name, string>>>({}), open = p.open.value;
  const names = useId();
  // An address may say what the sandbox is made of: those of images, snapshots and templates do.
  useEffect(() => {
    if (query.value.get("create") === null || !may("sandboxes:write")) return;
    f.value = Object.fromEntries(fields.flatMap((n) => { const v = query.value.get(n); return v === null ? [] : [[n, v]]; }));
    p.open.value = true;
  }, [query.value]);
  const images = useList<ImageList>(open ? "/images" : null, 60_000), templates = useList<TemplateList>(open ? "/templates" : null, 60_000);
  const v = (n: Name): string => (f.value[n] ?? "").trim();
  const input = (n: Name, kind = "text", list?: string) => (id: string, hint?: string): JSX.Element =>
    <input id={id} type={kind as "number"} step={n === "cpu_cores" ? 0.05 : undefined} min={kind === "number" ? 0 : undefined} list={list} aria-describedby={hint} value={f.value[n] ?? ""} onInput={(e) => { f.value = { ...f.value, [n]: e.currentTarget.value }; }} />;
  const labels = Object.fromEntries(v("labels").split(/[\n,]/).map((l) => l.trim()).filter((l) => l !== "").map((l) => { const at = l.indexOf("="); return at < 0 ? [l, ""] : [l.slice(0, at), l.slice(at + 1)]; }));
  const body: CreateSandbox = {};
  for (const n of ["key", "image", "template", "from_snapshot", "network"] as const) if (v(n)) body[n] = v(n);
  for (const n of ["cpu_cores", "memory_mb", "disk_mb", "idle_timeout_seconds"] as const) if (v(n)) body[n] = Number(v(n));
  if (Object.keys(labels).length > 0) body.metadata = labels;
  const flag = (name: string, value: string, unit = ""): string => (value ? " " + name + " " + quote(value + unit) : "");
  const cli = "sandpit create" + flag("--name", v("key")) + flag("--image", v("image")) + flag("--template", v("template")) + flag("--from-snapshot", v("from_snapshot")) + flag("--cpu", v("cpu_cores")) + flag("--memory", v("memory_mb"), "M") + flag("--disk", v("disk_mb"), "M") +
    flag("--idle-timeout", v("idle_timeout_seconds"), "s") + flag("--network", v("network")) + Object.entries(labels).map(([k, x]) => flag("--label", k + "=" + x)).join("");
  // The tool has no labels: another sets them afterwards.
  const tool: Record<string, unknown> = {};
  for (const [n, as] of [["key", "name"], ["image", "image"], ["template", "template"], ["from_snapshot", "from_snapshot"], ["network", "network"], ["cpu_cores", "cpus"], ["memory_mb", "memory_mb"], ["disk_mb", "disk_mb"]] as const) if (body[n] !== undefined) tool[as] = body[n];
  if (body.idle_timeout_seconds) tool["idle_minutes"] = body.idle_timeout_seconds / 60;
  const make = async (): Promise<void> => {
    const s = await call<Sandbox>("/sandboxes", { method: "POST", body });
    put(s);
    p.open.value = false;
    f.value = {};
    go("/sandboxes/" + seg(s.id));
  };
  const leave = (): void => {
    p.open.value = false;
    if (query.value.get("create") !== null) go("/sandboxes", true);
  };
  return (
    <Dialog title="Create a sandbox" open={p.open}>
      <form onSubmit={(e) => e.preventDefault()}>
        <Field label="Name" hint="Left empty, it has an id alone.">{input("key")}</Field>
        {v("from_snapshot") ? <Field label="Snapshot" hint="It begins with these files.">{input("from_snapshot")}</Field> : <>
          <Field label="Image" hint="Left empty, the server's default.">{input("image", "text", names + "i")}</Field>
          <Field label="Template">{input("template", "text", names + "t")}</Field></>}
        <datalist id={names + "i"}>{(images.all.value?.items ?? []).filter((i) => i.status === "ready" && i.allowed).map((i) => <option key={i.name} value={i.name} />)}</datalist>
        <datalist id={names + "t"}>{(templates.all.value?.items ?? []).filter((t) => t.status === "ready").map((t) => <option key={t.id} value={t.name} />)}</datalist>
        <Field label="Memory in MiB">{input("memory_mb", "number")}</Field>
        <Field label="Processors">{input("cpu_cores", "number")}</Field>
        <details><summary>More</summary>
          <Field label="Disk in MiB">{input("disk_mb", "number")}</Field>
          <Field label="Idle after, in seconds" hint="0: never.">{input("idle_timeout_seconds", "number")}</Field>
          <Field label="Network">{(id) => <select id={id} value={f.value.network ?? ""} onChange={(e) => { f.value = { ...f.value, network: e.currentTarget.value }; }}><option value="">the server's default</option><option>off</option><option>restricted</option><option>open</option></select>}</Field>
          <Field label="Labels" hint="Such as team=data, separated by commas.">{input("labels")}</Field>
        </details>
        <Same cli={cli} rest="POST /v1/sandboxes" body={body} tool="create_sandbox" args={tool} />
        {Object.keys(labels).length > 0 && <p class="faint small">By MCP, <code>update_sandbox</code> sets the labels {Object.keys(labels).map(oneLine).join(", ")}.</p>}
        <Trouble error={wrong.value} />
        <div class="buttons">
          <Action class="primary" failed={wrong} do={make}>Create</Action>
          <button type="button" onClick={leave}>Leave</button>
        </div>
      </form>
    </Dialog>
  );
}
