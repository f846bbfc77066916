// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Output with colours, as text in parts: of escape sequences those for colours and weight count, and all others are left out.

export interface Part {
  text: string;
  style: string; // names of classes
}

export class Painter {
  private colour = "";
  private bold = false;
  private rest = "";

  // paint returns the parts of the next piece of output. A sequence may be cut between two of them.
  paint(piece: string): Part[] {
    const text = this.rest + piece;
    this.rest = "";
    const out: Part[] = [];
    let from = 0;
    const add = (to: number): void => {
      if (to > from) out.push({ text: clean(text.slice(from, to)), style: (this.colour + (this.bold ? " bold" : "")).trim() });
    };
    for (let i = text.indexOf("\x1b"); i >= 0; i = text.indexOf("\x1b", from)) {
      add(i);
      const m = /^\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])/.exec(text.slice(i, i + 4096));
      if (!m) {
        if (text.length - i < 4096) {
          this.rest = text.slice(i);
          return out;
        }
        from = i + 1; // nothing that anybody writes
        continue;
      }
      if (m[2] === "m") this.set(m[1] ?? "");
      from = i + m[0].length;
    }
    add(text.length);
    return out;
  }

  private set(codes: string): void {
    const all = codes === "" ? [0] : codes.split(/[;:]/).map(Number);
    for (let i = 0; i < all.length; i++) {
      const c = all[i]!;
      if (c === 0) { this.colour = ""; this.bold = false; }
      else if (c === 1) this.bold = true;
      else if (c === 22) this.bold = false;
      else if (c >= 30 && c <= 37) this.colour = "c" + (c - 30);
      else if (c >= 90 && c <= 97) this.colour = "c" + (c - 90);
      else if (c === 39) this.colour = "";
      else if (c === 38 || c === 48) {
        if (all[i + 1] === 5 && c === 38 && all[i + 2]! < 16) this.colour = "c" + (all[i + 2]! % 8);
        i += all[i + 1] === 5 ? 2 : 4;
      }
    }
  }
}

const clean = (text: string): string => text.replace(/\r\n/g, "\n").replace(/[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (c) => (c === "\r" ? "\n" : c < " " ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : "⟨" + c.charCodeAt(0).toString(16) + "⟩"));
