// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// What uses most in a sandbox now, as its host tells of it: nothing inside is asked, and looking is no use of it.
import { call, Failure } from "../api";
import { bytes, millis, oneLine } from "../format";
import { Trouble } from "./parts";
import { useEvery } from "./again";
import { useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { Sandbox, SandboxStats, StatsProcesses } from "../wire";

export function Top(p: { of: Sandbox }): JSX.Element | null {
  const now = useSignal<StatsProcesses | null>(null), failed = useSignal<unknown>(null), never = useSignal(false);
  const up = p.of.status === "running" || p.of.status === "paused";
  useEvery(3000, async () => {
    if (!up || never.value) return;
    try {
      now.value = (await call<SandboxStats>("/sandboxes/" + p.of.id + "/stats?processes=20")).processes ?? null;
      failed.value = null;
    } catch (e) {
      if (e instanceof Failure && e.status === 501) never.value = true; // this runtime tells of none
      else failed.value = e;
    }
  }, [p.of.id, up]);
  const all = now.value;
  if (!up || never.value || !all && !failed.value) return null;
  return (
    <section aria-label="What uses most now">
      <h2>What uses most now</h2>
      <Trouble error={failed.value} />
      {all && <table class="list">
        <thead><tr><th>Program</th><th>Process</th><th>State</th><th>Processors</th><th>Memory</th><th>Since</th></tr></thead>
        <tbody>{all.items.map((one) => (
          <tr key={one.pid}>
            <td><code>{oneLine(one.name)}</code></td><td>{one.pid}</td><td>{one.state}</td><td>{one.cpus.toFixed(2)}</td><td>{bytes(one.memory_bytes)}</td><td>{millis(1000 * one.age_seconds)}</td>
          </tr>
        ))}</tbody>
      </table>}
      {all && all.total > all.items.length && <p class="faint small">{all.total - all.items.length} more use less.</p>}
    </section>
  );
}
