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
import type { CreateSandbox, ImageList, Info, PresetList, Sandbox, SettingList, TemplateList } from "../wire";

// fields are those of the form, by their names in the address.
const fields = ["key", "image", "template", "from_snapshot", "cpu_cores", "memory_mb", "disk_mb", "idle_timeout_seconds", "network", "labels"] as const;
type Name = (typeof fields)[number];

const reaches: Record<string, string> = { off: "off: it reaches nothing", restricted: "restricted: what you name", open: "open: the public internet" };

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
  const info = useList<Info>(open ? "/info" : null, 60_000), presets = useList<PresetList>(open && f.value.network === "restricted" ? "/network/presets" : null, 60_000);
  const settings = useList<SettingList>(open && may("server:admin") ? "/settings" : null, 60_000);
  const another = useSignal(false), through = useSignal<string[]>([]), hosts = useSignal(""), made = useSignal<Sandbox | null>(null);
  const v = (n: Name): string => (f.value[n] ?? "").trim();
  const input = (n: Name, kind = "text", list?: string) => (id: string, hint?: string): JSX.Element =>
    <input id={id} type={kind as "number"} step={n === "cpu_cores" ? 0.05 : undefined} min={kind === "number" ? 0 : undefined} list={list} placeholder={usual(n)} aria-describedby={hint} value={f.value[n] ?? ""} onInput={(e) => { f.value = { ...f.value, [n]: e.currentTarget.value }; }} />;
  const d = info.all.value?.defaults, most = info.all.value?.max;
  // usual is what holds where a field is left empty. A template or a snapshot has its own.
  const usual = (n: Name): string | undefined => {
    const own = v("from_snapshot") ? "the snapshot's" : v("template") ? "the template's" : "";
    const is = n === "memory_mb" ? d?.memory_mb : n === "cpu_cores" ? d?.cpu_cores : n === "disk_mb" ? d?.disk_mb : n === "idle_timeout_seconds" ? d?.idle_timeout_seconds : undefined;
    return is === undefined ? undefined : own || String(is);
  };
  const atMost = (n: number | undefined): string | undefined => (n ? "At most " + n + "." : undefined);
  const all = images.all.value?.items ?? [], ready = all.filter((i) => i.status === "ready" && i.allowed), asked = v("image");
  const other = another.value || (asked !== "" && images.all.value !== null && !ready.some((i) => i.name === asked)), aliased = all.find((i) => i.aliases.includes(asked));
  const words = hosts.value.split(/[\s,]+/).filter((h) => h !== ""), isAddress = (h: string): boolean => /^[0-9.]+(\/[0-9]+)?$|^[0-9a-f]*:/i.test(h);
  const cidrs = words.filter(isAddress), domains = words.filter((h) => !isAddress(h));
  const widest = settings.all.value?.items.find((s) => s.name === "max_network")?.value, modes = ["off", "restricted", "open"].filter((_, i) => widest !== "off" && widest !== "restricted" || i <= (widest === "off" ? 0 : 1));
  const labels = Object.fromEntries(v("labels").split(/[\n,]/).map((l) => l.trim()).filter((l) => l !== "").map((l) => { const at = l.indexOf("="); return at < 0 ? [l, ""] : [l.slice(0, at), l.slice(at + 1)]; }));
  const body: CreateSandbox = {};
  for (const n of ["key", "image", "template", "from_snapshot", "network"] as const) if (v(n)) body[n] = v(n);
  for (const n of ["cpu_cores", "memory_mb", "disk_mb", "idle_timeout_seconds"] as const) if (v(n)) body[n] = Number(v(n));
  if (v("network") === "restricted") body.network = { mode: "restricted", ...(through.value.length ? { allow_presets: through.value } : {}), ...(domains.length ? { allow_domains: domains } : {}), ...(cidrs.length ? { allow_cidrs: cidrs } : {}) };
  if (Object.keys(labels).length > 0) body.metadata = labels;
  const flag = (name: string, value: string, unit = ""): string => (value ? " " + name + " " + quote(value + unit) : "");
  const cli = "sandpit create" + flag("--name", v("key")) + flag("--image", v("image")) + flag("--template", v("template")) + flag("--from-snapshot", v("from_snapshot")) + flag("--cpu", v("cpu_cores")) + flag("--memory", v("memory_mb"), "M") + flag("--disk", v("disk_mb"), "M") +
    flag("--idle-timeout", v("idle_timeout_seconds"), "s") + flag("--network", v("network")) + (v("network") === "restricted" ? through.value.map((x) => flag("--allow", x)).join("") + domains.map((x) => flag("--allow-domain", x)).join("") + cidrs.map((x) => flag("--allow-cidr", x)).join("") : "") + Object.entries(labels).map(([k, x]) => flag("--label", k + "=" + x)).join("");
  // The tool has no labels: another sets them afterwards.
  const tool: Record<string, unknown> = {};
  for (const [n, as] of [["key", "name"], ["image", "image"], ["template", "template"], ["from_snapshot", "from_snapshot"], ["network", "network"], ["cpu_cores", "cpus"], ["memory_mb", "memory_mb"], ["disk_mb", "disk_mb"]] as const) if (body[n] !== undefined) tool[as] = body[n];
  if (v("network") === "restricted") {
    tool["network"] = "restricted";
    if (through.value.length + domains.length > 0) tool["allow_domains"] = [...through.value, ...domains];
    if (cidrs.length > 0) tool["allow_addresses"] = cidrs;
  }
  if (body.idle_timeout_seconds) tool["idle_minutes"] = body.idle_timeout_seconds / 60;
  const make = async (): Promise<void> => {
    const s = await call<Sandbox>("/sandboxes", { method: "POST", body });
    put(s);
    f.value = {};
    through.value = [];
    hosts.value = "";
    another.value = false;
    if (s.image_note) made.value = s;
    else opens(s);
  };
  const opens = (s: Sandbox): void => {
    made.value = null;
    p.open.value = false;
    go("/sandboxes/" + seg(s.id));
  };
  if (made.value) {
    const s = made.value;
    return (
      <Dialog title="It is made" open={p.open}>
        <p role="status"><b>{oneLine(s.requested_image)}</b> is <b>{oneLine(s.image)}</b> here: {oneLine(s.image_note ?? "")}</p>
        <div class="buttons"><button type="button" class="primary" onClick={() => opens(s)}>Open it</button></div>
      </Dialog>
    );
  }
  const leave = (): void => {
    p.open.value = false;
    if (query.value.get("create") !== null) go("/sandboxes", true);
  };
  return (
    <Dialog title="Create a sandbox" open={p.open}>
      <form onSubmit={(e) => e.preventDefault()}>
        <Field label="Name" hint="Left empty, it has an id alone.">{input("key")}</Field>
        {v("from_snapshot") ? <Field label="Snapshot" hint="It begins with these files.">{input("from_snapshot")}</Field> : <>
          <Field label="Image">{(id) => <select id={id} value={other ? "…" : asked} onChange={(e) => { const to = e.currentTarget.value; another.value = to === "…"; f.value = { ...f.value, image: to === "…" ? "" : to }; }}>
            <option value="">{v("template") ? "the template's" : "the server's default" + (all.some((i) => i.default) ? ", " + oneLine(all.find((i) => i.default)!.name) : "")}</option>
            {ready.map((i) => <option key={i.name} value={i.name}>{oneLine(i.name)}</option>)}
            <option value="…">another…</option>
          </select>}</Field>
          {other && <Field label="Its name" hint={aliased ? oneLine(asked) + " is " + oneLine(aliased.name) + " here" + (aliased.alias_notes?.[asked] ? ": " + oneLine(aliased.alias_notes[asked]!) : ".") : "Of the server's own, or of one that was pulled."}>{input("image")}</Field>}
          <Field label="Template">{input("template", "text", names + "t")}</Field></>}
        <datalist id={names + "t"}>{(templates.all.value?.items ?? []).filter((t) => t.status === "ready").map((t) => <option key={t.id} value={t.name} />)}</datalist>
        <Field label="Memory in MiB" hint={atMost(most?.memory_mb)}>{input("memory_mb", "number")}</Field>
        <Field label="Processors" hint={atMost(most?.cpu_cores)}>{input("cpu_cores", "number")}</Field>
        <Field label="Network">{(id) => <select id={id} value={f.value.network ?? ""} onChange={(e) => { f.value = { ...f.value, network: e.currentTarget.value }; }}>
          <option value="">{v("template") ? "the template's" : "the server's default"}</option>{modes.map((m) => <option key={m} value={m}>{reaches[m]}</option>)}
        </select>}</Field>
        {v("network") === "restricted" && <>
          <fieldset><legend>It may reach</legend>{(presets.all.value?.items ?? []).map((one) => <label key={one.name} class="choice" title={oneLine(one.about)}><input type="checkbox" checked={through.value.includes(one.name)} onChange={(e) => { through.value = e.currentTarget.checked ? [...through.value, one.name] : through.value.filter((x) => x !== one.name); }} /> {oneLine(one.name)}</label>)}</fieldset>
          <Field label="And these hosts" hint="Such as example.org, *.example.org or 192.0.2.0/24.">{(id, hint) => <input id={id} aria-describedby={hint} value={hosts.value} onInput={(e) => { hosts.value = e.currentTarget.value; }} />}</Field></>}
        <details><summary>More</summary>
          <Field label="Disk in MiB" hint={atMost(most?.disk_mb)}>{input("disk_mb", "number")}</Field>
          <Field label="Idle after, in seconds" hint="0: never.">{input("idle_timeout_seconds", "number")}</Field>
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
