// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Lists that are read again and again, and what stands beside a form or a deletion.
import { call, Failure } from "../api";
import { useEvery } from "./again";
import { Code } from "./copy";
import { Action, Dialog } from "./parts";
import { useEffect, useSignal } from "../vendor/core";
import type { ComponentChildren, JSX, Signal } from "../vendor/core";

export interface List<T> { all: Signal<T | null>; failed: Signal<unknown>; read: () => Promise<void> }

// useList reads a path each ms. While the server is away it keeps what was read: the page says since when.
export function useList<T>(path: string | null, ms: number): List<T> {
  const all = useSignal<T | null>(null), failed = useSignal<unknown>(null);
  const read = async (): Promise<void> => {
    if (path === null) return;
    try {
      all.value = await call<T>(path);
      failed.value = null;
    } catch (e) {
      if (!(all.value !== null && e instanceof Failure && e.status === 0)) failed.value = e;
    }
  };
  useEvery(ms, read, [path]);
  return { all, failed, read };
}

// readPages reads all pages of a list, of 1,000 entries at most.
export async function readPages<T>(path: string): Promise<T[]> {
  const out: T[] = [];
  for (let cursor = ""; out.length < 1000;) {
    const page = await call<{ items: T[]; next_cursor: string | null }>(path + (path.includes("?") ? "&" : "?") + "limit=200" + (cursor && "&cursor=" + encodeURIComponent(cursor)));
    out.push(...page.items);
    if (!(cursor = page.next_cursor ?? "")) break;
  }
  return out;
}

// quote is a word as a shell has to have it.
export const quote = (word: string): string => (/^[A-Za-z0-9._:\/@=,-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'");

// Same shows a form as a command, a request and a call of a tool; what has no tool says why.
export function Same(p: { cli: string; rest: string; body?: unknown; tool?: string; args?: unknown; none?: string }): JSX.Element {
  return (
    <details>
      <summary>The same by the command line, REST and MCP</summary>
      <Code text={p.cli} />
      <Code text={p.rest + (p.body === undefined ? "" : "\n" + JSON.stringify(p.body, null, 2))} />
      {p.tool ? <Code text={p.tool + " " + JSON.stringify(p.args ?? p.body ?? {})} /> : <p class="faint small">By MCP: {p.none}</p>}
    </details>
  );
}

// Lose asks before something is deleted, and says what is lost.
export function Lose<T>(p: { of: Signal<T | null>; title: (one: T) => string; failed: Signal<unknown>; verb?: string; do: (one: T) => Promise<unknown>; children: (one: T) => ComponentChildren }): JSX.Element {
  const open = useSignal(false), one = p.of.value;
  useEffect(() => { open.value = one !== null; }, [one]);
  useEffect(() => { if (!open.value) p.of.value = null; }, [open.value]);
  const leave = (): void => { open.value = false; };
  return (
    <Dialog title={one === null ? "" : p.title(one)} open={open}>
      {one !== null && p.children(one)}
      <div class="buttons">
        <Action class="danger" failed={p.failed} do={async () => { leave(); if (one !== null) await p.do(one); }}>{p.verb ?? "Delete it"}</Action>
        <button type="button" autofocus onClick={leave}>Keep it</button>
      </div>
    </Dialog>
  );
}
