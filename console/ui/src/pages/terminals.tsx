// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Terminals of a sandbox. They are the sandbox's: a reload or a restart of the server joins them again.
import { call, may, seg } from "../api";
import { oneLine } from "../format";
import { Action, Trouble } from "../parts/parts";
import { useActivity, whileSeen } from "../parts/again";
import { Later } from "../parts/later";
import { go, query } from "../router";
import { useEffect, useRef, useSignal } from "../vendor/core";
import type { JSX } from "../vendor/core";
import type { Process, ProcessList, Sandbox, TerminalControl } from "../wire";

// last is which terminal of a sandbox was looked at.
const last = new Map<string, string>();

export function Terminals(p: { of: Sandbox }): JSX.Element {
  const s = p.of, list = useSignal<Process[]>([]), read = useSignal(false), failed = useSignal<unknown>(null);
  const open = query.value.get("terminal");
  const load = async (): Promise<void> => {
    try {
      list.value = (await call<ProcessList>("/sandboxes/" + s.id + "/terminals")).items;
      failed.value = null;
      read.value = true;
    } catch (e) {
      failed.value = e;
    }
  };
  useActivity(s.id, load, [s.status]);
  // One that is open is shown again: the last that was looked at here, else the newest.
  useEffect(() => {
    if (open) last.set(s.id, open);
    else if (read.value && list.value.length > 0 && may("sandboxes:write")) show((list.value.find((one) => one.process_id === last.get(s.id)) ?? list.value.at(-1)!).process_id);
  }, [s.id, open, read.value, list.value]);
  const preview = query.value.get("preview");
  const show = (id: string): void => go("/sandboxes/" + seg(s.id) + "/terminal?terminal=" + seg(id) + (preview ? "&preview=" + seg(preview) : ""), true);
  const write = may("sandboxes:write");
  const begin = async (user?: string): Promise<void> => {
    const one = await call<Process>("/sandboxes/" + s.id + "/processes", { method: "POST", body: { argv: ["/bin/bash", "-l"], tty: true, ...(user ? { user } : {}) } });
    await load();
    show(one.process_id);
  };
  return (
    <section aria-label="Terminals">
      <div class="buttons">
        {list.value.map((one) => <button type="button" key={one.process_id} aria-pressed={one.process_id === open} onClick={() => show(one.process_id)}>{oneLine(one.name ?? one.command ?? (one.argv ?? []).join(" "))} <span class="faint">{oneLine(one.user)} · {one.pid}</span></button>)}
        {write && <Action failed={failed} class="primary" do={() => begin()}>New terminal</Action>}
        {write && <Action failed={failed} do={() => begin("root")}>New terminal as root</Action>}
      </div>
      <Trouble error={failed.value} />
      {read.value && list.value.length === 0 && !open && <p class="empty">No terminal is open. {write ? "A new one stays when you leave, until its shell ends." : "This token may only read."}</p>}
      <div class={"beside" + (preview && open ? " two" : "")}>
        {open && write && <Screen key={open} of={s} process={open} ended={() => void load()} />}
        {write && <Later quiet page={(m) => <m.Beside of={s} />} />}
      </div>
    </section>
  );
}

// Screen is one terminal.
function Screen(p: { of: Sandbox; process: string; ended: () => void }): JSX.Element {
  const box = useRef<HTMLDivElement>(null), leave = useRef<HTMLButtonElement>(null);
  const status = useSignal("Joining…"), watching = useSignal(false), words = useSignal(""), find = useRef<((text: string) => void) | null>(null);
  const reader = useSignal(localStorage.getItem("reader") === "on"), options = useRef<{ screenReaderMode?: boolean } | null>(null);
  useEffect(() => {
    let over = false, socket: WebSocket | null = null, timer = 0;
    const clean: (() => void)[] = [];
    void (async () => {
      const { Terminal, FitAddon, SearchAddon } = await import("../vendor/terminal");
      await style();
      if (over || !box.current) return;
      const dark = getComputedStyle(document.documentElement).getPropertyValue("--terminal-fg").trim();
      const terminal = withNonce(() => {
        const t = new Terminal({
          fontFamily: "ui-monospace, monospace", fontSize: 14, scrollback: 10_000, screenReaderMode: reader.value, allowProposedApi: true,
          theme: { background: getComputedStyle(document.documentElement).getPropertyValue("--terminal-bg").trim(), foreground: dark, cursor: dark },
          // What a program calls a link is shown before it opens, and is one of the web.
          linkHandler: { activate: (_, to) => visit(to), allowNonHttpProtocols: false },
        });
        t.open(box.current!);
        return t;
      });
      const fit = new FitAddon(), search = new SearchAddon();
      terminal.loadAddon(fit);
      terminal.loadAddon(search);
      options.current = terminal.options;
      find.current = (text) => { search.findNext(text); };
      // Tab and all else belong to the program; this is the way out, and it is written beside the terminal.
      terminal.attachCustomKeyEventHandler((e) => {
        if (e.type === "keydown" && e.ctrlKey && e.shiftKey && e.key === "Escape") {
          leave.current?.focus();
          return false;
        }
        return true;
      });
      const send = (data: string | Uint8Array<ArrayBuffer>): void => { if (socket?.readyState === WebSocket.OPEN) socket.send(data); };
      const text = new TextEncoder();
      terminal.onData((data) => { if (!watching.value) send(text.encode(data)); });
      terminal.onBinary((data) => { if (!watching.value) send(Uint8Array.from(data, (c) => c.charCodeAt(0))); });
      const size = (): void => { if (!watching.value) send(JSON.stringify({ resize: { cols: terminal.cols, rows: terminal.rows } })); };
      terminal.onResize(size);
      const observer = new ResizeObserver(() => fit.fit());
      observer.observe(box.current);
      clean.push(() => observer.disconnect(), () => terminal.dispose());
      fit.fit();
      terminal.focus();
      let ended = false;
      let seen = false;
      const join = (): void => {
        clearTimeout(timer);
        seen = true;
        if (over || ended || (socket && socket.readyState <= WebSocket.OPEN)) return;
        socket = new WebSocket(location.origin.replace(/^http/, "ws") + "/v1/sandboxes/" + p.of.id + "/terminals/" + seg(p.process));
        socket.binaryType = "arraybuffer";
        let first = true;
        socket.onopen = () => { status.value = ""; terminal.reset(); size(); };
        socket.onmessage = (e: MessageEvent<ArrayBuffer | string>) => {
          if (typeof e.data !== "string") {
            terminal.write(new Uint8Array(e.data));
            if (first) { first = false; size(); }
            return;
          }
          const control = JSON.parse(e.data) as TerminalControl;
          if (control.exit) {
            ended = true;
            status.value = "It ended: " + (control.exit.signal ? control.exit.signal : "exit " + control.exit.exit_code) + ".";
            p.ended();
          } else if (control.error ?? control.refused) status.value = oneLine((control.error ?? control.refused)!.detail);
        };
        socket.onclose = () => {
          if (over || ended || !seen) return;
          status.value = "The connection is lost; joining again…";
          timer = window.setTimeout(() => {
            call<Process>("/sandboxes/" + p.of.id + "/processes/" + seg(p.process)).then((one) => {
              if (one.status === "running") join();
              else { ended = true; status.value = "It has ended."; p.ended(); }
            }, join);
          }, 500);
        };
      };
      // A tab that nobody looks at leaves it; a moment is no leaving.
      let leaving = 0;
      const letGo = (): void => {
        seen = false;
        clearTimeout(timer);
        socket?.close();
        socket = null;
      };
      clean.push(whileSeen(() => { clearTimeout(leaving); join(); }, () => { leaving = window.setTimeout(letGo, over ? 0 : 1000); }));
    })();
    return () => {
      over = true;
      clearTimeout(timer);
      socket?.close();
      for (const f of clean) f();
    };
  }, [p.process]);
  return (
    <div class="screen">
      <p class="faint small">Ctrl+Shift+Escape leaves the terminal for the keyboard. <span role="status">{status.value}</span></p>
      <div ref={box} class="xterm-box" />
      <div class="buttons">
        <button type="button" ref={leave} aria-pressed={watching.value} onClick={() => { watching.value = !watching.value; }}>Watch without typing</button>
        <button type="button" aria-pressed={reader.value} title="What a program writes is read out as it comes" onClick={() => {
          reader.value = !reader.value;
          localStorage.setItem("reader", reader.value ? "on" : "off");
          if (options.current) options.current.screenReaderMode = reader.value;
        }}>For a screen reader</button>
        <label>Search <input type="search" value={words.value} onInput={(e) => { words.value = e.currentTarget.value; find.current?.(words.value); }} onKeyDown={(e) => { if (e.key === "Enter") find.current?.(words.value); }} /></label>
      </div>
    </div>
  );
}

function visit(to: string): void {
  if (/^https?:/i.test(to) && confirm("Open this address, which a program in the sandbox wrote?\n\n" + oneLine(to))) open(to, "_blank", "noopener,noreferrer");
}

let stamped = false;

// withNonce makes a terminal whose style elements have the page's nonce from their creation on: the page's policy
// refuses them without it. The terminal makes some at once and others as it draws, so that the stamp stays.
function withNonce<T>(make: () => T): T {
  if (!stamped) {
    stamped = true;
    const nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce ?? "";
    const plain = document.createElement.bind(document);
    document.createElement = ((name: string, o?: ElementCreationOptions) => {
      const e = plain(name, o);
      if (e instanceof HTMLStyleElement) e.nonce = nonce;
      return e;
    }) as typeof document.createElement;
  }
  return make();
}

let styled: Promise<void> | null = null;

// style loads the terminal's own style, once.
function style(): Promise<void> {
  return (styled ??= new Promise((done, failed) => {
    const l = document.createElement("link");
    l.rel = "stylesheet";
    l.href = document.querySelector<HTMLMetaElement>('meta[name="terminal-style"]')!.content;
    l.onload = () => done();
    l.onerror = () => failed(new Error("the terminal's style cannot be loaded"));
    document.head.append(l);
  }));
}
