// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// What a sandbox may reach, what it tried, and what was refused with the reason.
import { call, may } from "../api";
import { oneLine } from "../format";
import { put } from "../live";
import { Action, Dialog, Time, Trouble } from "../parts/parts";
import { useEvery } from "../parts/again";
import { useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { NetworkEntry, NetworkLog, NetworkPolicy, NetworkRequest, NetworkRequestList, Sandbox } from "../wire";

// asked is a policy as a request has it: what the server only tells of is left out.
function asked(p: NetworkPolicy): NetworkPolicy {
  const { preset_domains: _, ...rest } = p;
  return rest;
}

// allowing is the policy with one more name or address.
function allowing(p: NetworkPolicy, e: NetworkEntry): NetworkPolicy {
  const next = asked(p);
  if (next.mode === "off") next.mode = "restricted";
  if (e.name) {
    if (next.mode === "open") next.deny_domains = (next.deny_domains ?? []).filter((d) => d !== e.name);
    else next.allow_domains = [...new Set([...(next.allow_domains ?? []), e.name])];
  } else if (e.address) next.allow_cidrs = [...new Set([...(next.allow_cidrs ?? []), e.address])];
  return next;
}

// lines are those of a policy, without the commas that only say that more follows.
const lines = (p: NetworkPolicy): string[] => JSON.stringify(asked(p), null, 2).split("\n").map((l) => l.replace(/,$/, ""));

export function Network(p: { of: Sandbox }): JSX.Element {
  const s = p.of, log = useSignal<NetworkLog | null>(null), requests = useSignal<NetworkRequest[]>([]), failed = useSignal<unknown>(null);
  const next = useSignal<NetworkPolicy | null>(null), opened = useSignal(false), only = useSignal(false);
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
  const propose = (policy: NetworkPolicy): void => { next.value = policy; opened.value = true; };
  const rows = (l?.items ?? []).filter((e) => !only.value || !e.allowed);
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
          <p>Mode <b>{l.policy.mode}</b>{l.policy.mode === "off" ? ": nothing can be reached" : l.policy.mode === "open" ? ": the public internet can be reached" : ": what is named can be reached"}.</p>
          <pre>{JSON.stringify(asked(l.policy), null, 2)}</pre>
          {write && l.policy.mode === "restricted" && !l.policy.learn && <button type="button" onClick={() => propose({ ...asked(l.policy), learn: true })}>Learn what it needs…</button>}
          {write && l.policy.learn && <><p class="faint">It learns: what is tried is let through and noted.</p><button type="button" onClick={() => propose({ ...asked(l.proposal), learn: false })}>Allow what was learned, and no more…</button></>}
        </section>
      </div>}
      <h2>What was tried</h2>
      <label><input type="checkbox" checked={only.value} onChange={(e) => { only.value = e.currentTarget.checked; }} /> only what was refused</label>
      {l && rows.length === 0 && <p class="empty">Nothing was {only.value ? "refused" : "tried"}{l.since ? " since " : ""}{l.since && <Time at={l.since} />}.</p>}
      {rows.length > 0 && <table class="list">
        <thead><tr><th>Name or address</th><th>Outcome</th><th>Times</th><th>Last</th><th><span class="hidden">Actions</span></th></tr></thead>
        <tbody>{rows.map((e) => (
          <tr key={[e.protocol, e.name, e.address, e.port, e.allowed, e.reason].join(" ")}>
            <td><code>{oneLine(e.name ?? e.address ?? "")}{e.port ? ":" + e.port : ""}</code> <span class="faint small">{e.protocol}{e.name && e.address ? " · " + e.address : ""}</span></td>
            <td>{e.allowed ? <span class="good">reached{e.learned ? ", learned" : ""}</span> : <span class="bad">refused</span>}{e.reason && <div class="small">{oneLine(e.reason)}{e.detail ? ": " + oneLine(e.detail) : ""}</div>}</td>
            <td>{e.count}</td><td><Time at={e.last_at} /></td>
            <td>{!e.allowed && write && (e.name || e.address) && <button type="button" aria-label={"Allow " + oneLine(e.name ?? e.address!)} onClick={() => propose(allowing(l!.policy, e))}>Allow…</button>}</td>
          </tr>
        ))}</tbody>
      </table>}
      {l && l.dropped > 0 && <p class="faint">{l.dropped} older ones were forgotten.</p>}
      <Dialog title="Change what it may reach" open={opened}>
        <p>The policy changes by this, at once and for what runs too:</p>
        <pre class="diff">{after.map((line, i) => <span key={i} class={before.includes(line) ? "" : "change created"}>{(before.includes(line) ? "  " : "+ ") + line + "\n"}</span>)}{before.filter((line) => !after.includes(line)).map((line, i) => <span key={"b" + i} class="change deleted">{"- " + line + "\n"}</span>)}</pre>
        <div class="buttons">
          <Action class="primary" failed={failed} do={async () => { put(await call<Sandbox>("/sandboxes/" + s.id, { method: "PATCH", body: { network: next.value } })); opened.value = false; await read(); }}>Make the change</Action>
          <button type="button" onClick={() => { opened.value = false; }}>Leave it</button>
        </div>
      </Dialog>
    </section>
  );
}
