// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// How a program that speaks MCP is connected: its token, the line that installs it, and its first call.
import { call, may, who } from "../api";
import { ago, exact, oneLine, shown, span } from "../format";
import { Code } from "../parts/copy";
import { Action, Field, Link, now, Time, Trouble } from "../parts/parts";
import { quote, Same, useList } from "../parts/list";
import { go, query } from "../router";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { ClientSetup, ClientSetupList, CreatedToken, CreateToken, SeenClient, SeenClientList } from "../wire";

const lives: [number, string][] = [[86400, "a day"], [7 * 86400, "a week"], [30 * 86400, "30 days"], [90 * 86400, "90 days"]];
const rights: [string, string[]][] = [["use, make and delete sandboxes", ["sandboxes:read", "sandboxes:write"]], ["only look at sandboxes", ["sandboxes:read"]]];

// sets says what the tools of a profile are.
const sets: Record<string, string> = {
  sandpit: "this server's own tools",
  daytona: "the tools of Daytona's MCP server, for agents that know it",
  "mcp-sandboxd": "the tools of mcp-sandboxd, for agents that know it",
  orkestr: "the tools of orkestr's MCP server, for agents that know it",
};

// chosenLife is how long a token is good for, as it was chosen.
function chosenLife(t: CreatedToken): string {
  if (!t.expires_at) return "for ever";
  const seconds = (Date.parse(t.expires_at) - Date.parse(t.created_at)) / 1000;
  return lives.find(([n]) => Math.abs(n - seconds) < 60)?.[1] ?? span(seconds);
}

const called = (c: SeenClient): string => oneLine(c.title || c.name || "a client without a name") + (c.version ? " " + oneLine(c.version) : "");

// did is what a client did last, in words.
function did(c: SeenClient): string {
  if (c.last_method === "tools/call") return "called " + oneLine(c.last_tool);
  if (c.last_method === "tools/list") return "listed " + c.listed + " tools";
  if (c.last_method === "initialize" || c.last_method === "server/discover") return "connected";
  return "asked for " + oneLine(c.last_method);
}

export function Connect(): JSX.Element {
  const chosen = query.value.get("client") ?? "", written = useSignal(false);
  const list = useList<ClientSetupList>("/clients" + (written.value ? "?written=true" : ""), 60_000);
  const seen = useList<SeenClientList>("/clients/seen", 1000);
  const made = useSignal<CreatedToken | null>(null);
  useEffect(() => { document.title = "Connect · sandpit"; }, []);
  const setups = list.all.value, client = setups?.items.find((c) => c.id === chosen);
  return (
    <section>
      <div class="title"><h1>Connect a client</h1></div>
      <p>A program that speaks MCP, such as an agent or an editor, gets the tools of this server.</p>
      <Trouble error={list.failed.value} again={() => void list.read()} />
      <h2>1. Choose the client</h2>
      {setups && <div class="choose" role="group" aria-label="Clients">{setups.items.map((c) => (
        <button key={c.id} type="button" aria-pressed={c.id === chosen} onClick={() => { written.value = false; go("/connect?client=" + c.id, true); }}>{c.title}</button>
      ))}</div>}
      {setups && client && <>
        <h2>2. Make its token</h2>
        <NewToken key={client.id} client={client} profiles={setups.profiles} made={made.value} done={(t) => { made.value = t; }} />
        <h2>3. Tell the client</h2>
        <Install client={client} setups={setups} token={made.value?.token ?? null} written={written.value} write={(on) => { written.value = on; }} />
        <h2>4. Its first call</h2>
        <First made={made.value} seen={seen.all.value?.items ?? []} />
      </>}
      <h2>Who called since the server began</h2>
      <Trouble error={seen.failed.value} again={() => void seen.read()} />
      {seen.all.value?.items.length === 0 && <div class="empty"><p>Nobody yet{may("admin") ? "" : " by your token"}. By the command line:</p><Code text="sandpit mcp config claude-code --with-token --write" /></div>}
      {(seen.all.value?.items.length ?? 0) > 0 && <div class="scroll" tabIndex={0} role="region" aria-label="Clients that called"><table class="list">
        <thead><tr><th>Client</th><th>Token</th><th>Project</th><th>Tools</th><th>Last</th><th>Calls</th><th>Seen</th></tr></thead>
        <tbody>{seen.all.value!.items.map((c) => (
          <tr key={[c.project, c.token_id, c.sandbox_id, c.actor, c.name, c.version, c.profile].join(" ")}>
            <td><b>{called(c)}</b>{c.title && c.name && <span class="faint small"> {oneLine(c.name)}</span>}<div class="faint small">MCP {oneLine(c.protocol) || "?"} · {oneLine(c.profile)}</div></td>
            <td>{oneLine(c.actor)}</td><td>{oneLine(c.project)}</td><td>{c.listed_at ? c.listed : "–"}</td><td>{did(c)}</td><td>{c.calls}</td><td><Time at={c.last_seen_at} /></td>
          </tr>
        ))}</tbody>
      </table></div>}
    </section>
  );
}

function NewToken(p: { client: ClientSetup; profiles: string[]; made: CreatedToken | null; done: (t: CreatedToken | null) => void }): JSX.Element {
  const name = useSignal(p.client.id), right = useSignal(0), life = useSignal(30 * 86400), profile = useSignal(""), wrong = useSignal<unknown>(null);
  if (!may("admin")) return <p>The token that you are signed in by, {oneLine(who.value?.name ?? "")}, makes no others. Give the client one that an administrator made for it, or your own.</p>;
  if (p.made) return (
    <>
      <p><b>{oneLine(p.made.name)}</b> may {p.made.scopes.map(oneLine).join(" and ")}, and is good for {chosenLife(p.made)}{p.made.expires_at && <>, until <time dateTime={p.made.expires_at}>{exact(p.made.expires_at)}</time></>}. This is shown once, until you leave this page:</p>
      <Code label="The token" text={p.made.token} />
      <div class="buttons"><button type="button" onClick={() => p.done(null)}>Make another</button> <Link to="/access">All tokens</Link></div>
    </>
  );
  const body: CreateToken = { name: name.value.trim(), scopes: rights[right.value]![1], expires_in_seconds: life.value, ...(profile.value ? { mcp_profile: profile.value } : {}) };
  return (
    <form onSubmit={(e) => e.preventDefault()}>
      <div class="columns">
        <Field label="Name" hint="Events and the audit log say it.">{(id, hint) => <input id={id} aria-describedby={hint} value={name.value} onInput={(e) => { name.value = e.currentTarget.value; }} />}</Field>
        <Field label="It may">{(id) => <select id={id} value={right.value} onChange={(e) => { right.value = Number(e.currentTarget.value); }}>{rights.map(([says], i) => <option key={says} value={i}>{says}</option>)}</select>}</Field>
        <Field label="It is good for">{(id) => <select id={id} value={life.value} onChange={(e) => { life.value = Number(e.currentTarget.value); }}>{lives.map(([n, says]) => <option key={n} value={n}>{says}</option>)}</select>}</Field>
        <Field label="Tools" hint="Another server's, only for an agent that knows that server.">{(id, hint) => <select id={id} aria-describedby={hint} value={profile.value} onChange={(e) => { profile.value = e.currentTarget.value; }}><option value="">as the server is set</option>{p.profiles.map((one) => <option key={one} value={one}>{one}</option>)}</select>}</Field>
      </div>
      <ul class="faint small plainlist">{p.profiles.map((one) => <li key={one}><b>{one}</b>: {sets[one] ?? "the tools of another server, for agents that know it"}</li>)}</ul>
      <Same cli={"sandpit token create --name " + quote(body.name) + body.scopes!.map((s) => " --scope " + s).join("") + " --ttl " + life.value / 86400 + "d" + (profile.value ? " --mcp-profile " + profile.value : "")}
        rest="POST /v1/tokens" body={body} none="a token is a secret, and would stand in a model's context" />
      <Trouble error={wrong.value} />
      <div class="buttons"><Action class="primary" failed={wrong} do={async () => { p.done(await call<CreatedToken>("/tokens", { method: "POST", body })); }}>Make the token</Action></div>
    </form>
  );
}

function Install(p: { client: ClientSetup; setups: ClientSetupList; token: string | null; written: boolean; write: (on: boolean) => void }): JSX.Element {
  const c = p.client, token = p.token ?? p.setups.placeholder;
  const snippet = c.snippet.replaceAll(p.setups.placeholder, token);
  // Links of other schemes are none that a client has.
  const link = /^(cursor:\/\/|vscode:)/.test(c.link) ? c.link : "";
  return (
    <>
      {(c.token === "variable" || c.token === "found" || p.written) && <p><label><input type="checkbox" checked={p.written} onChange={(e) => p.write(e.currentTarget.checked)} /> Have the token itself in the file, in place of {c.token === "found" ? "the one that it finds by itself" : p.setups.token_variable}</label></p>}
      {c.token === "variable" && <><p>Where the client is started, its environment has the token:</p><Code text={"export " + p.setups.token_variable + "=" + token} /></>}
      {c.token === "found" && !p.written && <p>What it starts finds a server on the same machine, and that server's own token, which may do everything. Tick the box for it to use the one that you made.</p>}
      {c.command && <><p>This line adds the server:</p><Code text={c.command} /></>}
      {link && <p><a class="add" href={link}>Add to {c.title}</a>{c.token === "asked" ? ", and give it the token when it asks" : ""}</p>}
      <p>{c.command || link ? "Or " : ""}{c.language}{c.file ? <>, in <code>{c.file}</code></> : ""}:</p>
      <Code label={"What the file of " + c.title + " has"} text={shown(snippet)} />
      {c.note && <p class="faint">{c.note}</p>}
    </>
  );
}

function First(p: { made: CreatedToken | null; seen: SeenClient[] }): JSX.Element {
  const since = useSignal(Date.now());
  useEffect(() => { since.value = Date.now(); }, [p.made?.id]);
  // Of a token that was made here any call is of the client; of another the first one from now on.
  const one = p.seen.find((c) => (p.made ? c.token_id === p.made.id : Date.parse(c.last_seen_at) >= since.value));
  return (
    <div class="first" role="status">
      {one ? <p class="good"><b>{called(one)}</b> {did(one)} {ago(one.last_seen_at, now.value)}{one.listed_at && one.last_method !== "tools/list" ? ", of " + one.listed + " tools" : ""}.</p>
        : <p>Waiting for {p.made ? "the first call by " + oneLine(p.made.name) : "a call"}. Start the client, or have it read its settings again.</p>}
    </div>
  );
}
