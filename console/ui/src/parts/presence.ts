// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Whether somebody is at the page. What is a use of a sandbox goes on only while somebody is: a page that was left open must not
// keep a sandbox from idling.
import { signal } from "../vendor/core";

const rest = 120_000; // ms without a touch, after which nobody is there

// present reports whether somebody touched the page lately, and can see it.
export const present = signal(!document.hidden);

let touched = Date.now();

function touch(): void {
  touched = Date.now();
  if (!document.hidden) present.value = true;
}

for (const kind of ["pointermove", "pointerdown", "keydown", "wheel", "focus"]) addEventListener(kind, touch, { passive: true, capture: true });
document.addEventListener("visibilitychange", () => { if (document.hidden) present.value = false; else touch(); });
setInterval(() => { if (Date.now() - touched > rest) present.value = false; }, 5000);
