// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Files of a sandbox: a tree that is read as it opens, and one file beside it.
import { call, Failure, may, save, seg } from "../api";
import { bytes, oneLine, shown } from "../format";
import { Action, Dialog, Time, Trouble } from "../parts/parts";
import { go, query } from "../router";
import { useEffect, useRef, useSignal } from "../vendor/core";
import type { JSX, Signal } from "../vendor/core";
import type { FileInfo, Sandbox } from "../wire";

// page is how many entries of a directory are read at a time.
const page = 500;

const files = (s: Sandbox, path: string): string => "/sandboxes/" + s.id + "/files?path=" + seg(path);
const join = (dir: string, name: string): string => (dir === "/" ? "/" : dir + "/") + name;

export function Files(p: { of: Sandbox }): JSX.Element {
  const s = p.of, open = query.value.get("file"), root = useSignal(s.workspace_path), changed = useSignal(0);
  const show = (path: string | null): void => go("/sandboxes/" + seg(s.id) + "/files" + (path ? "?file=" + seg(path) : ""), true);
  return (
    <div class="split wide">
      <section aria-label="Tree">
        <form class="filters" onSubmit={(e) => { e.preventDefault(); root.value = ((e.currentTarget as HTMLFormElement).elements.namedItem("root") as HTMLInputElement).value || "/"; }}>
          <label>Directory <input name="root" defaultValue={root.value} spellcheck={false} /></label><button type="submit">Go</button>
        </form>
        <Uploads of={s} dir={root.value} done={() => { changed.value++; }} />
        <Directory key={root.value + changed.value} of={s} path={root.value} open={open} show={show} />
      </section>
      {open && <File key={open} of={s} path={open} gone={() => { show(null); changed.value++; }} />}
    </div>
  );
}

function Directory(p: { of: Sandbox; path: string; open: string | null; show: (path: string) => void }): JSX.Element {
  const all = useSignal<FileInfo[] | null>(null), more = useSignal(false), failed = useSignal<unknown>(null);
  const read = async (): Promise<void> => {
    try {
      const after = all.value?.at(-1)?.name;
      const some = await call<FileInfo[]>(files(p.of, p.path) + "&detail=true&limit=" + page + (after ? "&after=" + seg(after) : ""));
      all.value = (all.value ?? []).concat(some);
      more.value = some.length === page;
      failed.value = null;
    } catch (e) {
      failed.value = e;
    }
  };
  useEffect(() => { void read(); }, []);
  return (
    <>
      <Trouble error={failed.value} again={() => void read()} />
      {all.value?.length === 0 && <p class="faint">Nothing is in {oneLine(p.path)}.</p>}
      <ul class="tree">{(all.value ?? []).map((f) => <Node key={f.name} of={p.of} file={f} path={join(p.path, f.name)} open={p.open} show={p.show} />)}</ul>
      {more.value && <button type="button" onClick={() => void read()}>More of {oneLine(p.path)}</button>}
    </>
  );
}

function Node(p: { of: Sandbox; file: FileInfo; path: string; open: string | null; show: (path: string) => void }): JSX.Element {
  const opened = useSignal(p.open?.startsWith(p.path + "/") ?? false), f = p.file;
  const dir = f.type === "dir" || (f.type === "symlink" && f.target_type === "dir");
  return (
    <li>
      <button type="button" class="plain" aria-expanded={dir ? opened.value : undefined} aria-current={p.path === p.open ? "true" : undefined}
        onClick={() => { if (dir) opened.value = !opened.value; else p.show(p.path); }}>
        <span aria-hidden="true">{dir ? (opened.value ? "▾ " : "▸ ") : "  "}</span>{oneLine(f.name)}{dir ? "/" : ""}
      </button>
      <span class="faint small"> {dir ? "" : bytes(f.size)}{f.target ? " → " + oneLine(f.target) : ""}</span>
      {dir && opened.value && <Directory of={p.of} path={p.path} open={p.open} show={p.show} />}
    </li>
  );
}

// window is how much of a file is shown.
const most = 512 * 1024;

const pictures: Record<string, string> = { png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp" };

function File(p: { of: Sandbox; path: string; gone: () => void }): JSX.Element {
  const info = useSignal<FileInfo | null>(null), text = useSignal<string | null>(null), binary = useSignal(false), picture = useSignal(""), failed = useSignal<unknown>(null), deleting = useSignal(false);
  const address = "/sandboxes/" + p.of.id + "/files/?path=" + seg(p.path);
  useEffect(() => {
    let over = false, url = "";
    const read = async (): Promise<void> => {
      try {
        const i = await call<FileInfo>("/sandboxes/" + p.of.id + "/stat?path=" + seg(p.path));
        const kind = pictures[p.path.toLowerCase().split(".").at(-1) ?? ""];
        const answer = await fetch("/v1" + address, { cache: "no-store", headers: kind && i.size < 20 << 20 ? {} : { Range: "bytes=0-" + (most - 1) } });
        if (!answer.ok && answer.status !== 416) throw new Failure(answer.status, (await answer.json().catch(() => ({}))) as object);
        const body = answer.status === 416 ? new ArrayBuffer(0) : await answer.arrayBuffer();
        if (over) return;
        info.value = i;
        if (kind) {
          // A picture comes by a blob of one of four kinds, whatever the file is.
          url = URL.createObjectURL(new Blob([body], { type: kind }));
          picture.value = url;
          return;
        }
        binary.value = new Uint8Array(body).subarray(0, 8192).includes(0);
        text.value = binary.value ? dump(new Uint8Array(body).subarray(0, 4096)) : shown(new TextDecoder().decode(body));
      } catch (e) {
        failed.value = e;
      }
    };
    void read();
    return () => {
      over = true;
      if (url) URL.revokeObjectURL(url);
    };
  }, [p.path]);
  const i = info.value, name = p.path.slice(p.path.lastIndexOf("/") + 1);
  return (
    <section class="output" aria-label="File">
      <h2><code>{oneLine(p.path)}</code></h2>
      {i && <p class="faint">{bytes(i.size)} · {i.mode} · {oneLine(i.owner ?? String(i.uid))}:{oneLine(i.group ?? String(i.gid))} · changed <Time at={i.modified_at} /></p>}
      <div class="buttons">
        <Action failed={failed} do={() => save(address, name)}>Download</Action>
        {may("sandboxes:write") && <button type="button" class="danger" onClick={() => { deleting.value = true; }}>Delete the file…</button>}
      </div>
      <Trouble error={failed.value} />
      {picture.value && <img src={picture.value} alt={oneLine(name)} class="picture" />}
      {text.value !== null && <>
        {binary.value && <p class="faint">It is not text: its first bytes are shown.</p>}
        {!binary.value && i && i.size > most && <p class="faint">Its first {bytes(most)} are shown; all of it is in the download.</p>}
        <pre class="log" tabIndex={0} aria-label="Contents">{text.value}</pre>
      </>}
      <Dialog title={"Delete " + oneLine(name)} open={deleting}>
        <p>The file is lost, unless a snapshot has it.</p>
        <div class="buttons">
          <Action class="danger" failed={failed} do={async () => { await call(files(p.of, p.path), { method: "DELETE" }); deleting.value = false; p.gone(); }}>Delete it</Action>
          <button type="button" onClick={() => { deleting.value = false; }}>Keep it</button>
        </div>
      </Dialog>
    </section>
  );
}

// dump shows bytes as hexadecimal numbers and letters.
function dump(b: Uint8Array): string {
  const lines: string[] = [];
  for (let i = 0; i < b.length; i += 16) {
    const row = [...b.subarray(i, i + 16)];
    lines.push(i.toString(16).padStart(8, "0") + "  " + row.map((x) => x.toString(16).padStart(2, "0")).join(" ").padEnd(47) + "  " + row.map((x) => (x >= 32 && x < 127 ? String.fromCharCode(x) : ".")).join(""));
  }
  return lines.join("\n");
}

interface Upload { name: string; sent: Signal<number>; size: number; error: Signal<unknown>; done: Signal<boolean>; request: XMLHttpRequest }

// Uploads sends files into a directory, by choice or by drag, one after the other.
function Uploads(p: { of: Sandbox; dir: string; done: () => void }): JSX.Element | null {
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
