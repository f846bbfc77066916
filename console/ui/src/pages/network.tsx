// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// What a sandbox may reach, what it tried, and what was refused with the reason.
import { call, may } from "../api";
import { oneLine } from "../format";
import { put } from "../live";
import { Action, Dialog, Time, Trouble } from "../parts/parts";
import { useEvery } from "../parts/again";
import { query } from "../router";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { NetworkEntry, NetworkLog, NetworkPolicy, NetworkRequest, NetworkRequestList, Sandbox } from "../wire";

// asked is a policy as a request has it: what the server only tells of is left out.
function asked(p: NetworkPolicy): NetworkPolicy {
  const { preset_domains: _, ...rest } = p;
  return rest;
}

// What the modes let through, in words.
const modes: [string, string, string][] = [["off", "Off", "nothing can be reached"], ["restricted", "Restricted", "only what is named can be reached"], ["open", "Open", "the public internet can be reached, as far as the server allows"]];

// within is the policy in another mode, which keeps what has a meaning there.
function within(p: NetworkPolicy, mode: string): NetworkPolicy {
  if (mode === p.mode) return asked(p);
  const next: NetworkPolicy = { mode };
  if (mode !== "off" && p.allow_ports) next.allow_ports = p.allow_ports;
  if (mode !== "off" && p.headers) next.headers = p.headers;
  return next;
}

// allowing is the policy with one more name, address or port of what was refused.
function allowing(p: NetworkPolicy, e: { name?: string; address?: string; port?: number; reason?: string }): NetworkPolicy {
  const next = within(p, p.mode === "off" ? "restricted" : p.mode), add = (to: string[] | undefined, one: string): string[] => [...new Set([...(to ?? []), one])];
  if (e.reason === "port" && e.port) next.allow_ports = add(next.allow_ports, String(e.port));
  else if (e.name && next.mode === "open") {
    next.deny_domains = (next.deny_domains ?? []).filter((d) => d !== e.name);
    if (among(next.deny_domains, e.name)) next.allow_domains = add(next.allow_domains, e.name);
  } else if (e.name) next.allow_domains = add(next.allow_domains, e.name);
  else if (e.address && next.mode === "open") next.deny_cidrs = (next.deny_cidrs ?? []).filter((d) => d !== e.address);
  else if (e.address) next.allow_cidrs = add(next.allow_cidrs, e.address);
  return next;
}

const among = (list: string[] | undefined, name: string): boolean => (list ?? []).some((d) => d === name || (d.startsWith("*.") && name.endsWith(d.slice(1))));

// since reports whether the policy, as it is now, lets through what was refused.
function since(p: NetworkPolicy, e: NetworkEntry): boolean {
  if (e.allowed || p.mode === "off") return false;
  if (e.reason === "port") return !p.allow_ports || p.allow_ports.includes(String(e.port));
  if (e.reason !== "domain" && e.reason !== "address" && e.reason !== "denied") return false;
  if (e.name) return p.learn === true || among(p.allow_domains, e.name) || (p.mode === "open" && !among(p.deny_domains, e.name));
  return p.learn === true || (p.mode === "open" ? !p.deny_cidrs?.length : (p.allow_cidrs ?? []).includes(e.address ?? ""));
}

// why is a refusal in words.
function why(e: NetworkEntry): string {
  if (e.reason === "domain" || e.reason === "address") return "it is not among what may be reached";
  if (e.reason === "port") return "its port is not among what may be reached";
  if (e.reason === "denied") return "the policy denies it";
  return e.detail ?? e.reason ?? "";
}

// host is what somebody wrote as a name or address; null: it is neither.
function host(text: string): { name?: string; address?: string } | null {
  const bare = text.trim().toLowerCase().replace(/^[a-z]+:\/\//, "").replace(/\.$/, "");
  if (/^[0-9.]+(\/[0-9]+)?$/.test(bare) || /^[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*(\/[0-9]+)?$/.test(bare)) return { address: bare };
  const name = bare.replace(/[\/?#].*$/, "").replace(/:[0-9]+$/, "");
  return /^(\*\.)?[^\s.]+(\.[^\s.]+)*$/.test(name) ? { name } : null;
}

// Listed is a part of a policy in words, where it has one.
function Listed(p: { says: string; of: string[] | undefined }): JSX.Element | null {
  return p.of?.length ? <><dt>{p.says}</dt><dd>{p.of.map((d, i) => <>{i > 0 && ", "}<code key={d}>{oneLine(d)}</code></>)}</dd></> : null;
}

// lines are those of a policy, without the commas that only say that more follows.
const lines = (p: NetworkPolicy): string[] => JSON.stringify(asked(p), null, 2).split("\n").map((l) => l.replace(/,$/, ""));

export function Network(p: { of: Sandbox }): JSX.Element {
  const s = p.of, log = useSignal<NetworkLog | null>(null), requests = useSignal<NetworkRequest[]>([]), failed = useSignal<unknown>(null);
  const next = useSignal<NetworkPolicy | null>(null), opened = useSignal(false), only = useSignal(false), words = useSignal(query.value.get("host") ?? ""), unclear = useSignal(false), refusal = useSignal<unknown>(null);
  const asks = query.value.get("host");
  useEffect(() => { if (asks !== null) words.value = asks; }, [asks]);
  const read = async (): Promise<void> => {
    try {
      log.value = await call<NetworkLog>("/sandboxes/" + s.id + "/network");
      requests.value = (await call<NetworkRequestList>("/network/requests?sandbox=" + s.id)).items.filter((r) => r.state === "pending");
      failed.value = null;
    } catch (e) {
      failed.value = e;
    }
  };
  useEvery(2000, read, [s.id]);
  const l = log.value, write = may("sandboxes:write");
  const propose = (policy: NetworkPolicy): void => { next.value = policy; refusal.value = null; opened.value = true; };
  const rows = (l?.items ?? []).filter((e) => !only.value || !e.allowed), open = l?.policy.mode === "open" && !l.policy.deny_domains?.length && !l.policy.deny_cidrs?.length;
  const before = l ? lines(l.policy) : [], after = next.value ? lines(next.value) : [];
  return (
    <section aria-label="Network">
      <Trouble error={failed.value} again={() => void read()} />
      {requests.value.map((r) => <div key={r.id} class="trouble" role="group" aria-label="A request">
        <p><b>{oneLine(r.actor)}</b> asks to reach {[...r.allow_domains, ...r.allow_presets].map(oneLine).join(", ")}{r.reason && <>: “{oneLine(r.reason)}”</>}</p>
        {may("admin") && <div class="buttons">
          <Action failed={failed} class="primary" do={async () => { await call("/network/requests/" + r.id + "/grant", { method: "POST" }); await read(); }}>Allow it</Action>
          <Action failed={failed} do={async () => { await call("/network/requests/" + r.id + "/deny", { method: "POST" }); await read(); }}>Refuse it</Action>
        </div>}
      </div>)}
      {l && <div class="columns">
        <section aria-label="Policy">
          <h2>Policy</h2>
          <p>Mode <b>{l.policy.mode}</b>: {modes.find(([m]) => m === l.policy.mode)?.[2]}{open || l.policy.mode !== "open" ? "" : ", but for what is denied"}.</p>
          {l.policy.mode === "off" && <p>In mode off programs find no network at all, so that no try is seen.{write && " To open it, allow a host or choose another mode here."}</p>}
          {l.policy.learn && <p><b>It learns:</b> until you end it, everything gets through, and is noted.</p>}
          <dl>
            <Listed says="Names" of={l.policy.allow_domains} /><Listed says="Addresses" of={l.policy.allow_cidrs} /><Listed says="Only ports" of={l.policy.allow_ports} />
            <Listed says="Sets of names" of={l.policy.allow_presets} /><Listed says="Not these names" of={l.policy.deny_domains} /><Listed says="Not these addresses" of={l.policy.deny_cidrs} />
            <Listed says="Headers set for" of={l.policy.headers && Object.keys(l.policy.headers)} />
          </dl>
          {l.policy.mode === "restricted" && !l.policy.learn && !l.policy.allow_domains?.length && !l.policy.allow_cidrs?.length && <p>Nothing is named yet, so that nothing can be reached.</p>}
          <details><summary>The policy as JSON</summary><pre>{JSON.stringify(asked(l.policy), null, 2)}</pre></details>
        </section>
        {write && <section aria-label="Change">
          <h2>Change</h2>
          {!open && <form class="filters" onSubmit={(e) => {
            e.preventDefault();
            const one = host(words.value);
            unclear.value = one === null;
            if (one) propose(allowing(l.policy, one));
          }}>
            <label>Name or address <input value={words.value} placeholder="example.org" autocomplete="off" spellcheck={false} onInput={(e) => { words.value = e.currentTarget.value; }} /></label>
            <button type="submit">Allow a host…</button>
          </form>}
          {unclear.value && <p class="trouble" role="alert">That is neither a name, such as example.org or *.example.org, nor an address, such as 192.0.2.1 or 192.0.2.0/24.</p>}
          <p>Mode: <span class="buttons">{modes.map(([mode, name, says]) => <button key={mode} type="button" title={says} aria-pressed={mode === l.policy.mode} disabled={mode === l.policy.mode} onClick={() => propose(within(l.policy, mode))}>{mode === l.policy.mode ? name : name + "…"}</button>)}</span></p>
          {l.policy.mode === "restricted" && !l.policy.learn && <p><button type="button" onClick={() => propose({ ...asked(l.policy), learn: true })}>Learn what it needs…</button> <span class="faint small">Until you end it, everything gets through, and is noted.</span></p>}
          {l.policy.learn && <p><button type="button" onClick={() => propose({ ...asked(l.proposal), learn: false })}>Allow what was learned, and no more…</button></p>}
          <p class="faint small">Each shows the exact change before it is made.</p>
        </section>}
      </div>}
      <h2>What was tried</h2>
      <label><input type="checkbox" checked={only.value} onChange={(e) => { only.value = e.currentTarget.checked; }} /> only what was refused</label>
      {l && rows.length === 0 && l.policy.mode !== "off" && <p class="empty">Nothing was {only.value ? "refused" : "tried"}{l.since ? " since " : ""}{l.since && <Time at={l.since} />}.</p>}
      {rows.length > 0 && <table class="list">
        <thead><tr><th>Name or address</th><th>Outcome</th><th>Times</th><th>Last</th><th><span class="hidden">Actions</span></th></tr></thead>
        <tbody>{rows.map((e) => (
          <tr key={[e.protocol, e.name, e.address, e.port, e.allowed, e.reason].join(" ")}>
            <td><code>{oneLine(e.name ?? e.address ?? "")}{e.port ? ":" + e.port : ""}</code> <span class="faint small">{e.protocol}{e.name && e.address ? " · " + e.address : ""}</span></td>
            <td>{e.allowed ? <span class="good">reached{e.learned ? ", learned" : ""}</span> : since(l!.policy, e) ? <span class="good">allowed since</span> : <><span class="bad">refused</span><div class="small">{oneLine(why(e))}</div></>}</td>
            <td>{e.count}</td><td><Time at={e.last_at} /></td>
            <td>{!e.allowed && write && (e.name || e.address) && ["domain", "address", "port", "denied"].includes(e.reason ?? "") && !since(l!.policy, e) && <button type="button" aria-label={"Allow " + oneLine(e.name ?? e.address!)} onClick={() => propose(allowing(l!.policy, e))}>Allow…</button>}</td>
          </tr>
        ))}</tbody>
      </table>}
      {l && l.dropped > 0 && <p class="faint">{l.dropped} older ones were forgotten.</p>}
      <Dialog title="Change what it may reach" open={opened}>
        {after.includes('  "learn": true') && !before.includes('  "learn": true') && <p><b>Until you end it, everything gets through, and is noted.</b></p>}
        <p>The policy changes by this, at once and for what runs too:</p>
        <pre class="diff">{after.map((line, i) => <span key={i} class={before.includes(line) ? "" : "change created"}>{(before.includes(line) ? "  " : "+ ") + line + "\n"}</span>)}{before.filter((line) => !after.includes(line)).map((line, i) => <span key={"b" + i} class="change deleted">{"- " + line + "\n"}</span>)}</pre>
        <Trouble error={refusal.value} />
        <div class="buttons">
          <Action class="primary" failed={refusal} do={async () => { put(await call<Sandbox>("/sandboxes/" + s.id, { method: "PATCH", body: { network: next.value } })); opened.value = false; words.value = ""; await read(); }}>Make the change</Action>
          <button type="button" onClick={() => { opened.value = false; }}>Leave it</button>
        </div>
      </Dialog>
    </section>
  );
}
