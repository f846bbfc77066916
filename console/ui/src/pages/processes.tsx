// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Commands that run and ran, with their output.
import { call, may, save, seg } from "../api";
import { Painter } from "../ansi";
import { bytes, exact, millis, oneLine, span } from "../format";
import { Action, now, Time, Trouble } from "../parts/parts";
import { Top } from "../parts/top";
import { useActivity, whileSeen } from "../parts/again";
import { Output } from "../parts/output";
import { go, query } from "../router";
import { useEffect, useRef, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { Output as Bytes, OutputGap, Process, ProcessList, Sandbox } from "../wire";

export const commandOf = (c: { command?: string; argv?: string[] }): string => oneLine(c.command ?? (c.argv ?? []).join(" "));

// ended says how a command ended, and by whom it was sent a signal.
export function ended(p: Partial<Pick<Process, "exit_code" | "signal" | "signaled_by" | "signaled_with">> & { status?: string }): string {
  if (p.status === "running") return "running";
  const how = p.signal ? oneLine(p.signal) : "exit " + (p.exit_code ?? "?"), by = p.signaled_by === "system" ? "the server" : oneLine(p.signaled_by ?? "");
  if (by === "") return how;
  return p.signal === p.signaled_with ? "killed by " + by + " with " + how : how + ", after " + oneLine(p.signaled_with ?? "") + " by " + by;
}

// took is how long a command ran, or has run.
const took = (p: Process): string => (p.status === "running" ? span(Math.max(0, (now.value - Date.parse(p.started_at)) / 1000)) : millis(p.duration_ms));

export function Processes(p: { of: Sandbox }): JSX.Element {
  const s = p.of, list = useSignal<Process[] | null>(null), failed = useSignal<unknown>(null);
  const up = s.status === "running" || s.status === "paused";
  const open = query.value.get("process");
  const read = async (): Promise<void> => {
    try {
      list.value = (await call<ProcessList>("/sandboxes/" + s.id + "/processes?sort_order=desc&limit=100")).items;
      failed.value = null;
    } catch (e) {
      failed.value = e;
    }
  };
  useActivity(s.id, read, [up]);
  const show = (id: string | null): void => go("/sandboxes/" + seg(s.id) + "/processes" + (id ? "?process=" + seg(id) : ""), true);
  return <>
    <div class="split">
      {open && <Follow key={open} of={s} process={open} close={() => show(null)} ended={(one) => { list.value = list.value?.map((o) => (o.process_id === one.process_id ? one : o)) ?? null; }} />}
      <section aria-label="Processes">
        <Trouble error={failed.value} again={() => void read()} />
        {list.value?.length === 0 && <div class="empty"><p>Nothing has run here yet. Run a command:</p><pre>{"sandpit exec " + (s.key ?? s.id) + " -- echo hello"}</pre></div>}
        {list.value !== null && list.value.length > 0 && <table class="list">
          <thead><tr><th>Command</th><th>State</th><th>Started</th><th>Took</th></tr></thead>
          <tbody>{list.value.map((one) => (
            <tr key={one.process_id} class={one.process_id === open ? "chosen" : ""}>
              <td><button type="button" class="plain" aria-expanded={one.process_id === open} onClick={() => show(one.process_id === open ? null : one.process_id)}><code>{commandOf(one) || "–"}</code></button></td>
              <td><span class={one.status === "running" ? "good" : one.exit_code === 0 ? "" : "bad"}>{ended(one)}</span></td>
              <td><Time at={one.started_at} /></td>
              <td>{took(one)}</td>
            </tr>
          ))}</tbody>
        </table>}
      </section>
    </div>
    <Top of={s} />
  </>;
}

// Follow shows the output of one process, from its beginning, as it comes; after a lost connection it goes on where it was.
export function Follow(p: { of: Sandbox; process: string; close: () => void; ended: (one: Process) => void }): JSX.Element {
  const path = "/sandboxes/" + p.of.id + "/processes/" + seg(p.process);
  const drawn = useSignal(0), process = useSignal<Process | null>(null), failed = useSignal<unknown>(null), words = useSignal(""), input = useSignal("");
  const log = useRef<HTMLDivElement>(null), whole = useRef<HTMLElement>(null), stick = useRef(true), output = useRef(new Output());
  useEffect(() => {
    let source: EventSource | null = null, timer = 0, last = "", over = false, frame = 0;
    const out = (output.current = new Output());
    const painters: Record<string, Painter> = { stdout: new Painter(), stderr: new Painter() };
    const flush = (): void => {
      frame = out.take() ? requestAnimationFrame(flush) : 0;
      drawn.value++;
    };
    const add = (stream: string, text: string): void => {
      const painter = painters[stream];
      out.add(stream, text, (t) => (painter ? painter.paint(t) : [{ text: t, style: "" }]));
      frame ||= requestAnimationFrame(flush);
    };
    const begin = (): void => {
      clearTimeout(timer);
      if (over || source) return;
      source = new EventSource("/v1" + path + "/output?" + (last ? "cursor=" + last : "recent=1048576"));
      for (const stream of ["stdout", "stderr"]) source.addEventListener(stream, (e) => {
        const m = e as MessageEvent<string>;
        last = m.lastEventId || last;
        add(stream, (JSON.parse(m.data) as Bytes).data);
      });
      source.addEventListener("gap", (e) => {
        const g = JSON.parse((e as MessageEvent<string>).data) as OutputGap;
        add("gap", "[" + bytes(g.bytes) + " left out: " + oneLine(g.why) + "]\n");
      });
      source.addEventListener("exit", (e) => {
        process.value = JSON.parse((e as MessageEvent<string>).data) as Process;
        p.ended(process.value);
        over = true;
        end();
      });
      source.addEventListener("end", () => { over = true; end(); });
      source.onerror = () => {
        end();
        if (!over && !document.hidden) timer = window.setTimeout(begin, 500);
      };
    };
    const end = (): void => {
      clearTimeout(timer);
      source?.close();
      source = null;
    };
    const leave = whileSeen(begin, end);
    call<Process>(path).then((one) => { process.value ??= one; }, (e: unknown) => { failed.value = e; });
    return () => {
      over = true;
      leave();
      if (frame) cancelAnimationFrame(frame);
    };
  }, [path]);
  useEffect(() => { whole.current?.scrollIntoView({ block: "nearest" }); }, []);
  const out = output.current, step = drawn.value;
  useEffect(() => { if (stick.current && log.current) log.current.scrollTop = log.current.scrollHeight; }, [step]);
  const one = process.value, running = one?.status === "running", write = may("sandboxes:write");
  const text = words.value.toLowerCase();
  const signalled = (name: string) => (): Promise<unknown> => call(path + "/signal", { method: "POST", body: { signal: name } });
  return (
    <section ref={whole} class="output" aria-label="Output">
      <h2><code>{one ? commandOf(one) : p.process}</code></h2>
      {one && <p class="faint">{ended(one)} · as {oneLine(one.user)} in {oneLine(one.cwd)} · <span title={exact(one.started_at)}>{took(one)}</span>{one.cause && one.cause !== "exit" ? " · " + oneLine(one.cause) : ""}{one.cause_detail ? ": " + oneLine(one.cause_detail) : ""}</p>}
      <div class="buttons">
        <label>Search <input type="search" value={words.value} onInput={(e) => { words.value = e.currentTarget.value; }} /></label>
        {running && write && <>
          <Action failed={failed} do={signalled("SIGINT")}>Interrupt</Action>
          <Action failed={failed} class="danger" do={() => call(path, { method: "DELETE" })}>Kill</Action>
        </>}
        <Action failed={failed} do={() => save(path + "/logs", p.process + ".log")}>Download</Action>
        <button type="button" onClick={p.close}>Close</button>
      </div>
      <Trouble error={failed.value} />
      {out.dropped > 0 && <p class="faint small">{bytes(out.dropped)} before this are in the download.</p>}
      <div ref={log} class="log" role="region" tabIndex={0} aria-label="Output of the command" onScroll={(e) => { const l = e.currentTarget; stick.current = l.scrollTop + l.clientHeight > l.scrollHeight - 30; }}>
        {text === "" ? out.draw() : out.find(text, 2000)}
      </div>
      {running && write && !one.tty && <details><summary>Send input</summary><p class="faint small">Only a command that was started with its standard input open takes it.</p><form class="input" onSubmit={(e) => {
        e.preventDefault();
        const line = input.value;
        call(path + "/stdin", { method: "POST", body: { data: line + "\n" } }).then(() => { input.value = ""; failed.value = null; }, (error: unknown) => { failed.value = error; });
      }}><label>Input <input value={input.value} autocomplete="off" onInput={(e) => { input.value = e.currentTarget.value; }} /></label> <button type="submit">Send</button></form></details>}
    </section>
  );
}
