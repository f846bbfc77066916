// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Addresses of pages: each page has one, and so links, reload and the back button work.
import { signal } from "./vendor/core";

export const base = "/console";

function here(): string {
  const path = location.pathname.startsWith(base) ? location.pathname.slice(base.length) : "/";
  return path === "" ? "/" : path;
}

// path is the address of the page below the base.
export const path = signal(here());

// query is what the address says behind it.
export const query = signal(new URLSearchParams(location.search));

// Held is something that leaving the page would lose.
export interface Held { says: string; drop: () => void }

// held is asked about before another page is opened.
export const held = signal<Held | null>(null);

// leaves reports whether the page may be left; what it held is dropped then.
function leaves(): boolean {
  const h = held.peek();
  if (!h) return true;
  if (!confirm(h.says)) return false;
  held.value = null;
  h.drop();
  return true;
}

let last = location.href; // where popstate comes from

addEventListener("popstate", () => {
  if (!leaves()) {
    history.pushState(null, "", last);
    return;
  }
  last = location.href;
  path.value = here();
  query.value = new URLSearchParams(location.search);
});

// go opens a page. With replace the one before is not to be gone back to.
export function go(to: string, replace = false): void {
  const url = base + to;
  if (!leaves()) return;
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  last = location.href;
  path.value = here();
  query.value = new URLSearchParams(location.search);
  if (!replace) scrollTo(0, 0);
}

// at returns the parts of the address, decoded.
export function at(): string[] {
  return path.value.split("/").filter((p) => p !== "").map(decoded);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // an address that nobody made of a name
  }
}
