// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Projects: what each may have and has, and its quotas, whose change is shown before it is made.
import { call, may, seg } from "../api";
import { bytes, megabytes, span } from "../format";
import { quote, useList } from "../parts/list";
import { Action, Dialog, Field, Meter, Time, Trouble } from "../parts/parts";
import { useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { Amounts, Project, ProjectList } from "../wire";

type Resource = keyof Amounts;

const plain = (n: number): string => String(n);

// resources are those that a project may have quotas of, in the order of the page.
const resources: [Resource, string, (n: number) => string][] = [
  ["sandboxes", "Sandboxes", plain], ["running", "Running", plain], ["cpu_cores", "Processors", plain], ["memory_mb", "Memory (MB)", megabytes],
  ["processes", "Processes", plain], ["disk_mb", "Disk (MB)", megabytes], ["snapshots", "Snapshots", plain], ["volumes", "Volumes", plain],
  ["commands_per_day", "Commands a day", plain], ["cpu_seconds_per_month", "Processor seconds a month", span], ["memory_gib_seconds_per_month", "Memory GiB seconds a month", (n) => bytes(n * 2 ** 30) + "·s"],
];

export function Projects(): JSX.Element {
  const list = useList<ProjectList>("/projects", 10_000), runs = may("server:admin");
  const of = useSignal<Project | null>(null), open = useSignal(false), values = useSignal<Record<string, string>>({}), wrong = useSignal<unknown>(null), naming = useSignal(false), name = useSignal("");
  const edit = (p: Project): void => {
    of.value = p; wrong.value = null;
    values.value = Object.fromEntries(resources.map(([r]) => [r, p.quotas[r] === undefined || p.quotas[r] === null ? "" : String(p.quotas[r])]));
    open.value = true;
  };
  const p = of.value;
  const changes = p === null ? [] : resources.map(([r, title, say]) => ({ r, title, say, was: p.quotas[r] ?? 0, to: values.value[r] === "" ? 0 : Number(values.value[r]) })).filter((c) => c.was !== c.to);
  const bound = (n: number, say: (n: number) => string): string => (Number.isNaN(n) ? "no number" : n === 0 ? "no bound" : say(n));
  return (
    <>
      <div class="title"><h2>Projects</h2>{runs && <button type="button" onClick={() => { name.value = ""; wrong.value = null; naming.value = true; }}>Make a project</button>}</div>
      <Trouble error={list.failed.value} again={() => void list.read()} />
      <div class="columns">{list.all.value?.items.map((one) => (
        <section key={one.name} aria-label={"The project " + one.name}>
          <div class="title"><h3>{one.name}</h3>{runs && <button type="button" aria-label={"Change the quotas of " + one.name} onClick={() => edit(one)}>Quotas…</button>}</div>
          {resources.filter(([r]) => one.quotas[r]).map(([r, title, say]) => <Meter key={r} name={title.replace(/ \(.*/, "")} used={one.used[r] ?? null} of={one.quotas[r]!} text={(one.used[r] === undefined || one.used[r] === null ? "not counted" : say(one.used[r]!)) + " of " + say(one.quotas[r]!)} />)}
          <dl>{resources.filter(([r]) => !one.quotas[r] && one.used[r]).map(([r, title, say]) => <><dt>{title.replace(/ \(.*/, "")}</dt><dd>{say(one.used[r]!)} <span class="faint small">no bound</span></dd></>)}</dl>
          {resources.every(([r]) => !one.quotas[r]) && <p class="faint small">It has no quotas{resources.every(([r]) => !one.used[r]) ? ", and uses nothing" : ""}.</p>}
          <p class="faint small">made <Time at={one.created_at} />{one.created_by ? " by " + one.created_by : ""}</p>
        </section>
      ))}</div>
      <Dialog title={"Quotas of " + (p?.name ?? "")} open={open}>
        {p && <form onSubmit={(e) => e.preventDefault()}>
          <p class="faint small">Empty: no bound. One below what is used refuses more, and ends nothing.</p>
          <div class="pairs">{resources.map(([r, title, say]) => <Field key={r} label={title} hint={p.used[r] ? say(p.used[r]!) + " used" : undefined}>{(id, hint) =>
            <input id={id} aria-describedby={hint} inputMode="decimal" value={values.value[r]} onInput={(e) => { values.value = { ...values.value, [r]: e.currentTarget.value.trim() }; }} />}</Field>)}</div>
          <h3>The change</h3>
          {changes.length === 0 && <p class="faint">It is so already.</p>}
          {changes.map((c) => <p key={c.r} class="change-of">{c.title.replace(/ \(.*/, "")}: <del>{bound(c.was, c.say)}</del> → <ins>{bound(c.to, c.say)}</ins></p>)}
          <Trouble error={wrong.value} />
          <div class="buttons">
            <Action class="primary" failed={wrong} disabled={changes.length === 0 || changes.some((c) => Number.isNaN(c.to))} do={async () => {
              await call("/projects/" + seg(p.name), { method: "PATCH", body: { quotas: Object.fromEntries(changes.map((c) => [c.r, c.to])) } });
              open.value = false;
              await list.read();
            }}>Make the change</Action>
            <button type="button" onClick={() => { open.value = false; }}>Leave</button>
          </div>
        </form>}
      </Dialog>
      <Dialog title="Make a project" open={naming}>
        <form onSubmit={(e) => e.preventDefault()}>
          <p>It gets the quotas that the operator has for new projects. A token that is made for it is how somebody uses it.</p>
          <Field label="Name" hint="1 to 63 lower-case letters, digits and dashes">{(id, hint) => <input id={id} aria-describedby={hint} value={name.value} onInput={(e) => { name.value = e.currentTarget.value; }} />}</Field>
          <pre aria-label="The same by command">sandpit project create {quote(name.value || "NAME")}</pre>
          <Trouble error={wrong.value} />
          <div class="buttons">
            <Action class="primary" failed={wrong} do={async () => { await call("/projects", { method: "POST", body: { name: name.value.trim() } }); naming.value = false; await list.read(); }}>Make it</Action>
            <button type="button" onClick={() => { naming.value = false; }}>Leave</button>
          </div>
        </form>
      </Dialog>
    </>
  );
}
