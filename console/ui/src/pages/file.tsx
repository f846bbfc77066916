// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// One file: a text in the editor, a picture, or a window of what is too long for it or no text.
import { call, may, raw, seg } from "../api";
import { bytes, oneLine, shown } from "../format";
import { useDownloads } from "../parts/download";
import { Action, Dialog, Field, Time, Trouble } from "../parts/parts";
import { useEffect, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { FileInfo, Sandbox } from "../wire";
import { address, Editor, most, read } from "./editor";
import type { Version } from "./editor";

const pictures: Record<string, string> = { png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp" };
const mostPicture = 20 << 20;

export const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

// File shows one; changed counts what a watch told of it.
export function File(p: { of: Sandbox; path: string; changed: number; gone: () => void; show: (path: string) => void }): JSX.Element {
  const info = useSignal<FileInfo | null>(null), text = useSignal<Version | null>(null), picture = useSignal(""), windows = useSignal(false), failed = useSignal<unknown>(null);
  const deleting = useSignal(false), renaming = useSignal(false), to = useSignal(p.path), downloads = useDownloads();
  const kind = pictures[p.path.toLowerCase().split(".").at(-1) ?? ""] ?? "";
  const stat = async (): Promise<FileInfo> => (info.value = await call<FileInfo>("/sandboxes/" + p.of.id + "/stat?path=" + seg(p.path)));
  useEffect(() => {
    const stop = new AbortController();
    let url = "";
    void (async () => {
      try {
        const i = await stat();
        failed.value = null;
        if (kind && i.size <= mostPicture) {
          // A picture comes by a blob of one of four kinds, whatever the file is.
          const body = await (await raw(address(p.of, p.path), { signal: stop.signal })).arrayBuffer();
          url = URL.createObjectURL(new Blob([body], { type: kind }));
          if (!stop.signal.aborted) picture.value = url;
          return;
        }
        const v = i.size > most ? null : await read(p.of, p.path, stop.signal);
        if (stop.signal.aborted) return;
        text.value = v;
        windows.value = v === null;
      } catch (e) {
        if (!stop.signal.aborted) failed.value = e;
      }
    })();
    return () => {
      stop.abort();
      if (url) URL.revokeObjectURL(url);
    };
  }, [p.path, kind ? p.changed : 0]);
  useEffect(() => { if (p.changed > 0) stat().catch(() => { /* The editor says that it is gone. */ }); }, [p.changed]);
  const i = info.value, name = baseName(p.path);
  return (
    <section class="output" aria-label="File">
      <h2><code>{oneLine(p.path)}</code></h2>
      {i && <p class="faint">{bytes(i.size)} · {i.mode} · {oneLine(i.owner ?? String(i.uid))}:{oneLine(i.group ?? String(i.gid))} · changed <Time at={i.modified_at} /></p>}
      <div class="buttons">
        <Action failed={failed} do={() => downloads.get(address(p.of, p.path), name, false)}>Download</Action>
        {may("sandboxes:write") && <button type="button" onClick={() => { to.value = p.path; renaming.value = true; }}>Rename…</button>}
        {may("sandboxes:write") && <button type="button" class="danger" onClick={() => { deleting.value = true; }}>Delete the file…</button>}
      </div>
      {downloads.shown}
      <Trouble error={failed.value} />
      {picture.value && <img src={picture.value} alt={oneLine(name)} class="picture" />}
      {text.value && !windows.value && <Editor key={p.path} of={p.of} path={p.path} begun={text.value} changed={p.changed} other={() => { windows.value = true; }} saved={(at) => { if (at === p.path) void stat(); else p.show(at); }} />}
      {windows.value && i && <Windows of={p.of} path={p.path} size={i.size} />}
      <Dialog title={"Rename " + oneLine(name)} open={renaming}>
        <form onSubmit={(e) => e.preventDefault()}>
          <Field label="New path" hint="A file that is there already is not replaced.">{(id, hint) => <input id={id} aria-describedby={hint} value={to.value} spellcheck={false} onInput={(e) => { to.value = e.currentTarget.value; }} />}</Field>
          <Trouble error={failed.value} />
          <div class="buttons">
            <Action class="primary" failed={failed} disabled={to.value === "" || to.value === p.path} do={async () => {
              await call("/sandboxes/" + p.of.id + "/move", { method: "POST", body: { from: p.path, to: to.value } });
              renaming.value = false;
              p.show(to.value);
            }}>Rename</Action>
            <button type="button" onClick={() => { renaming.value = false; }}>Keep the name</button>
          </div>
        </form>
      </Dialog>
      <Dialog title={"Delete " + oneLine(name)} open={deleting}>
        <p>The file is lost, unless a snapshot has it.</p>
        <div class="buttons">
          <Action class="danger" failed={failed} do={async () => { await call("/sandboxes/" + p.of.id + "/files?path=" + seg(p.path), { method: "DELETE" }); deleting.value = false; p.gone(); }}>Delete it</Action>
          <button type="button" onClick={() => { deleting.value = false; }}>Keep it</button>
        </div>
      </Dialog>
    </section>
  );
}

const textWindow = 64 << 10, byteWindow = 4 << 10;

// Windows shows a part of a file at a time, as text or as bytes.
function Windows(p: { of: Sandbox; path: string; size: number }): JSX.Element {
  const from = useSignal(0), hex = useSignal<boolean | null>(null), body = useSignal<Uint8Array | null>(null), failed = useSignal<unknown>(null);
  const length = hex.value ? byteWindow : textWindow, last = Math.max(0, Math.floor((p.size - 1) / length) * length);
  useEffect(() => {
    const stop = new AbortController(), at = from.value;
    raw(address(p.of, p.path), { headers: { Range: "bytes=" + at + "-" + (at + textWindow - 1) }, signal: stop.signal }).then((a) => a.arrayBuffer()).then((b) => {
      const all = new Uint8Array(b);
      hex.value ??= all.subarray(0, 8192).includes(0) || !isText(all);
      body.value = all;
      failed.value = null;
    }).catch((e: unknown) => { if (!stop.signal.aborted) { failed.value = e; body.value = null; } });
    return () => stop.abort();
  }, [p.path, from.value]);
  const go = (at: number) => (): void => { from.value = Math.max(0, Math.min(at, last)); };
  const b = body.value, end = b ? from.value + Math.min(b.length, length) : 0;
  return (
    <>
      <p class="faint">{p.size > most ? "It is too long for the editor: a part of it is shown at a time." : "It is no text that the editor keeps as it is: a part of it is shown at a time."}</p>
      <div class="buttons">
        <button type="button" disabled={from.value === 0} onClick={go(0)}>First</button>
        <button type="button" disabled={from.value === 0} onClick={go(from.value - length)}>Before</button>
        <button type="button" disabled={end >= p.size} onClick={go(from.value + length)}>Next</button>
        <button type="button" disabled={end >= p.size} onClick={go(last)}>Last</button>
        <form class="filters" onSubmit={(e) => { e.preventDefault(); go(Number(((e.currentTarget as HTMLFormElement).elements.namedItem("at") as HTMLInputElement).value) || 0)(); }}>
          <label>From byte <input name="at" inputMode="numeric" pattern="[0-9]*" size={10} /></label><button type="submit">Go</button>
        </form>
        <label>As <select value={hex.value ? "bytes" : "text"} onChange={(e) => { hex.value = e.currentTarget.value === "bytes"; }}><option value="text">text</option><option value="bytes">bytes</option></select></label>
      </div>
      <Trouble error={failed.value} />
      {b && <>
        <p class="faint small" role="status">Bytes {from.value} to {end} of {p.size}</p>
        <pre class="log" tabIndex={0} aria-label="Contents">{hex.value ? dump(b.subarray(0, byteWindow), from.value) : shown(part(b))}</pre>
      </>}
    </>
  );
}

// part is a part of a text, without the pieces of letters at its ends.
function part(b: Uint8Array): string {
  let at = 0;
  while (at < 3 && at < b.length && (b[at]! & 0xc0) === 0x80) at++;
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(b.subarray(at), { stream: true });
}

const isText = (b: Uint8Array): boolean => !part(b).includes("\ufffd");

// dump shows bytes as hexadecimal numbers and letters.
function dump(b: Uint8Array, from: number): string {
  const lines: string[] = [];
  for (let i = 0; i < b.length; i += 16) {
    const row = [...b.subarray(i, i + 16)];
    lines.push((from + i).toString(16).padStart(8, "0") + "  " + row.map((x) => x.toString(16).padStart(2, "0")).join(" ").padEnd(47) + "  " + row.map((x) => (x >= 32 && x < 127 ? String.fromCharCode(x) : ".")).join(""));
  }
  return lines.join("\n");
}
