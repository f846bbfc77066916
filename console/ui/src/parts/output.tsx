// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Output of a command, however much and however fast: the page has the end of it, and draws what is in view.
import { bytes } from "../format";
import type { Part } from "../ansi";
import { Component } from "../vendor/core";
import type { JSX } from "../vendor/core";

const most = 1 << 20; // characters on the page
const atOnce = 128 << 10; // characters that become part of the page in one frame
const behind = 2 << 20; // characters that wait for that; what is more went by faster than it can be drawn
const block = 8 << 10; // characters that are drawn together

interface Block { key: number; parts: Part[]; size: number; lines: number }

// Drawn is a block on the page. One that has not grown is left as it is. (To use its element again would do that, too, but an
// element knows those that it was first drawn beside, and they those before them: nothing that went by would ever be let go.)
class Drawn extends Component<{ of: Block; size: number }> {
  override shouldComponentUpdate(next: { size: number }): boolean { return next.size !== this.props.size; }

  override render(): JSX.Element {
    const b = this.props.of;
    return <div class="part" style={{ containIntrinsicBlockSize: "auto " + Math.max(1, b.lines) * 19 + "px" }}>{b.parts.map((p) => <span class={p.style}>{p.text}</span>)}</div>;
  }
}

// Output is the end of what a command wrote.
export class Output {
  dropped = 0; // characters before those that are here
  private blocks: Block[] = [];
  private size = 0;
  private key = 0;
  private waiting: { style: string; text: string; paint: (text: string) => Part[] }[] = [];
  private waits = 0;

  // add takes the next piece, which becomes part of the page by take.
  add(style: string, text: string, paint: (text: string) => Part[]): void {
    this.waiting.push({ style, text, paint });
    this.waits += text.length;
    if (this.waits <= behind) return;
    let left = 0;
    while (this.waits > most / 4 && this.waiting.length > 1) {
      const n = this.waiting.shift()!.text.length;
      this.waits -= n;
      left += n;
    }
    this.dropped += left;
    const note = "\n[" + bytes(left) + " went by faster than it can be shown; the download has it]\n";
    this.waiting.unshift({ style: "gap", text: note, paint: (t) => [{ text: t, style: "" }] });
    this.waits += note.length;
  }

  // take makes what waits part of the page, as much as one frame has time for, and reports whether more waits.
  take(): boolean {
    let room = atOnce;
    while (room > 0 && this.waiting.length > 0) {
      const next = this.waiting[0]!;
      const text = next.text.length > room ? next.text.slice(0, room) : next.text;
      if (text.length === next.text.length) this.waiting.shift();
      else next.text = next.text.slice(room);
      room -= text.length;
      this.waits -= text.length;
      for (const p of next.paint(text)) this.append(p.text, (next.style + " " + p.style).trim());
    }
    while (this.size > most && this.blocks.length > 1) {
      const first = this.blocks.shift()!;
      this.size -= first.size;
      this.dropped += first.size;
    }
    return this.waiting.length > 0;
  }

  private append(text: string, style: string): void {
    let at = this.blocks[this.blocks.length - 1];
    // A block ends where a line does, or in the midst of one that has no end.
    if (!at || at.size >= block) {
      const end = at && at.size < 8 * block ? text.indexOf("\n") + 1 : 0;
      if (at && at.size < 8 * block && !this.ended(at)) {
        this.put(at, end > 0 ? text.slice(0, end) : text, style);
        if (end === 0) return;
        text = text.slice(end);
        if (text === "") return;
      }
      this.blocks.push(at = { key: this.key++, parts: [], size: 0, lines: 0 });
    }
    while (text.length > block) {
      const end = text.indexOf("\n", block) + 1;
      if (end === 0 || end > 2 * block) break;
      this.put(at, text.slice(0, end), style);
      text = text.slice(end);
      this.blocks.push(at = { key: this.key++, parts: [], size: 0, lines: 0 });
    }
    if (text !== "") this.put(at, text, style);
  }

  private ended(at: Block): boolean { return at.parts[at.parts.length - 1]!.text.endsWith("\n"); }

  private put(at: Block, text: string, style: string): void {
    const last = at.parts[at.parts.length - 1];
    if (last?.style === style) last.text += text;
    else at.parts.push({ text, style });
    at.size += text.length;
    this.size += text.length;
    for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) at.lines++;
  }

  // draw is all that is here.
  draw(): JSX.Element[] {
    return this.blocks.map((b) => <Drawn key={b.key} of={b} size={b.size} />);
  }

  // find is the lines that have a text, the last of them.
  find(words: string, atMost: number): string {
    const out: string[] = [];
    for (let i = this.blocks.length - 1; i >= 0 && out.length < atMost; i--) {
      const lines = this.blocks[i]!.parts.map((p) => p.text).join("").split("\n");
      for (let j = lines.length - 1; j >= 0 && out.length < atMost; j--) if (lines[j]!.toLowerCase().includes(words)) out.push(lines[j]!);
    }
    return out.reverse().join("\n");
  }
}
