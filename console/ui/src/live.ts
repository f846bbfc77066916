// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// What changes, as it changes: one stream of events for the whole tab.
import { call, look, who } from "./api";
import { batch, computed, effect, signal } from "./vendor/core";
import type { ProjectEvent, Sandbox, SandboxPage } from "./wire";

// sandboxes are those of the project, by id.
export const sandboxes = signal<ReadonlyMap<string, Sandbox>>(new Map());

// known reports whether they were read.
export const known = signal(false);

// away is since when the server does not answer; null: it does.
export const away = signal<Date | null>(null);

// newest first, as lists show them.
export const newest = computed(() => [...sandboxes.value.values()].sort((a, b) => (a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : a.id < b.id ? 1 : -1)));

const pause = 500; // ms between tries, so that a restarted server is back within a second

let source: EventSource | null = null;
let timer = 0;
let last = "";

// told is what events told and the lists do not show yet; null: it is deleted. Many events are one change of the lists, of which
// each costs the more the more sandboxes there are.
const told = new Map<string, Sandbox | null>();
let soon = 0;
let shownAt = 0;
let whole = false; // all were read
let reading = 0; // how many reads of all go on: what is told meanwhile is newer than what they find

async function readAll(): Promise<void> {
  const all = new Map<string, Sandbox>();
  const show = (): void => {
    const next = new Map(all);
    apply(next);
    batch(() => {
      sandboxes.value = next;
      known.value = true;
    });
  };
  if (reading === 0) flush();
  reading++;
  whole = false;
  try {
    let cursor = "";
    do {
      const page = await call<SandboxPage>("/sandboxes?limit=500" + (cursor && "&cursor=" + encodeURIComponent(cursor)));
      for (const s of page.items) all.set(s.id, s);
      cursor = page.next_cursor ?? "";
      if (!known.value) show(); // the newest are looked at while the rest is read
    } while (cursor);
    whole = true;
    show();
  } finally {
    if (--reading === 0) flush();
  }
}

// apply has a list be as events told. Actions of this page are answered with the record, too: an older one changes nothing.
function apply(all: Map<string, Sandbox>): void {
  for (const [id, now] of told) {
    const before = all.get(id);
    if (now === null) all.delete(id);
    else if (!before || before.updated_at <= now.updated_at) all.set(id, now);
  }
}

function flush(): void {
  clearTimeout(soon);
  soon = 0;
  if (told.size === 0) return;
  const all = new Map(sandboxes.value);
  apply(all);
  if (reading === 0) told.clear();
  shownAt = performance.now();
  sandboxes.value = all;
}

function changed(raw: Event): void {
  const message = raw as MessageEvent<string>;
  if (message.lastEventId) last = message.lastEventId;
  const event = JSON.parse(message.data) as ProjectEvent;
  if (event.type === "sandbox.deleted") told.set(event.object_id, null);
  else if (event.object) {
    const now = event.object as Sandbox, before = told.get(now.id);
    if (!before || before.updated_at <= now.updated_at) told.set(now.id, now);
  }
  const wait = sandboxes.value.size > 1000 ? 250 : 50; // ms between two changes of the lists; the first comes at once
  if (performance.now() - shownAt > wait) flush();
  else soon ||= window.setTimeout(flush, wait);
}

const kinds = ["archived", "created", "deleted", "failed", "paused", "promoted", "ready", "restored", "resumed", "started", "stopped", "unarchived", "updated"];

function open(): void {
  close();
  const s = new EventSource("/v1/events?type=sandbox" + (last && "&last_event_id=" + encodeURIComponent(last)));
  source = s;
  s.addEventListener("begun", (e) => {
    const fresh = last === "";
    last = (e as MessageEvent<string>).lastEventId || last;
    away.value = null;
    if (fresh || !whole) void readAll().catch(lost);
  });
  s.addEventListener("reset", (e) => {
    last = (e as MessageEvent<string>).lastEventId || last;
    void readAll().catch(lost);
  });
  for (const kind of kinds) s.addEventListener("sandbox." + kind, changed);
  s.onerror = lost;
}

function lost(): void {
  close();
  if (!who.value) return;
  away.value ??= new Date();
  timer = window.setTimeout(() => {
    // A stream does not say why it is refused.
    if (!document.hidden) look().then(() => { if (who.value && !document.hidden) open(); }, lost);
  }, pause);
}

function close(): void {
  clearTimeout(timer);
  source?.close();
  source = null;
}

// put has the lists show what an action was answered with, before its event comes.
export function put(s: Sandbox): void {
  told.set(s.id, s);
  flush();
}

// follow keeps the lists as the server has them, while somebody is signed in and looks.
export function follow(): void {
  effect(() => {
    const name = who.value?.name;
    close();
    if (!name) {
      told.clear();
      whole = false;
      batch(() => {
        sandboxes.value = new Map();
        known.value = false;
        away.value = null;
      });
      last = "";
      return;
    }
    if (!document.hidden) open();
  });
  // A tab that nobody looks at holds no connection: browsers allow few.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else if (who.value && !source) open();
  });
}
