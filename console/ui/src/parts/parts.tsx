// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Parts that all pages are made of.
import { Failure } from "../api";
import { ago, exact, shown } from "../format";
import { base, go } from "../router";
import { signal, useEffect, useId, useRef } from "../vendor/core";
import type { ComponentChildren, JSX, Signal } from "../vendor/core";

// now is the time, as pages show it; it moves each second.
export const now = signal(Date.now());
setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);

// Link leads to a page of the console.
export function Link(p: { to: string; class?: string; current?: boolean; children: ComponentChildren }): JSX.Element {
  const follow = (e: MouseEvent): void => {
    if (e.button !== 0 || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    go(p.to);
  };
  return <a href={base + p.to} class={p.class} aria-current={p.current ? "page" : undefined} onClick={follow}>{p.children}</a>;
}

// Time shows how long ago something was; the exact time is at hand.
export function Time(p: { at: string | null | undefined; never?: string }): JSX.Element {
  if (!p.at) return <span class="faint">{p.never ?? "never"}</span>;
  return <time dateTime={p.at} title={exact(p.at)}>{ago(p.at, now.value)}</time>;
}

// State is a sandbox's state, told by a word and not by a colour alone.
export function State(p: { of: string }): JSX.Element {
  return <span class={"state " + p.of}><span class="dot" aria-hidden="true" />{p.of}</span>;
}

// Trouble says what failed, why, and what to do.
export function Trouble(p: { error: unknown; again?: () => void }): JSX.Element | null {
  const box = useRef<HTMLDivElement>(null);
  // In a form that is longer than the window it would be out of sight.
  useEffect(() => { if (p.error && box.current?.closest("dialog")) box.current.scrollIntoView({ block: "nearest" }); }, [p.error]);
  if (!p.error) return null;
  const e = p.error instanceof Failure ? p.error : new Failure(0, { detail: String(p.error) });
  return (
    <div ref={box} class="trouble" role="alert">
      <p>{shown(e.message)}</p>
      {(e.problem.errors ?? []).map((f) => <p key={f.field}><code>{shown(f.field)}</code> {shown(f.message)}</p>)}
      {e.remedy && <p class="remedy">→ {shown(e.remedy)}</p>}
      {e.request && <p class="faint small">Request <code>{e.request}</code></p>}
      {p.again && <button type="button" onClick={p.again}>Try again</button>}
    </div>
  );
}

// Meter shows an amount against its limit.
export function Meter(p: { name: string; used: number | null; of: number; text: string }): JSX.Element {
  const share = p.used === null || p.of <= 0 ? 0 : Math.min(1, p.used / p.of);
  return (
    <div class="meter">
      <span>{p.name}</span><span class="amount">{p.text}</span>
      <progress max={1} value={share} class={share > 0.9 ? "high" : ""} aria-label={p.name + ": " + p.text} />
    </div>
  );
}

// Action is a button whose work may fail: it says so beside itself.
export function Action(p: { do: () => Promise<unknown>; children: ComponentChildren; class?: string; failed: Signal<unknown>; disabled?: boolean; label?: string }): JSX.Element {
  const busy = useRef(false);
  const button = useRef<HTMLButtonElement>(null);
  const click = async (): Promise<void> => {
    if (busy.current) return;
    busy.current = true;
    button.current?.setAttribute("aria-busy", "true");
    p.failed.value = null;
    try {
      await p.do();
    } catch (e) {
      p.failed.value = e;
    } finally {
      busy.current = false;
      button.current?.removeAttribute("aria-busy");
    }
  };
  return <button type="button" ref={button} class={p.class} disabled={p.disabled} aria-label={p.label} onClick={() => void click()}>{p.children}</button>;
}

// Dialog asks something, above the page. Escape leaves it.
export function Dialog(p: { title: string; open: Signal<boolean>; children: ComponentChildren }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null), ours = useRef(0);
  const id = useId();
  const open = p.open.value;
  // After each time it is drawn: it may be left and opened again in between. The browser tells of a close later than it is done,
  // when the dialog may be open again: what is closed here is known already.
  useEffect(() => {
    const d = dialog.current;
    if (!d) return;
    if (open && !d.open) d.showModal();
    if (!open && d.open) {
      ours.current++;
      d.close();
    }
  });
  return (
    <dialog ref={dialog} aria-labelledby={id} onCancel={(e) => { if (e.target === e.currentTarget) { e.preventDefault(); p.open.value = false; } }} onClose={() => { if (ours.current > 0) ours.current--; else p.open.value = false; }}>
      {open && <><h2 id={id}>{p.title}</h2>{p.children}</>}
    </dialog>
  );
}

// Tabs are the parts of a page, each with an address of its own.
export function Tabs(p: { of: [string, string][]; current: string; to: (tab: string) => string; label: string }): JSX.Element {
  return (
    <nav class="tabs" aria-label={p.label}>
      {p.of.map(([id, name]) => <Link key={id} to={p.to(id)} current={id === p.current}>{name}</Link>)}
    </nav>
  );
}

// Field is an input with its name.
export function Field(p: { label: string; hint?: string; children: (id: string, hint: string | undefined) => JSX.Element }): JSX.Element {
  const id = useId();
  return (
    <p class="field">
      <label for={id}>{p.label}</label>
      {p.children(id, p.hint ? id + "-hint" : undefined)}
      {p.hint && <span id={id + "-hint"} class="faint small">{p.hint}</span>}
    </p>
  );
}
