// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Reading again what may have changed.
import { call } from "../api";
import { useEffect } from "../vendor/core";
import type { EventPage } from "../wire";

// useEvery reads at once, and again each ms while somebody looks at the page; deps say for what. Only for what is no use of a
// sandbox: an open page must not keep one from idling.
export function useEvery(ms: number, read: () => unknown, deps: unknown[]): void {
  useEffect(() => {
    void read();
    const timer = setInterval(() => { if (!document.hidden) void read(); }, ms);
    return () => clearInterval(timer);
  }, deps);
}

// useActivity reads at once, and again when something has happened to a sandbox. It asks for its activity, which is no use of
// the sandbox, where what is read is one.
export function useActivity(id: string, read: () => unknown, deps: unknown[]): void {
  let last = "";
  useEvery(2000, async () => {
    try {
      const now = (await call<EventPage>("/sandboxes/" + id + "/activity?limit=30")).items.map((e) => e.seq + (e.status ?? "")).join();
      if (now !== last || last === "") void read();
      last = now;
    } catch {
      void read(); // which says what is wrong
      last = ""; // and once it is right again
    }
  }, [id, ...deps]);
}

// whileSeen opens what holds a connection while somebody sees the page, and closes it meanwhile: browsers allow few, and a tab that
// nobody looks at needs none. It returns what ends it.
export function whileSeen(open: () => void, close: () => void): () => void {
  const turn = (): void => { if (document.hidden) close(); else open(); };
  document.addEventListener("visibilitychange", turn);
  if (!document.hidden) open();
  return () => {
    document.removeEventListener("visibilitychange", turn);
    close();
  };
}
