// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Pages whose script is read when one of them is opened.
import { Trouble } from "./parts";
import { signal, useEffect } from "../vendor/core";
import type { JSX } from "../vendor/core";

type More = typeof import("../more");

const more = signal<More | null>(null);
const failed = signal<unknown>(null);

function read(): void {
  failed.value = null;
  import("../more").then((m) => { more.value = m; }, () => {
    failed.value = "This page could not be read. If the server is another one by now, load the page again.";
  });
}

// Later shows a page, or with quiet what may as well come after what is beside it.
export function Later(p: { page: (m: More) => JSX.Element | null; quiet?: boolean }): JSX.Element | null {
  useEffect(() => { if (!more.value) read(); }, []);
  if (more.value) return p.page(more.value);
  if (p.quiet) return null;
  // A module that failed once stays so until the page is loaded again.
  return failed.value ? <Trouble error={failed.value} again={() => location.reload()} /> : <p role="status">Reading…</p>;
}
