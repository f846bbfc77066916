// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// What everything else is in: who is signed in, where one is, whether the server is there.
import { known, may, signIn, signOut, who } from "./api";
import { oneLine, span } from "./format";
import { away, follow } from "./live";
import { Failure } from "./api";
import { Action, Link, now, Trouble } from "./parts/parts";
import { Access } from "./pages/access";
import { Audit } from "./pages/audit";
import { Later } from "./parts/later";
import { nameColumns } from "./parts/narrow";
import { openPalette, Palette } from "./parts/palette";
import { SandboxPage } from "./pages/sandbox";
import { Sandboxes } from "./pages/sandboxes";
import { SignIn } from "./pages/signin";
import { at, base, go, path } from "./router";
import { effect, render, signal, useEffect, useRef, useSignal } from "./vendor/core";
import type { JSX } from "./vendor/core";

const failed = signal<unknown>(null);

// themes are the page's: as the system has it, or by choice.
const themes = ["auto", "light", "dark"] as const;
const theme = signal<string>(sessionTheme());

function sessionTheme(): string {
  const kept = localStorage.getItem("theme");
  return kept === "light" || kept === "dark" ? kept : "auto";
}

function Away(): JSX.Element | null {
  if (!away.value) return null;
  const since = Math.round((now.value - away.value.getTime()) / 1000);
  return <p class="away" role="status">The server has not answered for {span(Math.max(1, since))}. What you see is as it was then; this page goes on by itself.</p>;
}

// groups are the pages that the header leads to, by what they are about, and the scope that each needs.
const groups: [string, [string, string, string][]][] = [
  ["Sandboxes", [["/overview", "Overview", ""], ["/sandboxes", "Sandboxes", ""]]],
  ["What sandboxes are made of", [["/images", "Images", ""], ["/templates", "Templates", ""], ["/snapshots", "Snapshots", ""], ["/volumes", "Volumes", ""], ["/skills", "Skills", ""]]],
  ["The server", [["/connect", "Connect", ""], ["/access", "Access", ""], ["/audit", "Audit", "admin"], ["/settings", "Settings", "server:admin"]]],
];

// menu says whether the pages are shown where there is little room.
const menu = signal(false);

function Pages(): JSX.Element {
  return (
    <nav id="pages" aria-label="Pages" class={menu.value ? "open" : ""} onClick={() => { menu.value = false; }}>
      {groups.map(([name, pages]) => (
        <div key={name} role="group" aria-label={name}>
          <span class="group" aria-hidden="true">{name}</span>
          {pages.filter(([, , scope]) => scope === "" || may(scope)).map(([to, title]) => <Link key={to} to={to} current={path.value === to || path.value.startsWith(to + "/")}>{title}</Link>)}
        </div>
      ))}
    </nav>
  );
}

function Header(): JSX.Element {
  return (
    <header class="top">
      <a class="skip" href="#content">Skip to the page</a>
      <Link to="/sandboxes" class="brand">sandpit</Link>
      <button type="button" class="menu" aria-expanded={menu.value} aria-controls="pages" onClick={() => { menu.value = !menu.value; }}>Menu</button>
      <Pages />
      <span class="who">
        <button type="button" onClick={openPalette}>Go to… <kbd>Ctrl K</kbd></button>
        <span class="faint">{who.value!.name} · {who.value!.project}{may("sandboxes:write") ? "" : " · may only read"}</span>
        <label>Theme <select value={theme.value} onChange={(e) => { theme.value = (e.currentTarget as HTMLSelectElement).value; localStorage.setItem("theme", theme.value); }}>
          {themes.map((t) => <option key={t} value={t}>{t}</option>)}
        </select></label>
        <button type="button" onClick={() => { signOut().catch((e: unknown) => { failed.value = e; }); }}>Sign out</button>
      </span>
    </header>
  );
}

function Page(): JSX.Element {
  const [first, second, third] = at();
  if (first === "sandboxes" && second) return <SandboxPage id={second} tab={third ?? ""} />;
  if (first === "images") return <Later page={(m) => <m.Images />} />;
  if (first === "access") return <Access />;
  if (first === "audit") return <Audit />;
  if (first === "overview") return <Later page={(m) => <m.Overview />} />;
  if (first === "settings") return <Later page={(m) => <m.Settings />} />;
  if (first === "connect") return <Later page={(m) => <m.Connect />} />;
  if (first === "snapshots") return <Later page={(m) => <m.Snapshots />} />;
  if (first === "volumes") return <Later page={(m) => <m.Volumes />} />;
  if (first === "templates") return <Later page={(m) => <m.Templates />} />;
  if (first === "skills") return <Later page={(m) => <m.Skills />} />;
  if (first === "sandboxes" || first === undefined) return <Sandboxes />;
  return <section><h1>There is no such page</h1><p><Link to="/sandboxes">Sandboxes</Link> are here.</p></section>;
}

// offered is a code that the address had while somebody was signed in already.
const offered = signal("");

// Instead asks before a code takes the place of who is signed in: whoever has people open such an address would see what they do from then
// on as his own.
function Instead(): JSX.Element {
  const wrong = useSignal<unknown>(null), me = oneLine(who.value!.name), stay = useRef<HTMLButtonElement>(null);
  useEffect(() => { document.title = "Sign in by a code? · sandpit"; stay.current?.focus(); }, []);
  return (
    <main id="content" class="signin">
      <h1>You are signed in as {me}</h1>
      <p>The address that was opened signs this browser in by a code, as whoever made the code. If you have not just run <code>sandpit console</code>, or been sent the address by somebody whom you trust, stay as you are: what you do after it is done with the rights of somebody else, who can see it.</p>
      <Trouble error={wrong.value} />
      <div class="buttons">
        <button type="button" class="primary" ref={stay} onClick={() => { offered.value = ""; }}>Stay signed in as {me}</button>
        <Action failed={wrong} do={async () => {
          await signIn({ code: offered.value });
          location.reload(); // nothing of what is shown is the other's
        }}>Sign in by the code instead</Action>
      </div>
    </main>
  );
}

function App(): JSX.Element | null {
  if (who.value === undefined) return failed.value ? <main id="content"><Trouble error={failed.value} again={() => void begin()} /></main> : null;
  if (who.value === null) return <SignIn why={failed.value} />;
  if (offered.value) return <Instead />;
  return <><Header /><Palette /><Away /><main id="content" tabIndex={-1}><Trouble error={failed.value} /><Page /></main></>;
}

// begin finds out who is signed in. A code in the address is good once; it leaves the address before it is sent, and is not sent
// unasked where somebody is signed in.
async function begin(): Promise<void> {
  failed.value = null;
  const code = /^#code=(spo_[A-Z2-7]+)$/.exec(location.hash)?.[1];
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  try {
    const now = await known();
    if (!now && code) await signIn({ code });
    else {
      who.value = now;
      offered.value = code ?? "";
    }
  } catch (e) {
    if (code && e instanceof Failure && e.status !== 0) {
      failed.value = e;
      who.value = null;
      return;
    }
    failed.value = e;
  }
}

export function start(): void {
  effect(() => { document.documentElement.dataset["theme"] = theme.value; });
  if (path.value === "/" && location.pathname !== base + "/") go("/", true);
  render(<App />, document.getElementById("app")!);
  follow();
  nameColumns();
  addEventListener("hashchange", () => { if (location.hash.startsWith("#code=")) void begin(); });
  void begin();
}
