// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// A preview in a frame: a page of a stranger's, of another origin, which the page's policy lets be one of a preview's host alone.
import { call, may } from "../api";
import { oneLine } from "../format";
import { go, query } from "../router";
import { useEffect, useRef, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { PreviewLink, PreviewLinkList, Sandbox } from "../wire";
import { useEvery } from "./again";

// frames reports whether previews can be shown in frames: the server says so by the policy of its pages, and here.
export const frames = (): boolean => may("sandboxes:write") && document.querySelector<HTMLMetaElement>('meta[name="frames"]')?.content !== "";

// Frame shows what a link opens. What the page may do is what a program's own pages need to run: its scripts, its own storage, its forms. It
// opens no window, leads this page nowhere, and is told of no address of the console's.
export function Frame(p: { link: PreviewLink; close: () => void }): JSX.Element {
  const times = useSignal(0), name = "Preview of port " + p.link.port, box = useRef<HTMLElement>(null);
  useEffect(() => box.current?.scrollIntoView({ block: "nearest" }), []);
  return (
    <section ref={box} class="preview" aria-label={name}>
      <div class="buttons">
        <b>Port {p.link.port}</b>
        <button type="button" onClick={() => { times.value++; }}>Load it again</button>
        <a href={p.link.url} target="_blank" rel="noopener noreferrer">Open it in a tab</a>
        <button type="button" onClick={p.close}>Close the preview</button>
      </div>
      <iframe key={times.value} src={p.link.url} title={name} sandbox="allow-scripts allow-same-origin allow-forms" referrerpolicy="no-referrer" allow="" />
    </section>
  );
}

// Beside shows a preview beside something else of a sandbox. Which it is, the address says.
export function Beside(p: { of: Sandbox }): JSX.Element | null {
  const s = p.of, links = useSignal<PreviewLink[]>([]), id = query.value.get("preview") ?? "";
  // To list links is no use of the sandbox.
  useEvery(5000, async () => {
    if (!frames()) return;
    try {
      links.value = (await call<PreviewLinkList>("/sandboxes/" + s.id + "/preview-links")).items.filter((l) => l.url);
    } catch {
      // What is shown stays as it is; the page says what is wrong with the server.
    }
  }, [s.id]);
  const link = links.value.find((l) => l.id === id);
  const show = (which: string): void => {
    const to = new URLSearchParams(query.value);
    if (which) to.set("preview", which);
    else to.delete("preview");
    go("/sandboxes/" + encodeURIComponent(s.id) + "/terminal" + (to.size > 0 ? "?" + to : ""), true);
  };
  if (links.value.length === 0 && !id) return null;
  return (
    <div class="besides">
      <label>Beside it <select value={link ? id : ""} onChange={(e) => show(e.currentTarget.value)}>
        <option value="">nothing</option>
        {links.value.map((l) => <option key={l.id} value={l.id}>port {l.port}, a link by {oneLine(l.created_by)}</option>)}
      </select></label>
      {id && !link && links.value.length > 0 && <p class="faint" role="status">The link to what was shown here is revoked, or over.</p>}
      {link && <Frame key={link.id} link={link} close={() => show("")} />}
    </div>
  );
}
