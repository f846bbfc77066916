// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// How two texts differ, by lines.

// Row is a line of one text or of both, or a number of lines that both have and that are left out.
export interface Row { left: string | null; right: string | null; skipped: number }

const around = 3; // lines of both that are shown beside a difference

// mostEdits bounds the work: of texts that differ by more, all that lies between their common ends is one difference.
const mostEdits = 1000;

// rowsOf compares two texts, and returns at most so many rows and how many more there are.
export function rowsOf(left: string, right: string, most: number): { rows: Row[]; more: number } {
  const a = left.split("\n"), b = right.split("\n");
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const pairs: [number, number][] = []; // places in a and b of lines of both
  for (let i = 0; i < head; i++) pairs.push([i, i]);
  pairs.push(...common(a.slice(head, a.length - tail), b.slice(head, b.length - tail)).map(([x, y]): [number, number] => [x + head, y + head]));
  for (let i = tail; i > 0; i--) pairs.push([a.length - i, b.length - i]);
  pairs.push([a.length, b.length]);
  const all: Row[] = [];
  let x = 0, y = 0;
  for (const [i, j] of pairs) {
    // What was taken away and what came in its place stand beside each other.
    while (x < i || y < j) all.push({ left: x < i ? a[x++]! : null, right: y < j ? b[y++]! : null, skipped: 0 });
    if (i < a.length) all.push({ left: a[x++]!, right: b[y++]!, skipped: -1 });
  }
  const rows: Row[] = [];
  for (let i = 0; i < all.length; ) {
    let end = i;
    while (end < all.length && all[end]!.skipped === -1) end++;
    const same = end - i, first = i === 0 ? 0 : around, last = end === all.length ? 0 : around;
    if (same > first + last + 1) {
      rows.push(...all.slice(i, i + first), { left: null, right: null, skipped: same - first - last }, ...all.slice(end - last, end));
    } else rows.push(...all.slice(i, end));
    while (end < all.length && all[end]!.skipped !== -1) rows.push(all[end++]!);
    i = end;
  }
  return { rows: rows.slice(0, most), more: Math.max(0, rows.length - most) };
}

// same reports whether a row is a line of both.
export const same = (r: Row): boolean => r.skipped === -1;

// common returns the places of the lines of a longest common sequence (Myers, An O(ND) Difference Algorithm).
function common(a: string[], b: string[]): [number, number][] {
  const n = a.length, m = b.length, most = Math.min(n + m, mostEdits), trace: Int32Array[] = [];
  const v = new Int32Array(2 * most + 3), zero = most + 1;
  for (let d = 0; d <= most; d++) {
    trace.push(v.slice(zero - d - 1, zero + d + 2)); // the part that step d reads: from -d-1 to d+1
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && v[zero + k - 1]! < v[zero + k + 1]!) ? v[zero + k + 1]! : v[zero + k - 1]! + 1;
      let y = x - k;
      while (x < n && y < m && a[x] === b[y]) { x++; y++; }
      v[zero + k] = x;
      if (x >= n && y >= m) return back(trace, d, n, m);
    }
  }
  return [];
}

function back(trace: Int32Array[], d: number, n: number, m: number): [number, number][] {
  const out: [number, number][] = [];
  let x = n, y = m;
  for (; d >= 0; d--) {
    const v = trace[d]!, at = (k: number): number => v[k + d + 1]!, k = x - y;
    const from = d === 0 ? 0 : k === -d || (k !== d && at(k - 1) < at(k + 1)) ? k + 1 : k - 1;
    const px = d === 0 ? 0 : at(from), py = d === 0 ? 0 : px - from;
    while (x > px && y > py) out.push([--x, --y]);
    x = px;
    y = py;
  }
  return out.reverse();
}
