// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// A file that is sent whole, with its progress, and can be broken off.
import { Failure } from "../api";
import { bytes, oneLine } from "../format";
import { Trouble } from "./parts";
import { useEffect, useRef, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";

// Send lets one file be chosen, or dropped, and posts it to where path says. done gets the answer.
export function Send(p: { label: string; accept?: string; kind: string; method?: string; path: (file: globalThis.File) => string; done: (answer: unknown) => void }): JSX.Element {
  const input = useRef<HTMLInputElement>(null), request = useRef<XMLHttpRequest | null>(null), name = useSignal(""), sent = useSignal(0), size = useSignal(0), failed = useSignal<unknown>(null), over = useSignal(false);
  useEffect(() => () => request.current?.abort(), []);
  const send = (file: globalThis.File): void => {
    if (request.current) return;
    const r = new XMLHttpRequest();
    request.current = r;
    name.value = file.name;
    sent.value = 0;
    size.value = file.size;
    failed.value = null;
    r.open(p.method ?? "POST", "/v1" + p.path(file));
    r.setRequestHeader("Content-Type", p.kind);
    r.upload.onprogress = (e) => { sent.value = e.loaded; };
    r.onloadend = () => {
      request.current = null;
      name.value = "";
      let answer: object = {};
      try { answer = JSON.parse(r.responseText || "{}") as object; } catch { /* no answer of the server's own */ }
      if (r.status >= 200 && r.status < 300) p.done(answer);
      else failed.value = r.status === 0 ? new Failure(0, { detail: "It was broken off. Nothing was made of what had been sent." }) : new Failure(r.status, answer);
    };
    r.send(file);
  };
  return (
    <div class={"drop" + (over.value ? " over" : "")} onDragOver={(e) => { e.preventDefault(); over.value = true; }} onDragLeave={() => { over.value = false; }}
      onDrop={(e) => { e.preventDefault(); over.value = false; const f = e.dataTransfer?.files[0]; if (f) send(f); }}>
      <input ref={input} type="file" hidden accept={p.accept} onChange={(e) => { const f = e.currentTarget.files?.[0]; if (f) send(f); e.currentTarget.value = ""; }} />
      {name.value ? <span>{oneLine(name.value)} <progress max={size.value || 1} value={sent.value} aria-label={"Upload of " + oneLine(name.value)} /> {sent.value < size.value || size.value === 0 ? bytes(sent.value) + " of " + bytes(size.value) : bytes(size.value) + " are sent; the server reads the last of it"} <button type="button" onClick={() => request.current?.abort()}>Cancel</button></span>
        : <><button type="button" onClick={() => input.current?.click()}>{p.label}</button> <span class="faint small">or drop it here</span></>}
      <Trouble error={failed.value} />
    </div>
  );
}
