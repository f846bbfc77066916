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

// told is what events and answers said while the list is read: a list that was begun before them does not know of it. null: it
// is gone.
const told = new Map<string, Sandbox | null>();
let reading = 0;

function tell(id: string, s: Sandbox | null): void {
  if (reading > 0) told.set(id, s);
}

async function readAll(): Promise<void> {
  if (reading++ === 0) told.clear();
  try {
    await readPages();
  } finally {
    reading--;
  }
}

async function readPages(): Promise<void> {
  const all = new Map<string, Sandbox>();
  let cursor = "";
  do {
    const page = await call<SandboxPage>("/sandboxes?limit=500" + (cursor && "&cursor=" + encodeURIComponent(cursor)));
    for (const s of page.items) all.set(s.id, s);
    cursor = page.next_cursor ?? "";
  } while (cursor);
  batch(() => {
    // What events told meanwhile is newer.
    for (const [id, s] of told) {
      const read = all.get(id);
      if (s === null) all.delete(id);
      else if (!read || s.updated_at > read.updated_at) all.set(id, s);
    }
    sandboxes.value = all;
    known.value = true;
  });
}

function changed(raw: Event): void {
  const message = raw as MessageEvent<string>;
  if (message.lastEventId) last = message.lastEventId;
  const event = JSON.parse(message.data) as ProjectEvent;
  const all = new Map(sandboxes.value);
  if (event.type === "sandbox.deleted") {
    all.delete(event.object_id);
    tell(event.object_id, null);
  }
  else if (event.object) {
    const now = event.object as Sandbox;
    // Actions of this page are answered with the record, too: an older one changes nothing.
    const before = all.get(now.id);
    if (!before || before.updated_at <= now.updated_at) {
      all.set(now.id, now);
      tell(now.id, now);
    }
  }
  sandboxes.value = all;
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
    if (fresh || !known.value) void readAll().catch(lost);
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
    look().then(() => { if (who.value) open(); }, lost);
  }, pause);
}

function close(): void {
  clearTimeout(timer);
  source?.close();
  source = null;
}

// put has the lists show what an action was answered with, before its event comes.
export function put(s: Sandbox): void {
  const all = new Map(sandboxes.value);
  all.set(s.id, s);
  tell(s.id, s);
  sandboxes.value = all;
}

// follow keeps the lists as the server has them, while somebody is signed in and looks.
export function follow(): void {
  effect(() => {
    const name = who.value?.name;
    close();
    if (!name) {
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
