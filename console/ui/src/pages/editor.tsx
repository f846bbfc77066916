// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// The editor of a text file. It saves only over what it has read: where the file is another one by then, both are shown.
import { Failure, may, raw, seg, who } from "../api";
import { oneLine, shown } from "../format";
import { Action, Dialog, Field, Trouble } from "../parts/parts";
import { rowsOf, same } from "../parts/lines";
import { held } from "../router";
import { useEffect, useRef, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { EditorView } from "../vendor/editor";
import type { Sandbox } from "../wire";

// Version is what a file holds, and the tag by which the server knows it.
export interface Version { text: string; tag: string }

// most is the size of a file that is edited as a whole.
export const most = 1 << 20;

export const address = (s: Sandbox, path: string): string => "/sandboxes/" + s.id + "/files/?path=" + seg(path);

// tagOf is the tag of what was sent, in whatever form it came.
const tagOf = (answer: Response): string => (answer.headers.get("Etag") ?? "").replace(/-gzip"$/, '"');

// textOf is a text with its mark of the order of bytes, or null where bytes are no text.
function textOf(bytes: Uint8Array<ArrayBuffer>): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

// read reads a file as text, as far as it is one and not too long: else null.
export async function read(s: Sandbox, path: string, signal?: AbortSignal): Promise<Version | null> {
  const answer = await raw(address(s, path), signal ? { signal } : {}), from = answer.body!.getReader(), all = new Uint8Array(most);
  let length = 0;
  for (;;) {
    const { value, done } = await from.read();
    if (done) break;
    if (length + value.length > most) {
      await from.cancel();
      return null;
    }
    all.set(value, length);
    length += value.length;
  }
  const text = textOf(all.subarray(0, length));
  return text === null ? null : { text, tag: tagOf(answer) };
}

// write writes a file where it is the version of a tag; "": where there is none. It returns the new version.
async function write(s: Sandbox, path: string, text: string, tag: string): Promise<Version> {
  const condition: Record<string, string> = tag === "" ? { "If-None-Match": "*" } : { "If-Match": tag };
  const answer = await raw("/sandboxes/" + s.id + "/files?path=" + seg(path), { method: "PUT", headers: { "Content-Type": "application/octet-stream", ...condition }, body: new TextEncoder().encode(text) });
  if (tagOf(answer)) return { text, tag: tagOf(answer) };
  const now = await read(s, path);
  return now?.text === text ? now : { text, tag: '"changed"' }; // somebody else was as fast: the next save says so
}

// drafts are texts that were changed and not saved. They outlive the page of a session that ended, for who signs in again.
const drafts = new Map<string, { text: string; base: Version }>();

addEventListener("beforeunload", (e) => { if (drafts.size > 0) e.preventDefault(); });

const languages: Record<string, () => Promise<import("@codemirror/state").Extension>> = {
  py: async () => (await import("../vendor/python")).python(),
  js: async () => (await import("../vendor/javascript")).javascript({ jsx: true }),
  ts: async () => (await import("../vendor/javascript")).javascript({ typescript: true }),
  tsx: async () => (await import("../vendor/javascript")).javascript({ typescript: true, jsx: true }),
  json: async () => (await import("../vendor/json")).json(),
  md: async () => (await import("../vendor/markdown")).markdown(),
};
const also: Record<string, string> = { pyi: "py", mjs: "js", cjs: "js", jsx: "js", mts: "ts", cts: "ts", ipynb: "json", jsonl: "json", markdown: "md" };

// breakOf is what ends the lines of a text: where they end in two ways, the shorter one does, and the other's rest is seen.
const breakOf = (text: string): string => (/\r\n/.test(text) && !/(^|[^\r])\n|\r(?!\n)/.test(text) ? "\r\n" : "\n");

interface Conflict { theirs: Version | null; gone: boolean; mine: string }

// Editor shows a text, and has it changed by who may. begun is what was read; changed counts what a watch told of the file.
export function Editor(p: { of: Sandbox; path: string; begun: Version; changed: number; other: () => void; saved: (path: string) => void }): JSX.Element {
  const writes = may("sandboxes:write"), key = [who.value?.project, who.value?.name, p.of.id, p.path].join("\n");
  const box = useRef<HTMLDivElement>(null), view = useRef<EditorView | null>(null), base = useRef<Version>(drafts.get(key)?.base ?? p.begun), put = useRef<((text: string) => void) | null>(null);
  const dirty = useSignal(false), status = useSignal(""), failed = useSignal<unknown>(null), conflict = useSignal<Conflict | null>(null), saving = useRef(false);
  const naming = useSignal(false), name = useSignal(""), wraps = useSignal(true), wrap = useRef<((on: boolean) => void) | null>(null), find = useRef<(() => void) | null>(null);
  const now = (): string => { const v = view.current; return v ? v.state.sliceDoc() : base.current.text; };
  const mark = (): void => {
    const text = now(), is = text !== base.current.text;
    dirty.value = is;
    if (is) drafts.set(key, { text, base: base.current });
    else drafts.delete(key);
    held.value = is ? { says: oneLine(p.path) + " has changes that are not saved. Leave, and lose them?", drop: () => { drafts.delete(key); } } : null;
  };
  const settle = (v: Version): void => { base.current = v; conflict.value = null; failed.value = null; mark(); };
  const clash = async (mine: string, again: boolean): Promise<void> => {
    try {
      const theirs = await read(p.of, p.path);
      if (theirs && theirs.text === mine) { settle(theirs); return; } // both are the same by now
      if (theirs && theirs.text === base.current.text && again) { // its mode, or a text that came back
        base.current = theirs;
        saving.current = false;
        await save(theirs.tag, false);
        return;
      }
      conflict.value = { theirs, gone: false, mine };
    } catch (e) {
      if (!(e instanceof Failure && e.status === 404)) throw e;
      conflict.value = { theirs: null, gone: true, mine };
    }
  };
  const save = async (tag = base.current.tag, again = true): Promise<void> => {
    if (saving.current || !writes) return;
    saving.current = true;
    const text = now();
    status.value = "Saving…";
    try {
      settle(await write(p.of, p.path, text, tag));
      status.value = "Saved.";
      p.saved(p.path);
    } catch (e) {
      status.value = "";
      if (!(e instanceof Failure && e.status === 412)) throw e;
      await clash(text, again);
    } finally {
      saving.current = false;
    }
  };
  const saveNow = (): void => { save().catch((e: unknown) => { failed.value = e; status.value = "Not saved."; }); };
  const begin = useRef(saveNow);
  begin.current = saveNow;
  useEffect(() => {
    let over = false;
    const draft = drafts.get(key);
    void (async () => {
      const cm = await import("../vendor/editor");
      const kind = p.path.slice(p.path.lastIndexOf(".") + 1).toLowerCase(), language = await languages[also[kind] ?? kind]?.();
      if (over || !box.current) return;
      const { EditorState, EditorView: View, tags } = cm;
      const text = draft?.text ?? base.current.text, lines = new cm.Compartment();
      const style = cm.HighlightStyle.define([
        { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "var(--c5)" }, { tag: [tags.string, tags.regexp, tags.special(tags.string)], color: "var(--c2)" }, { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--c3)" },
        { tag: [tags.comment, tags.meta], color: "var(--faint)", fontStyle: "italic" }, { tag: [tags.definition(tags.variableName), tags.function(tags.variableName), tags.propertyName], color: "var(--c4)" },
        { tag: [tags.typeName, tags.className, tags.tagName], color: "var(--c6)" }, { tag: [tags.heading, tags.strong], fontWeight: "700" }, { tag: tags.emphasis, fontStyle: "italic" }, { tag: tags.link, color: "var(--link)" }, { tag: tags.invalid, color: "var(--c1)" },
      ]);
      const one = new View({
        parent: box.current,
        state: EditorState.create({
          doc: text,
          extensions: [
            View.cspNonce.of(document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce ?? ""),
            EditorState.lineSeparator.of(breakOf(text)), EditorState.readOnly.of(!writes), View.editable.of(writes),
            View.contentAttributes.of({ "aria-label": "Contents of " + oneLine(p.path), tabindex: "0", spellcheck: "false" }),
            cm.lineNumbers(), cm.highlightActiveLine(), cm.highlightActiveLineGutter(), cm.drawSelection(), cm.history(), cm.indentOnInput(), cm.bracketMatching(), cm.highlightSelectionMatches(), cm.search({ top: true }),
            cm.highlightSpecialChars({ addSpecialChars: /[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufff9-\ufffb]/g, render: (code) => { const e = document.createElement("span"); e.className = "cm-specialChar"; e.textContent = shown(String.fromCodePoint(code)); return e; } }),
            cm.syntaxHighlighting(style), lines.of(View.lineWrapping),
            cm.keymap.of([{ key: "Mod-s", preventDefault: true, run: () => { begin.current(); return true; } }, ...cm.searchKeymap, ...cm.historyKeymap, cm.indentWithTab, ...cm.defaultKeymap]),
            View.updateListener.of((u) => { if (u.docChanged) { status.value = ""; mark(); } }),
            ...(language ? [language] : []),
          ],
        }),
      });
      // What this editor would write in other bytes than it has read, it does not edit.
      if (one.state.sliceDoc() !== text) { one.destroy(); p.other(); return; }
      view.current = one;
      put.current = (next) => one.dispatch({ changes: { from: 0, to: one.state.doc.length, insert: one.state.toText(next) } });
      wrap.current = (on) => one.dispatch({ effects: lines.reconfigure(on ? View.lineWrapping : []) });
      find.current = () => { cm.openSearchPanel(one); };
      if (draft) status.value = "Your changes of before are here, not saved yet.";
      mark();
    })().catch((e: unknown) => { failed.value = e; });
    return () => {
      over = true;
      view.current?.destroy();
      view.current = null;
      if (held.peek()?.says.startsWith(oneLine(p.path))) held.value = null;
    };
  }, [key]);
  // Somebody else changed the file: what was not touched here follows, and what was is asked about when it is saved.
  useEffect(() => {
    if (p.changed === 0 || saving.current) return;
    read(p.of, p.path).then((theirs) => {
      if (!theirs || saving.current || theirs.tag === base.current.tag) return;
      if (theirs.text === base.current.text) { base.current = theirs; return; }
      if (dirty.value) { status.value = "The file was changed by somebody else meanwhile. Saving shows both."; return; }
      const v = view.current, top = v?.scrollDOM.scrollTop ?? 0;
      base.current = theirs;
      if (breakOf(theirs.text) !== (v?.state.lineBreak ?? "\n")) { p.other(); return; }
      put.current?.(theirs.text);
      mark();
      if (v) v.scrollDOM.scrollTop = top;
      status.value = "The file was changed, and read again.";
    }, (e: unknown) => { if (e instanceof Failure && e.status === 404) status.value = "The file is not there any more. Saving asks what to do."; });
  }, [p.changed]);
  const c = conflict.value;
  return (
    <>
      <div class="buttons">
        {writes && <>
          <Action failed={failed} class="primary" disabled={!dirty.value} do={() => save()}>Save</Action>
          <button type="button" onClick={() => { name.value = p.path; naming.value = true; }}>Save as…</button>
          <button type="button" disabled={!dirty.value} onClick={() => { if (confirm("Lose the changes that are not saved?")) { put.current?.(base.current.text); mark(); } }}>Take changes back</button>
        </>}
        <button type="button" onClick={() => find.current?.()}>Search</button>
        <label><input type="checkbox" checked={wraps.value} onChange={(e) => { wraps.value = e.currentTarget.checked; wrap.current?.(wraps.value); }} /> Wrap lines</label>
        <span role="status">{status.value || (dirty.value ? "Not saved yet." : "")}</span>
      </div>
      <Trouble error={failed.value} />
      {c && <ConflictBox of={c} path={p.path} failed={failed}
        theirs={() => { if (c.theirs) { base.current = c.theirs; put.current?.(c.theirs.text); settle(c.theirs); status.value = "It is what the file has now."; } }}
        mine={() => save(c.gone ? "" : c.theirs && !c.theirs.tag.startsWith("W/") ? c.theirs.tag : "*", false)}
        other={() => { name.value = p.path; naming.value = true; }} leave={() => { conflict.value = null; view.current?.focus(); }} />}
      <div ref={box} class="editor" />
      <p class="faint small">{writes ? "Ctrl+S saves. Tab indents; Escape and then Tab leaves the editor." : "This token may only read."}</p>
      <Dialog title="Save under another name" open={naming}>
        <form onSubmit={(e) => e.preventDefault()}>
          <Field label="Path" hint="A file that is there already is not replaced.">{(id, hint) => <input id={id} aria-describedby={hint} value={name.value} spellcheck={false} onInput={(e) => { name.value = e.currentTarget.value; }} />}</Field>
          <Trouble error={failed.value} />
          <div class="buttons">
            <Action class="primary" failed={failed} disabled={name.value === "" || name.value === p.path} do={async () => {
              await write(p.of, name.value, now(), "");
              naming.value = false;
              drafts.delete(key);
              held.value = null;
              p.saved(name.value);
            }}>Save</Action>
            <button type="button" onClick={() => { naming.value = false; }}>Go on editing</button>
          </div>
        </form>
      </Dialog>
    </>
  );
}

// ConflictBox shows both sides, and asks which one it shall be.
function ConflictBox(p: { of: Conflict; path: string; failed: import("../vendor/core").Signal<unknown>; theirs: () => void; mine: () => Promise<void>; other: () => void; leave: () => void }): JSX.Element {
  const c = p.of, theirs = c.theirs, heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => { heading.current?.focus(); }, [c]);
  return (
    <section class="conflict" aria-label="Conflict">
      <h3 ref={heading} tabIndex={-1}>{c.gone ? "The file was deleted meanwhile" : "The file was changed meanwhile"}</h3>
      <p>{c.gone ? "Nothing was saved." : "Nothing was saved, neither side is lost."}{!c.gone && !theirs && " It is too long now, or no text, and cannot be shown beside yours."}</p>
      {theirs && <Sides left={c.mine} right={theirs.text} leftName="Yours" rightName="The file now" />}
      <div class="buttons">
        {theirs && <button type="button" onClick={p.theirs}>Take the file's, lose mine</button>}
        <Action failed={p.failed} class="danger" do={p.mine}>{c.gone ? "Make it anew with mine" : "Overwrite it with mine"}</Action>
        <button type="button" onClick={p.other}>Save mine under another name…</button>
        <button type="button" onClick={p.leave}>Go on editing</button>
      </div>
    </section>
  );
}

// Sides shows how two texts differ.
export function Sides(p: { left: string; right: string; leftName: string; rightName: string }): JSX.Element {
  const { rows, more } = rowsOf(p.left, p.right, 300);
  return (
    <>
      <div class="sides" tabIndex={0} role="group" aria-label={p.leftName + " and " + p.rightName}><table>
        <thead><tr><th>{p.leftName}</th><th>{p.rightName}</th></tr></thead>
        <tbody>{rows.map((r, i) => (r.skipped > 0
          ? <tr key={i} class="skipped"><td colSpan={2}>{r.skipped} lines are the same</td></tr>
          : <tr key={i}><td>{r.left === null ? "" : same(r) ? oneLine(r.left) : <ins>{oneLine(r.left) || " "}</ins>}</td><td>{r.right === null ? "" : same(r) ? oneLine(r.right) : <del>{oneLine(r.right) || " "}</del>}</td></tr>))}</tbody>
      </table></div>
      {more > 0 && <p class="faint small">{more} more rows are not shown.</p>}
    </>
  );
}
