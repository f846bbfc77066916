// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Downloads, with progress and cancel. What a script reads goes into a file as it comes where the browser lets it choose one,
// else into a blob, which the browser keeps on its disk when it is large.
import { Failure, raw } from "../api";
import { bytes, oneLine } from "../format";
import { useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";

interface Download { key: number; name: string; got: number; of: number | null; state: string; stop: AbortController }

// Chooser is what browsers have that let a page write the file that somebody chose.
interface Chooser { showSaveFilePicker?: (o: { suggestedName: string }) => Promise<{ createWritable: () => Promise<WritableStream<Uint8Array>> }> }

let count = 0;

// useDownloads returns what begins one, and what shows those that there are. packed: it is compressed on its way into the file.
export function useDownloads(): { get: (path: string, name: string, packed: boolean) => Promise<void>; shown: JSX.Element | null } {
  const all = useSignal<Download[]>([]);
  const set = (key: number, part: Partial<Download>): void => { all.value = all.value.map((d) => (d.key === key ? { ...d, ...part } : d)); };
  const get = async (path: string, name: string, packed: boolean): Promise<void> => {
    const chooser = window as unknown as Chooser;
    let file: WritableStream<Uint8Array> | null = null;
    if (chooser.showSaveFilePicker) {
      try {
        file = await (await chooser.showSaveFilePicker({ suggestedName: name })).createWritable();
      } catch (e) {
        if ((e as DOMException).name === "AbortError") return; // nobody chose one
        throw e;
      }
    }
    const stop = new AbortController(), key = count++;
    all.value = [...all.value, { key, name, got: 0, of: null, state: "", stop }];
    let got = 0, told = 0;
    const counter = new TransformStream<Uint8Array, Uint8Array>({ transform(chunk, c) {
      got += chunk.length;
      if (performance.now() - told > 200) { told = performance.now(); set(key, { got }); }
      c.enqueue(chunk);
    } });
    try {
      const answer = await raw(path, { signal: stop.signal });
      const length = answer.headers.get("Content-Encoding") ? null : Number(answer.headers.get("Content-Length")) || null;
      set(key, { of: length });
      let body: ReadableStream<Uint8Array> = answer.body!.pipeThrough(counter, { signal: stop.signal });
      if (packed) body = body.pipeThrough(new CompressionStream("gzip") as unknown as ReadableWritablePair<Uint8Array, Uint8Array>, { signal: stop.signal });
      if (file) await body.pipeTo(file, { signal: stop.signal }); // a file that is not complete is not kept
      else {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(await new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>).blob());
        link.download = name;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      }
      set(key, { got, state: "downloaded, " + bytes(got) });
    } catch (e) {
      if (file && !file.locked) await file.abort().catch(() => { /* It is closed by then. */ });
      if (stop.signal.aborted) { set(key, { state: "canceled" }); return; }
      set(key, { state: "broken off" });
      throw e instanceof Failure ? e : new Failure(0, { detail: "The download was broken off. No half file is kept.", remedy: "Try again." });
    }
  };
  const shown = all.value.length === 0 ? null : (
    <ul class="files" aria-label="Downloads">{all.value.map((d) => (
      <li key={d.key}>{oneLine(d.name)} {d.state || <><progress {...(d.of ? { max: d.of, value: d.got } : {})} aria-label={"Download of " + oneLine(d.name)} /> {bytes(d.got)}{d.of ? " of " + bytes(d.of) : ""} <button type="button" onClick={() => d.stop.abort()}>Cancel</button></>}</li>
    ))}</ul>
  );
  return { get, shown };
}
