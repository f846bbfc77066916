// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// How a text differs between two points in time, by lines.
import { call, seg } from "../api";
import { oneLine } from "../format";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { TextDiff } from "../wire";
import { Trouble } from "./parts";

const most = 400; // lines that are shown

const why: Record<string, string> = {
  same: "Its text is the same: what differs is its mode, owner or time.", binary: "It is no text.", too_large: "It has more than 2 MiB or 100,000 lines, and is not compared.", no_file: "It is a directory, a link or something else without a text.",
};

// Lines reads and shows it; points is the part of the address that names the two.
export function Lines(p: { sandbox: string; path: string; points: string }): JSX.Element {
  const diff = useSignal<TextDiff | null>(null), failed = useSignal<unknown>(null);
  useEffect(() => {
    let over = false;
    call<TextDiff>("/sandboxes/" + p.sandbox + "/diff/text?path=" + seg(p.path) + p.points).then((d) => { if (!over) diff.value = d; }, (e: unknown) => { if (!over) failed.value = e; });
    return () => { over = true; };
  }, [p.sandbox, p.path, p.points]);
  const d = diff.value, lines = (d?.hunks ?? []).flatMap((h) => ["@@ -" + h.from_line + "," + h.from_lines + " +" + h.to_line + "," + h.to_lines + " @@", ...h.lines]);
  if (!d) return failed.value ? <Trouble error={failed.value} /> : <p class="faint small">Reading…</p>;
  if (d.kind !== "text") return <p class="faint small">{why[d.kind] ?? d.kind}</p>;
  return (
    <>
      <p class="small">{d.added} {d.added === 1 ? "line" : "lines"} more, {d.removed} fewer</p>
      <div class="sides lines" tabIndex={0} role="group" aria-label={"Lines of " + oneLine(p.path)}>{lines.slice(0, most).map((l, i) => (l.startsWith("+") ? <ins key={i}>{oneLine(l)}</ins> : l.startsWith("-") ? <del key={i}>{oneLine(l)}</del> : <div key={i} class={/^[@\\]/.test(l) ? "faint" : ""}>{oneLine(l)}</div>))}</div>
      {(lines.length > most || d.truncated) && <p class="faint small">More differs than is shown here.</p>}
    </>
  );
}
