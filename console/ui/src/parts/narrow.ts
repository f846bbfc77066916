// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Tables where there is little room: their rows are cards (see style.css), and each cell has its column's name beside it.

// nameColumns keeps the names of columns at the cells, while the page is narrow.
export function nameColumns(): void {
  const narrow = matchMedia("(max-width: 45rem)");
  let frame = 0;
  const name = (): void => {
    frame = 0;
    for (const table of document.querySelectorAll<HTMLTableElement>("table.list")) {
      const names = [...(table.tHead?.rows[0]?.cells ?? [])].map((c) => (c.querySelector(".hidden") ? "" : c.textContent ?? ""));
      for (const row of table.tBodies[0]?.rows ?? []) {
        for (const cell of row.cells) {
          const is = names[cell.cellIndex];
          if (is && cell.colSpan === 1 && cell.dataset["column"] !== is) cell.dataset["column"] = is;
        }
      }
    }
  };
  const soon = (): void => { if (narrow.matches) frame ||= requestAnimationFrame(name); };
  new MutationObserver(soon).observe(document.body, { childList: true, subtree: true });
  narrow.addEventListener("change", soon);
}
