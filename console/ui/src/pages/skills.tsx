// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Skills: what tells an agent how something is done. A stranger may have written one: it is shown as text.
import { call, may, save, seg } from "../api";
import { bytes, oneLine, shown } from "../format";
import { newest } from "../live";
import { Code } from "../parts/copy";
import { Action, Dialog, Field, Time, Trouble } from "../parts/parts";
import { Lose, quote, Same, useList } from "../parts/list";
import { Send } from "../parts/send";
import { go, query } from "../router";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX, Signal } from "../vendor/core";
import type { Skill, SkillList } from "../wire";
import { nameOf } from "./sandboxes";

export function Skills(): JSX.Element {
  const words = useSignal(""), list = useList<SkillList>("/skills", 5000), failed = useSignal<unknown>(null), gone = useSignal<Skill | null>(null), making = useSignal(false), told = useSignal("");
  const write = may("sandboxes:write"), all = list.all.value?.items ?? null, open = query.value.get("skill"), text = words.value.trim().toLowerCase();
  useEffect(() => { document.title = "Skills · sandpit"; }, []);
  const some = (all ?? []).filter((k) => [k.name, k.description, k.author ?? "", ...k.tags].some((t) => t.toLowerCase().includes(text)));
  const kept = (k: Skill): void => { told.value = oneLine(k.name) + " is kept."; void list.read(); go("/skills?skill=" + seg(k.id), true); };
  return (
    <section>
      <div class="title"><h1>Skills</h1>{write && <button type="button" class="primary" onClick={() => { making.value = true; }}>Write a skill</button>}</div>
      <p class="faint">A skill tells an agent how something is done, with the scripts and texts that it speaks of. Agents find those of the project by MCP, and they are installed into sandboxes.</p>
      {write && <Send label="Upload a skill: a .zip, a .skill or a SKILL.md" accept=".zip,.skill,.md" kind="application/octet-stream" path={() => "/skills/upload"} done={(k) => kept(k as Skill)} />}
      <p role="status" class="good">{told.value}</p>
      <Trouble error={failed.value ?? list.failed.value} again={() => { failed.value = null; void list.read(); }} />
      {all?.length === 0 && <div class="empty"><p>The project keeps no skills. Upload one here, or by the command line:</p><Code text="sandpit skill upload ./data-analyzer" /></div>}
      {all !== null && all.length > 0 && <>
        <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
          <label>Search <input type="search" value={words.value} placeholder="name, description or tag" onInput={(e) => { words.value = e.currentTarget.value; }} /></label>
          <span class="faint" role="status">{some.length} of {all.length}</span>
        </form>
        <div class="scroll" tabIndex={0} role="region" aria-label="List of skills"><table class="list">
          <thead><tr><th>Skill</th><th>Version</th><th>Author</th><th>Size</th><th>Changed</th><th>By</th><th><span class="hidden">Actions</span></th></tr></thead>
          <tbody>{some.map((k) => (
            <tr key={k.id} class={k.id === open ? "chosen" : ""}>
              <td><button type="button" class="plain" aria-expanded={k.id === open} onClick={() => go("/skills" + (k.id === open ? "" : "?skill=" + seg(k.id)), true)}>{oneLine(k.name)}</button><div class="faint small">{oneLine(k.description)}</div></td>
              <td>{oneLine(k.version ?? "–")}</td><td>{oneLine(k.author ?? "–")}</td><td>{bytes(k.package_size_bytes)}</td><td><Time at={k.updated_at} /></td><td>{oneLine(k.created_by)}</td>
              <td><span class="buttons">
                <Action failed={failed} label={"Download " + oneLine(k.name)} do={() => save("/skills/" + seg(k.id) + "/package", k.name + ".zip")}>Download</Action>
                {write && <button type="button" class="danger" aria-label={"Delete " + oneLine(k.name)} onClick={() => { gone.value = k; }}>Delete…</button>}
              </span></td>
            </tr>
          ))}</tbody>
        </table></div>
      </>}
      {open && <One key={open} id={open} />}
      <Write open={making} done={kept} />
      <Lose of={gone} failed={failed} title={(k) => "Delete the skill " + oneLine(k.name)} do={async (k) => { await call("/skills/" + seg(k.id), { method: "DELETE" }); await list.read(); }}>{(k) => (
        <p>Its {k.files.length} {k.files.length === 1 ? "file is" : "files are"} lost, and agents find it no more. Where it is installed in a sandbox, it stays there.</p>
      )}</Lose>
    </section>
  );
}

function One(p: { id: string }): JSX.Element {
  const one = useList<Skill>("/skills/" + seg(p.id), 10_000), k = one.all.value, into = useSignal(""), failed = useSignal<unknown>(null), told = useSignal("");
  const places = newest.value.filter((s) => s.status !== "deleting"), chosen = into.value || (places[0]?.id ?? "");
  return (
    <section aria-label="The skill">
      <Trouble error={one.failed.value} />
      {k && <>
        <h2>{oneLine(k.name)}</h2>
        <dl>
          <dt>Id</dt><dd><code>{k.id}</code></dd>
          {k.license && <><dt>Licence</dt><dd>{oneLine(k.license)}</dd></>}
          {k.compatibility && <><dt>Needs</dt><dd>{oneLine(k.compatibility)}</dd></>}
          {k.allowed_tools.length > 0 && <><dt>Tools that it asks for</dt><dd>{k.allowed_tools.map(oneLine).join(", ")}</dd></>}
          {k.tags.length > 0 && <><dt>Tags</dt><dd>{k.tags.map(oneLine).join(", ")}</dd></>}
          <dt>Installed in</dt><dd>{newest.value.filter((s) => s.skills.some((i) => i.id === k.id)).map(nameOf).join(", ") || "no sandbox"}</dd>
        </dl>
        {may("sandboxes:write") && places.length > 0 && <form class="filters" onSubmit={(e) => e.preventDefault()}>
          <label>Install into <select value={chosen} onChange={(e) => { into.value = e.currentTarget.value; }}>{places.map((s) => <option key={s.id} value={s.id}>{nameOf(s)}</option>)}</select></label>
          <Action failed={failed} do={async () => { await call("/sandboxes/" + chosen + "/skills", { method: "POST", body: { skill_ids: [k.id] } }); told.value = "It is installed."; }}>Install</Action>
          <span role="status" class="good">{told.value}</span>
        </form>}
        <Trouble error={failed.value} />
        {may("sandboxes:write") && <Send label="Replace it by another package" accept=".zip,.skill,.md" kind="application/octet-stream" method="PUT" path={() => "/skills/" + seg(k.id)} done={() => { told.value = "It is replaced. Sandboxes keep the one that they have."; void one.read(); }} />}
        <ul class="files">{k.files.map((f) => <li key={f.path}><code>{oneLine(f.path)}</code> <span class="faint">{bytes(f.size_bytes)}</span></li>)}</ul>
        <pre class="log" tabIndex={0} aria-label="SKILL.md">{shown(k.skill_md_content ?? "")}</pre>
      </>}
    </section>
  );
}

const example = "---\nname: \ndescription: \n---\n\n";

function Write(p: { open: Signal<boolean>; done: (k: Skill) => void }): JSX.Element {
  const text = useSignal(example), wrong = useSignal<unknown>(null), body = { skill_md_content: text.value };
  return (
    <Dialog title="Write a skill" open={p.open}>
      <form onSubmit={(e) => e.preventDefault()}>
        <Field label="SKILL.md" hint="Its name has lower-case letters, digits and hyphens; its description says what it does and when to use it.">{(id, hint) => <textarea id={id} aria-describedby={hint} rows={14} spellcheck={false} value={text.value} onInput={(e) => { text.value = e.currentTarget.value; }} />}</Field>
        <Same cli={"sandpit skill upload " + quote("SKILL.md")} rest="POST /v1/skills" body={body} none="what all agents of a project are told is a person's to decide" />
        <Trouble error={wrong.value} />
        <div class="buttons">
          <Action class="primary" failed={wrong} do={async () => { p.done(await call<Skill>("/skills", { method: "POST", body })); p.open.value = false; text.value = example; }}>Keep it</Action>
          <button type="button" onClick={() => { p.open.value = false; }}>Leave</button>
        </div>
      </form>
    </Dialog>
  );
}
