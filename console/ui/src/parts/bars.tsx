// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Bars of an hour, one for each minute. Minutes that the server knows nothing of are drawn as such.
import { useId } from "../vendor/core";
import type { JSX } from "../vendor/core";

const minutes = 60, minute = 60_000;

export interface Bar { at: number; value: number | null } // at: the minute's beginning, in ms

// hourOf returns a place for each of the last 60 minutes: null before since, and where nothing is told and missing is null.
export function hourOf(bars: Bar[], until: number, since: number, missing: number | null): Bar[] {
  const last = Math.floor(until / minute) * minute;
  const by = new Map(bars.map((b) => [Math.floor(b.at / minute) * minute, b.value]));
  return Array.from({ length: minutes }, (_, i) => {
    const at = last - (minutes - 1 - i) * minute;
    return { at, value: by.get(at) ?? (at + minute > since ? missing : null) };
  });
}

// Bars draws them, up to most where that is given, else up to the highest.
export function Bars(p: { name: string; of: Bar[]; say: (value: number) => string; most?: number; bad?: boolean }): JSX.Element {
  const id = useId();
  const known = p.of.filter((b) => b.value !== null);
  const high = known.reduce((a, b) => Math.max(a, b.value!), 0), most = p.most ?? high;
  const says = known.length === 0 ? "nothing is known yet" : high === 0 ? "none" : "at most " + p.say(high) + (p.most === undefined ? " in a minute" : "");
  return (
    <figure class="bars">
      <svg viewBox="0 0 240 40" preserveAspectRatio="none" role="img" aria-labelledby={id}>
        {p.of.map((b, i) => b.value === null
          ? <rect key={b.at} class="unknown" x={i * 4} y={39} width={3} height={1} />
          : <rect key={b.at} class={p.bad ? "bad" : ""} x={i * 4} y={b.value > 0 && most > 0 ? 40 - Math.max(1.5, Math.min(1, b.value / most) * 40) : 39.5} width={3} height={b.value > 0 && most > 0 ? Math.max(1.5, Math.min(1, b.value / most) * 40) : 0.5}>
              {b.value > 0 && <title>{new Date(b.at).toLocaleTimeString(undefined, { timeStyle: "short" }) + ": " + p.say(b.value)}</title>}
            </rect>)}
      </svg>
      <figcaption id={id} class="faint small">{p.name}, by the minute: {says}</figcaption>
    </figure>
  );
}
