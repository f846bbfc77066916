// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Commands, tokens and lines that are copied. A person presses the button: nothing else writes to the clipboard.
import { useEffect, useRef, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";

const stays = 2000; // ms that it says so

// Code is a text that can be copied as it is; label names it where it is read out.
export function Code(p: { text: string; label?: string }): JSX.Element {
  const pre = useRef<HTMLPreElement>(null), says = useSignal("Copy"), timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(p.text);
      says.value = "Copied";
    } catch {
      // Not over http, and not without the permission: then it is selected.
      if (pre.current) getSelection()?.selectAllChildren(pre.current);
      says.value = "Selected: Ctrl+C copies it";
    }
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => { says.value = "Copy"; }, stays);
  };
  return (
    <div class="code">
      <pre ref={pre} aria-label={p.label}>{p.text}</pre>
      <button type="button" aria-label={says.value + (p.label ? ": " + p.label : "")} onClick={() => void copy()}><span aria-live="polite">{says.value}</span></button>
    </div>
  );
}
