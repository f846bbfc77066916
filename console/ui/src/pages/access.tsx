// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Who may use the server: tokens, which are shown once, and who is signed in.
import { call, may, seg, who } from "../api";
import { browserOf, oneLine } from "../format";
import { Code } from "../parts/copy";
import { Lose } from "../parts/list";
import { Action, Dialog, Field, Time, Trouble } from "../parts/parts";
import { Projects } from "./projects";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { CreatedToken, Session, SessionList, Token, TokenList } from "../wire";

const scopes: [string, string][] = [["sandboxes:read", "look at sandboxes"], ["sandboxes:write", "use, make and delete sandboxes"], ["admin", "manage the project and its tokens"]];
const lives: [number, string][] = [[86400, "a day"], [30 * 86400, "30 days"], [365 * 86400, "a year"], [0, "for ever"]];

// profiles are the sets of tools that the server has.
const profiles: [string, string][] = [["", "the server's own choice"], ["sandpit", "sandpit"], ["daytona", "daytona"], ["orkestr", "orkestr"], ["mcp-sandboxd", "mcp-sandboxd"]];

export function Access(): JSX.Element {
  const tokens = useSignal<Token[] | null>(null), sessions = useSignal<Session[]>([]), failed = useSignal<unknown>(null), making = useSignal(false), made = useSignal<CreatedToken | null>(null), gone = useSignal<Token | null>(null);
  const name = useSignal(""), chosen = useSignal<string[]>(["sandboxes:read", "sandboxes:write"]), life = useSignal(30 * 86400), profile = useSignal(""), project = useSignal(""), wrong = useSignal<unknown>(null);
  const admin = may("admin");
  const read = async (): Promise<void> => {
    try {
      sessions.value = (await call<SessionList>("/sessions")).items;
      if (admin) tokens.value = (await call<TokenList>("/tokens")).items;
      failed.value = null;
    } catch (e) {
      failed.value = e;
    }
  };
  useEffect(() => { document.title = "Access · sandpit"; void read(); }, []);
  const own = who.value?.token_id;
  return (
    <section>
      <div class="title"><h1>Access</h1>{admin && <button type="button" class="primary" onClick={() => { made.value = null; making.value = true; }}>Make a token</button>}</div>
      <Trouble error={failed.value} again={() => void read()} />
      <h2>Tokens</h2>
      {!admin && <p class="faint">The token that you are signed in by may not see the others. It is {oneLine(who.value?.name ?? "")}.</p>}
      {tokens.value?.length === 0 && <p class="empty">There are none, beside the server's own.</p>}
      {tokens.value !== null && tokens.value.length > 0 && <table class="list">
        <thead><tr><th>Name</th><th>Project</th><th>May</th><th>Tools</th><th>Last used</th><th>Ends</th><th><span class="hidden">Actions</span></th></tr></thead>
        <tbody>{tokens.value.map((t) => (
          <tr key={t.id}>
            <td>{oneLine(t.name)}{t.id === own && <span class="good small"> yours</span>}</td><td>{t.project}</td><td>{t.scopes.join(", ")}</td><td>{t.mcp_profile ?? <span class="faint">the server's</span>}</td><td><Time at={t.last_used_at} /></td><td><Time at={t.expires_at} /></td>
            <td><button type="button" class="danger" aria-label={"Revoke " + oneLine(t.name)} onClick={() => { gone.value = t; }}>Revoke…</button></td>
          </tr>
        ))}</tbody>
      </table>}
      <Projects />
      <h2>Signed in</h2>
      <table class="list">
        <thead><tr><th>By the token</th><th>From</th><th>Browser</th><th>Since</th><th>Last used</th><th>Ends</th><th><span class="hidden">Actions</span></th></tr></thead>
        <tbody>{sessions.value.map((s) => (
          <tr key={s.id}>
            <td>{oneLine(s.actor)}{s.current && <span class="good small"> this one</span>}</td><td>{s.address}</td><td title={oneLine(s.agent)}>{oneLine(browserOf(s.agent))}</td><td><Time at={s.created_at} /></td><td><Time at={s.last_used_at} /></td><td><Time at={s.expires_at} /></td>
            <td>{!s.current && <Action failed={failed} class="danger" label={"Sign out " + oneLine(s.actor)} do={async () => { await call("/sessions/" + s.id, { method: "DELETE" }); await read(); }}>Sign out</Action>}</td>
          </tr>
        ))}</tbody>
      </table>
      <Lose of={gone} failed={failed} title={(t) => "Revoke " + oneLine(t.name)} verb="Revoke it" do={async (t) => { await call("/tokens/" + seg(t.id), { method: "DELETE" }); await read(); }}>{(t) => {
        const open = sessions.value.filter((s) => s.token_id === t.id).length;
        return (
          <>
            <p>Every program that has it is refused from now on{open > 0 && ", and " + (open === 1 ? "a browser is" : open + " browsers are") + " signed out"}. Sandboxes go on. It cannot be made good again.</p>
            {t.id === own && <p><b>It is the one that you are signed in by: you are signed out, too.</b></p>}
            <p>Used last: <Time at={t.last_used_at} />.</p>
          </>
        );
      }}</Lose>
      <Dialog title={made.value ? "The token" : "Make a token"} open={making}>
        {made.value ? <>
          <p>This is shown once. Keep it where its user finds it:</p>
          <Code label="The token" text={made.value.token} />
          <div class="buttons"><button type="button" onClick={() => { made.value = null; making.value = false; }}>I have copied it</button></div>
        </> : <form onSubmit={(e) => e.preventDefault()}>
          <Field label="Name" hint="Events and the audit log say it.">{(id, hint) => <input id={id} aria-describedby={hint} value={name.value} onInput={(e) => { name.value = e.currentTarget.value; }} />}</Field>
          <fieldset><legend>It may</legend>{scopes.map(([scope, says]) => <p key={scope}><label><input type="checkbox" checked={chosen.value.includes(scope)} onChange={(e) => { chosen.value = e.currentTarget.checked ? [...chosen.value, scope] : chosen.value.filter((x) => x !== scope); }} /> {says} <span class="faint small">{scope}</span></label></p>)}</fieldset>
          <Field label="It is good for">{(id) => <select id={id} value={life.value} onChange={(e) => { life.value = Number(e.currentTarget.value); }}>{lives.map(([n, says]) => <option key={n} value={n}>{says}</option>)}</select>}</Field>
          <Field label="Tools by MCP" hint="The set of tools that a client gets at /mcp with it.">{(id, hint) => <select id={id} aria-describedby={hint} value={profile.value} onChange={(e) => { profile.value = e.currentTarget.value; }}>{profiles.map(([value, says]) => <option key={value} value={value}>{says}</option>)}</select>}</Field>
          {may("server:admin") && <Field label="Project" hint="One that there is not is made. Empty: yours.">{(id, hint) => <input id={id} aria-describedby={hint} value={project.value} onInput={(e) => { project.value = e.currentTarget.value; }} />}</Field>}
          <Trouble error={wrong.value} />
          <div class="buttons">
            <Action class="primary" failed={wrong} do={async () => {
              made.value = await call<CreatedToken>("/tokens", { method: "POST", body: { name: name.value, scopes: chosen.value, ...(life.value ? { expires_in_seconds: life.value } : {}), ...(profile.value ? { mcp_profile: profile.value } : {}), ...(project.value.trim() ? { project: project.value.trim() } : {}) } });
              name.value = "";
              await read();
            }}>Make it</Action>
            <button type="button" onClick={() => { making.value = false; }}>Leave</button>
          </div>
        </form>}
      </Dialog>
    </section>
  );
}
