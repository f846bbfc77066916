// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// The palette: every page, sandbox and part of one, by a few letters. Ctrl+K opens it, and ? tells of the keys.
import { may, signOut } from "../api";
import { oneLine } from "../format";
import { newest } from "../live";
import { at, go } from "../router";
import { signal, useEffect, useRef } from "../vendor/core";
import type { JSX } from "../vendor/core";
import { Dialog } from "./parts";

const open = signal(false);
const helps = signal(false);
const words = signal("");
const chosen = signal(0);

interface Choice { name: string; do: () => void }

const most = 50;

// choices are what may be chosen now, those of the sandbox that is looked at first.
function choices(): Choice[] {
  const to = (name: string, path: string): Choice => ({ name, do: () => go(path) });
  const out: Choice[] = [];
  const [first, id] = at();
  if (first === "sandboxes" && id) {
    for (const [part, name] of [["", "Overview"], ["terminal", "Terminal"], ["files", "Files"], ["processes", "Processes"], ["activity", "Activity"], ["time", "Snapshots"], ["network", "Network"], ["ports", "Ports"], ["runs", "Runs and artifacts"], ["settings", "Settings"]] as const) {
      out.push(to(name + " of this sandbox", "/sandboxes/" + encodeURIComponent(id) + (part && "/" + part)));
    }
  }
  out.push(to("Sandboxes", "/sandboxes"), to("Overview: what there is and what happened", "/overview"));
  if (may("sandboxes:write")) out.push(to("Create a sandbox", "/sandboxes?create"));
  out.push(to("Connect a client", "/connect"), to("Images", "/images"), to("Templates", "/templates"), to("Snapshots of all sandboxes", "/snapshots"), to("Volumes", "/volumes"), to("Skills", "/skills"), to("Access: tokens and sessions", "/access"));
  if (may("admin")) out.push(to("Audit", "/audit"));
  if (may("server:admin")) out.push(to("Settings of the server", "/settings"));
  out.push({ name: "Keys", do: () => { helps.value = true; } }, { name: "Sign out", do: () => void signOut() });
  for (const s of newest.value) out.push(to("Sandbox " + oneLine(s.key ?? s.id) + (s.key ? " " + s.id : ""), "/sandboxes/" + s.id));
  const text = words.value.trim().toLowerCase();
  return out.filter((c) => text.split(/\s+/).every((w) => c.name.toLowerCase().includes(w))).slice(0, most);
}

export function Palette(): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const press = (e: KeyboardEvent): void => {
      if (e.key.toLowerCase() === "k" && (e.ctrlKey || e.metaKey) && !e.shiftKey && !e.altKey) {
        e.preventDefault();
        words.value = "";
        chosen.value = 0;
        open.value = true;
        setTimeout(() => input.current?.focus());
      } else if (e.key === "?" && !(e.target as Element).closest("input, textarea, select, .xterm")) {
        helps.value = true;
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  const all = open.value ? choices() : [], now = Math.min(chosen.value, all.length - 1);
  const take = (c: Choice | undefined): void => {
    if (!c) return;
    open.value = false;
    c.do();
  };
  const key = (e: KeyboardEvent): void => {
    if (e.key === "ArrowDown") chosen.value = Math.min(all.length - 1, now + 1);
    else if (e.key === "ArrowUp") chosen.value = Math.max(0, now - 1);
    else if (e.key === "Enter") take(all[now]);
    else return;
    e.preventDefault();
  };
  return (
    <>
      <Dialog title="Go to" open={open}>
        <input ref={input} role="combobox" aria-label="Go to" aria-expanded="true" aria-controls="palette" aria-activedescendant={all[now] ? "palette-" + now : undefined} value={words.value}
          onInput={(e) => { words.value = e.currentTarget.value; chosen.value = 0; }} onKeyDown={key} autocomplete="off" spellcheck={false} class="palette" />
        <ul id="palette" role="listbox" aria-label="What there is" class="choices">
          {all.map((c, i) => <li key={c.name} id={"palette-" + i} role="option" aria-selected={i === now} onClick={() => take(c)}>{c.name}</li>)}
        </ul>
        {all.length === 0 && <p class="faint" role="status">Nothing is called so.</p>}
      </Dialog>
      <Dialog title="Keys" open={helps}>
        <dl>
          <dt><kbd>Ctrl</kbd> <kbd>K</kbd></dt><dd>go to a page, a sandbox or a part of one</dd>
          <dt><kbd>?</kbd></dt><dd>these keys</dd>
          <dt><kbd>Tab</kbd></dt><dd>to the next thing; in a terminal it is the program's</dd>
          <dt><kbd>Ctrl</kbd> <kbd>Shift</kbd> <kbd>Escape</kbd></dt><dd>out of a terminal</dd>
          <dt><kbd>Escape</kbd></dt><dd>leave a question unanswered</dd>
        </dl>
        <div class="buttons"><button type="button" onClick={() => { helps.value = false; }}>Close</button></div>
      </Dialog>
    </>
  );
}

export function openPalette(): void {
  words.value = "";
  chosen.value = 0;
  open.value = true;
}
