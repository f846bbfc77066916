// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Uploads into a directory of a sandbox.
import { Failure, may } from "../api";
import { bytes, oneLine } from "../format";
import { useRef, useSignal } from "../vendor/core";
import type { JSX, Signal } from "../vendor/core";
import type { Sandbox } from "../wire";
import { files, join } from "./files";

interface Upload { name: string; sent: Signal<number>; size: number; error: Signal<unknown>; done: Signal<boolean>; request: XMLHttpRequest }

// Uploads sends files into a directory, by choice or by drag, one after the other.
export function Uploads(p: { of: Sandbox; dir: string; done: () => void }): JSX.Element | null {
  const all = useSignal<Upload[]>([]), over = useSignal(false), input = useRef<HTMLInputElement>(null), chain = useRef<Promise<void>>(Promise.resolve());
  const progress = useSignal(0);
  if (!may("sandboxes:write")) return null;
  const send = (name: string, file: Blob): void => {
    const one = { name, sent: box(0), size: file.size, error: box<unknown>(null), done: box(false), request: new XMLHttpRequest() } as unknown as Upload;
    all.value = all.value.concat(one);
    chain.current = chain.current.then(() => new Promise<void>((finished) => {
      const r = one.request;
      if (one.error.value) { finished(); return; }
      r.open("PUT", "/v1" + files(p.of, join(p.dir, name)) + "&parents=true");
      r.setRequestHeader("Content-Type", "application/octet-stream");
      r.upload.onprogress = (e) => { one.sent.value = e.loaded; progress.value++; };
      r.onloadend = () => {
        if (r.status >= 200 && r.status < 300) one.done.value = true;
        else if (!one.error.value) one.error.value = r.status === 0 ? new Failure(0, { detail: "The upload was broken off." }) : new Failure(r.status, JSON.parse(r.responseText || "{}") as object);
        progress.value++;
        p.done();
        finished();
      };
      r.send(file);
    }));
  };
  const cancel = (u: Upload): void => { u.error.value = new Failure(0, { detail: "It was canceled. What was there before is unchanged." }); u.request.abort(); progress.value++; };
  const dropped = (e: DragEvent): void => {
    e.preventDefault();
    over.value = false;
    for (const item of e.dataTransfer?.items ?? []) {
      const entry = item.webkitGetAsEntry();
      if (entry) void walk(entry, "", send);
    }
  };
  return (
    <div class={"drop" + (over.value ? " over" : "")} onDragOver={(e) => { e.preventDefault(); over.value = true; }} onDragLeave={() => { over.value = false; }} onDrop={dropped}>
      <input ref={input} type="file" multiple hidden onChange={(e) => { for (const f of e.currentTarget.files ?? []) send(f.name, f); e.currentTarget.value = ""; }} />
      <button type="button" onClick={() => input.current?.click()}>Upload files</button> <span class="faint small">or drop files and directories here; they go into {oneLine(p.dir)}</span>
      <ul class="files" data-progress={progress.value}>{all.value.map((u, i) => (
        <li key={i}>{oneLine(u.name)} {u.error.value ? <span class="bad">{oneLine((u.error.value as Error).message)}</span> : u.done.value ? <span class="good">uploaded, {bytes(u.size)}</span> : <>
          <progress max={u.size || 1} value={u.sent.value} aria-label={"Upload of " + oneLine(u.name)} /> {bytes(u.sent.value)} of {bytes(u.size)} <button type="button" onClick={() => cancel(u)}>Cancel</button></>}</li>
      ))}</ul>
    </div>
  );
}

// box is a value that changes within an upload; what shows it is drawn by the count of changes.
const box = <T,>(value: T): { value: T } => ({ value });

async function walk(entry: FileSystemEntry, dir: string, send: (name: string, file: Blob) => void): Promise<void> {
  const name = dir + entry.name;
  if (entry.isFile) {
    send(name, await new Promise<globalThis.File>((done, failed) => (entry as FileSystemFileEntry).file(done, failed)));
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
    if (some.length === 0) return;
    for (const one of some) await walk(one, name + "/", send);
  }
}
