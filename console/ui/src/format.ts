// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// One way to write sizes, times and names.

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(n: number | null | undefined): string {
  if (n === null || n === undefined) return "–";
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  return (unit === 0 || n >= 100 ? n.toFixed(0) : n.toFixed(1)) + " " + units[unit];
}

export const megabytes = (n: number): string => bytes(n * 1024 * 1024);

// span is a time in its two greatest units.
export function span(seconds: number): string {
  const parts: [number, string][] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  for (let i = 0; i < parts.length; i++) {
    const [size, unit] = parts[i]!;
    if (seconds < size && i < parts.length - 1) continue;
    const first = Math.floor(seconds / size), next = parts[i + 1];
    const rest = next ? Math.floor((seconds % size) / next[0]) : 0;
    return first + " " + unit + (rest && next ? " " + rest + " " + next[1] : "");
  }
  return "0 s";
}

export function millis(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  return ms < 1000 ? Math.round(ms) + " ms" : ms < 60_000 ? (ms / 1000).toFixed(1) + " s" : span(ms / 1000);
}

export const exact = (at: string | Date): string => new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });

// ago is how long something is past, or ahead.
export function ago(at: string, now: number): string {
  const seconds = Math.round((now - Date.parse(at)) / 1000);
  if (Math.abs(seconds) < 2) return "now";
  return seconds > 0 ? span(seconds) + " ago" : "in " + span(-seconds);
}

// shown makes what could deceive visible: control characters, and those that change the direction of text.
export function shown(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g, (c) =>
    c < " " ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : "⟨" + c.charCodeAt(0).toString(16).padStart(4, "0") + "⟩");
}

// oneLine is shown for a place that has one line.
export const oneLine = (text: string): string => shown(text.replace(/\r?\n/g, " ⏎ ").replace(/\t/g, " "));

// browserOf is a short name of the browser, or the program, that calls itself so.
export function browserOf(agent: string): string {
  const named: [RegExp, string][] = [[/Edg\w*\/(\d+)/, "Edge"], [/OPR\/(\d+)/, "Opera"], [/Firefox\/(\d+)/, "Firefox"], [/Chrom\w*\/(\d+)/, "Chrome"], [/Version\/(\d+).*Safari/, "Safari"]];
  const systems: [RegExp, string][] = [[/Android/, "Android"], [/iPhone|iPad/, "iOS"], [/Windows/, "Windows"], [/Mac OS X/, "macOS"], [/CrOS/, "ChromeOS"], [/Linux/, "Linux"]];
  for (const [of, name] of named) {
    const found = of.exec(agent);
    if (!found) continue;
    const on = systems.find(([s]) => s.test(agent))?.[1];
    return name + " " + found[1] + (on ? " on " + on : "");
  }
  const first = agent.split(" ")[0]!;
  return first.length > 40 ? first.slice(0, 39) + "…" : first || "not told";
}
