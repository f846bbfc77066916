// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// What changes in a directory of a sandbox, as it changes: one stream. A watch is a use of the sandbox, so that it lasts while
// somebody is at the page.
import { seg } from "../api";
import { present } from "../parts/presence";
import { useEffect, useRef, useSignal } from "../vendor/core";
import type { Signal } from "../vendor/core";
import type { Sandbox, WatchEnd, WatchEvent } from "../wire";

export interface Watch {
  changes: Signal<ReadonlyMap<string, number>>; // how often what is followed has changed, by path
  says: Signal<string>;
  live: Signal<boolean>;
  follow: (path: string) => () => void; // until what it returns is called
  touch: (path: string) => void;
  again: () => void; // all that is followed may have changed
}

const gather = 300; // ms, in which changes are told of together

// useWatch watches what is below root; file is followed besides the directories.
export function useWatch(s: Sandbox, root: string, file: string | null): Watch {
  const changes = useSignal<ReadonlyMap<string, number>>(new Map()), says = useSignal(""), live = useSignal(false);
  const followed = useRef(new Map<string, number>()), waiting = useRef(new Set<string>()), timer = useRef(0);
  const flush = (): void => {
    timer.current = 0;
    const next = new Map(changes.peek());
    for (const path of waiting.current) next.set(path, (next.get(path) ?? 0) + 1);
    waiting.current.clear();
    changes.value = next;
  };
  const touch = (path: string): void => {
    if (!followed.current.has(path)) return;
    waiting.current.add(path);
    timer.current ||= window.setTimeout(flush, gather);
  };
  const again = (): void => { for (const path of followed.current.keys()) touch(path); };
  const follow = (path: string): (() => void) => {
    followed.current.set(path, (followed.current.get(path) ?? 0) + 1);
    return () => {
      const left = (followed.current.get(path) ?? 1) - 1;
      if (left > 0) followed.current.set(path, left);
      else followed.current.delete(path);
    };
  };
  useEffect(() => (file ? follow(file) : undefined), [file]);
  const up = s.status === "running", on = up && present.value;
  useEffect(() => {
    live.value = false;
    if (!on) {
      says.value = up ? "Nobody has touched this page for a while: it does not follow changes until somebody does." : "";
      return;
    }
    let source: EventSource | null = null, retry = 0, wait = 500, over = false;
    const parent = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf("/")));
    const begin = (): void => {
      source = new EventSource("/v1/sandboxes/" + s.id + "/watch?recursive=true&path=" + seg(root));
      source.addEventListener("watching", () => {
        live.value = true;
        wait = 500;
        says.value = "Changes show as they happen.";
        again(); // what was read before may be older
      });
      for (const kind of ["created", "modified", "deleted", "renamed", "attributes", "dropped"]) source.addEventListener(kind, (raw) => {
        const e = JSON.parse((raw as MessageEvent<string>).data) as WatchEvent;
        if (e.type === "dropped" || e.escaped) { again(); return; }
        for (const path of [e.path, e.from]) {
          if (!path) continue;
          touch(path);
          touch(parent(path));
        }
      });
      source.addEventListener("end", (raw) => {
        over = (JSON.parse((raw as MessageEvent<string>).data) as WatchEnd).reason === "removed";
        live.value = false;
        says.value = over ? "This directory is not there any more." : "";
        source?.close();
        again();
      });
      source.onerror = () => {
        source?.close();
        if (over) return;
        live.value = false;
        says.value = "Changes are not followed at the moment.";
        retry = window.setTimeout(begin, wait);
        wait = Math.min(2 * wait, 30_000);
      };
    };
    begin();
    return () => {
      over = true;
      clearTimeout(retry);
      source?.close();
    };
  }, [s.id, root, on]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return { changes, says, live, follow, touch, again };
}
