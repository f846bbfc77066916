// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Files of a sandbox: a tree that is read as it opens and follows what happens, and one file beside it.
import { call, Failure, may, raw, seg } from "../api";
import { bytes, oneLine } from "../format";
import { useDownloads } from "../parts/download";
import { Action, Dialog, Field, Trouble } from "../parts/parts";
import { go, query } from "../router";
import { useComputed, useEffect, useRef, useSignal } from "../vendor/core";
import type { JSX, Signal } from "../vendor/core";
import type { FileInfo, Sandbox } from "../wire";
import { baseName, File } from "./file";
import { Uploads } from "./uploads";
import { useWatch } from "./watch";
import type { Watch } from "./watch";

// page is how many entries of a directory are read at a time.
const page = 500;

export const files = (s: Sandbox, path: string): string => "/sandboxes/" + s.id + "/files?path=" + seg(path);
export const join = (dir: string, name: string): string => (dir === "/" ? "/" : dir + "/") + name;

// Entry is what something is to be done with.
interface Entry { path: string; dir: boolean }

interface Tree { of: Sandbox; open: string | null; watch: Watch; show: (path: string) => void; act: (on: Entry) => void }

export function Files(p: { of: Sandbox }): JSX.Element {
  const s = p.of, open = query.value.get("file"), root = useSignal(query.value.get("dir") ?? s.workspace_path), acting = useSignal<Entry | null>(null), acts = useSignal(false), downloads = useDownloads(), failed = useSignal<unknown>(null);
  const show = (path: string | null): void => go("/sandboxes/" + seg(s.id) + "/files" + (path ? "?file=" + seg(path) : ""), true);
  const watch = useWatch(s, root.value, open);
  const tree: Tree = { of: s, open, watch, show, act: (on) => { acting.value = on; acts.value = true; } };
  const fileTick = useComputed(() => watch.changes.value.get(open ?? "") ?? 0);
  return (
    <div class="split wide">
      <section aria-label="Tree">
        <form class="filters" onSubmit={(e) => { e.preventDefault(); const at = ((e.currentTarget as HTMLFormElement).elements.namedItem("root") as HTMLInputElement).value; root.value = at.length > 1 ? at.replace(/\/+$/, "") || "/" : at || "/"; }}>
          <label>Directory <input name="root" defaultValue={root.value} spellcheck={false} /></label><button type="submit">Go</button>
          <button type="button" onClick={() => tree.act({ path: root.value, dir: true })}>New, download…</button>
        </form>
        <p class="faint small" role="status">{watch.says.value} {!watch.live.value && <button type="button" class="plain" onClick={() => watch.again()}>Read again</button>}</p>
        <Uploads of={s} dir={root.value} done={() => { watch.touch(root.value); }} />
        {downloads.shown}
        <Trouble error={failed.value} />
        <Directory key={root.value} tree={tree} path={root.value} />
      </section>
      {open && <File key={open} of={s} path={open} changed={fileTick.value} gone={() => { watch.touch(parent(open)); show(null); }} show={(path) => { watch.touch(parent(open)); watch.touch(parent(path)); show(path); }} />}
      {acting.value && <Deeds key={acting.value.path} tree={tree} on={acting.value} root={root.value} open={acts} failed={failed} get={downloads.get} />}
    </div>
  );
}

const parent = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf("/")));

function Directory(p: { tree: Tree; path: string; nested?: boolean }): JSX.Element {
  const all = useSignal<FileInfo[] | null>(null), more = useSignal(false), failed = useSignal<unknown>(null), reading = useRef(0), s = p.tree.of;
  // read reads so many pages anew, so that what is shown is of one time.
  const read = async (pages: number): Promise<void> => {
    const turn = ++reading.current;
    try {
      let got: FileInfo[] = [], full = true;
      for (let i = 0; i < pages && full; i++) {
        const after = got.at(-1)?.name;
        const some = await call<FileInfo[]>(files(s, p.path) + "&detail=true&limit=" + page + (after ? "&after=" + seg(after) : ""));
        full = some.length === page;
        got = got.concat(some);
      }
      if (turn !== reading.current) return; // a later one has begun
      all.value = got;
      more.value = full;
      failed.value = null;
    } catch (e) {
      // One within the tree that is gone goes from the tree with the next look at where it was.
      if (p.nested && e instanceof Failure && e.status === 404) p.tree.watch.touch(parent(p.path));
      else if (turn === reading.current) failed.value = e;
    }
  };
  const pages = (): number => Math.max(1, Math.ceil((all.value?.length ?? 0) / page));
  const tick = useComputed(() => p.tree.watch.changes.value.get(p.path) ?? 0);
  useEffect(() => p.tree.watch.follow(p.path), [p.path]);
  useEffect(() => { void read(pages()); }, [tick.value]);
  return (
    <>
      <Trouble error={failed.value} again={() => void read(pages())} />
      {all.value?.length === 0 && <p class="faint">Nothing is in {oneLine(p.path)}.</p>}
      <ul class="tree">{(all.value ?? []).map((f) => <Node key={f.name} tree={p.tree} file={f} path={join(p.path, f.name)} />)}</ul>
      {more.value && <button type="button" onClick={() => void read(pages() + 1)}>More of {oneLine(p.path)}</button>}
    </>
  );
}

function Node(p: { tree: Tree; file: FileInfo; path: string }): JSX.Element {
  const t = p.tree, opened = useSignal(t.open?.startsWith(p.path + "/") ?? false), f = p.file;
  const dir = f.type === "dir" || (f.type === "symlink" && f.target_type === "dir");
  return (
    <li>
      <button type="button" class="plain" aria-expanded={dir ? opened.value : undefined} aria-current={p.path === t.open ? "true" : undefined}
        onClick={() => { if (dir) opened.value = !opened.value; else t.show(p.path); }}>
        <span aria-hidden="true">{dir ? (opened.value ? "▾ " : "▸ ") : "  "}</span>{oneLine(f.name)}{dir ? "/" : ""}
      </button>
      <span class="faint small"> {dir ? "" : bytes(f.size)}{f.target ? " → " + oneLine(f.target) : ""}</span>
      {f.type === "dir" && <button type="button" class="plain more" aria-label={"What to do with " + oneLine(f.name)} onClick={() => t.act({ path: p.path, dir: true })}>⋯</button>}
      {dir && opened.value && <Directory tree={t} path={p.path} nested />}
    </li>
  );
}

// mostCounted is how many entries of a directory are counted before it is deleted.
const mostCounted = 2000;

// Deeds are what can be done with a directory.
function Deeds(p: { tree: Tree; on: Entry; root: string; open: Signal<boolean>; failed: Signal<unknown>; get: (path: string, name: string, packed: boolean) => Promise<void> }): JSX.Element {
  const { of: s, watch, show } = p.tree, path = p.on.path, name = useSignal(""), to = useSignal(path), loss = useSignal(""), sure = useSignal(false), failed = useSignal<unknown>(null);
  const is = path !== p.root; // the root is not taken away under the page
  const done = (...changed: string[]): void => { for (const c of changed) watch.touch(c); p.open.value = false; };
  const count = async (): Promise<void> => {
    const all = await call<FileInfo[]>(files(s, path) + "&detail=true&depth=32&limit=" + mostCounted);
    const of = (type: string): number => all.filter((f) => (type === "dir") === (f.type === "dir")).length, more = all.length >= mostCounted ? "more than " : "";
    loss.value = all.length === 0 ? "Nothing is in it." : more + of("file") + (of("file") === 1 ? " file" : " files") + " and " + of("dir") + (of("dir") === 1 ? " directory" : " directories") + " in it, " + more + bytes(all.reduce((n, f) => n + (f.type === "file" ? f.size : 0), 0)) + ", are lost, unless a snapshot has them.";
    sure.value = true;
  };
  return (
    <Dialog title={oneLine(path)} open={p.open}>
      <form onSubmit={(e) => e.preventDefault()}>
        <Trouble error={failed.value} />
        <div class="buttons"><button type="button" onClick={() => { p.open.value = false; p.get("/sandboxes/" + s.id + "/archive?path=" + seg(path), (baseName(path) || "root") + ".tar.gz", true).catch((e: unknown) => { p.failed.value = e; }); }}>Download all of it (.tar.gz)</button></div>
        {may("sandboxes:write") && <>
          <Field label="New file or directory in it">{(id) => <input id={id} value={name.value} spellcheck={false} autocomplete="off" onInput={(e) => { name.value = e.currentTarget.value; }} />}</Field>
          <div class="buttons">
            <Action failed={failed} disabled={name.value === ""} do={async () => {
              const at = join(path, name.value);
              await raw(files(s, at) + "&parents=true", { method: "PUT", headers: { "Content-Type": "application/octet-stream", "If-None-Match": "*" }, body: "" });
              done(path);
              show(at);
            }}>Make the file</Action>
            <Action failed={failed} disabled={name.value === ""} do={async () => { await call("/sandboxes/" + s.id + "/mkdir", { method: "POST", body: { path: join(path, name.value), parents: false } }); done(path); }}>Make the directory</Action>
          </div>
          {is && <>
            <Field label="New path">{(id) => <input id={id} value={to.value} spellcheck={false} onInput={(e) => { to.value = e.currentTarget.value; }} />}</Field>
            <div class="buttons"><Action failed={failed} disabled={to.value === "" || to.value === path} do={async () => { await call("/sandboxes/" + s.id + "/move", { method: "POST", body: { from: path, to: to.value } }); done(parent(path), parent(to.value)); if (p.tree.open?.startsWith(path + "/")) show(to.value + p.tree.open.slice(path.length)); }}>Rename the directory</Action></div>
            <h3>Delete</h3>
            {!sure.value && <div class="buttons"><Action failed={failed} class="danger" do={count}>Delete the directory…</Action></div>}
            {sure.value && <><p role="status">{loss.value}</p><div class="buttons"><Action failed={failed} class="danger" do={async () => {
              await call(files(s, path) + "&recursive=true", { method: "DELETE" });
              done(parent(path));
              if (p.tree.open?.startsWith(path + "/")) p.tree.show("");
            }}>Delete all of it</Action></div></>}
          </>}
        </>}
        <div class="buttons"><button type="button" onClick={() => { p.open.value = false; }}>Close</button></div>
      </form>
    </Dialog>
  );
}
