// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sandpit.dev/test/browser"
)

// keys presses keys one after another, each with its modifiers.
func (p *person) keys(all ...string) {
	p.t.Helper()
	for _, k := range all {
		if err := browser.Press(p.tab, k); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *person) writes(text string) {
	p.t.Helper()
	if err := browser.Type(p.tab, text); err != nil {
		p.t.Fatal(err)
	}
}

// focused is what has the focus: its name, and whether one sees that it has.
func (p *person) focused() (name string, seen bool) {
	p.t.Helper()
	said := await[string](p.t, p.tab, `(e => {
		const name = e.getAttribute("aria-label") ?? (e.labels?.[0] ?? e).innerText ?? "", style = getComputedStyle(e);
		const seen = e === document.body || e.closest(".xterm") || e.tagName === "DIALOG" || e.tagName === "MAIN" || (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2);
		return (seen ? "seen " : "unseen ") + name.trim();
	})(document.activeElement)`)
	seenWord, name, _ := strings.Cut(said, " ")
	return name, seenWord == "seen"
}

// tabsTo presses Tab until what is called so has the focus.
func (p *person) tabsTo(name string) {
	p.t.Helper()
	var on []string
	for range 80 {
		p.keys("Tab")
		got, seen := p.focused()
		if !seen {
			p.t.Errorf("%q has the focus, and nobody sees it", got)
		}
		if strings.HasPrefix(got, name) {
			return
		}
		on = append(on, got)
	}
	p.picture("keyboard")
	p.t.Fatalf("80 times Tab did not reach %q, but %q", name, on)
}

// TestByTheKeyboardAlone clicks nothing and focuses nothing by a script: what a person does has keys.
func TestByTheKeyboardAlone(t *testing.T) {
	p := needBrowser(t)
	s := serve(t, "")
	one := visit(t, p, s.url+"/console/")
	one.reads("Sign in")
	one.until("the token can be typed", "document.activeElement?.name === 'token'")
	one.writes(s.token)
	one.keys("Enter")
	one.reads("There are no sandboxes yet")
	one.take()
	one.tabsTo("Create a sandbox")
	one.keys("Enter")
	one.until("the form is there", "document.querySelector('dialog[open]')")
	if name, _ := one.focused(); !strings.HasPrefix(name, "Name") {
		one.tabsTo("Name")
	}
	one.writes("keys")
	one.tabsTo("Create")
	one.keys("Enter")
	one.until("it runs", "document.querySelector('.title .state.running')")
	s.do(t, "exec", "keys", "--", "sh", "-c", "seq 500 > numbers.txt")

	// A terminal by the palette.
	one.keys("Control+k")
	one.until("the palette has the focus", "document.activeElement?.classList.contains('palette')")
	one.writes("terminal of")
	one.until("one choice is left", "document.querySelectorAll('#palette [role=option]').length === 1")
	one.keys("Enter")
	one.until("the terminals are there", "location.pathname.endsWith('/terminal') && document.body.innerText.includes('New terminal')")
	one.tabsTo("New terminal")
	one.keys("Enter")
	one.until("its shell is there", "document.querySelector('.xterm-rows')?.innerText.includes('$')")
	one.until("it has the focus", "document.activeElement?.closest('.xterm')")
	one.writes("echo by-$((40+2))-keys\r")
	one.until("its answer is shown", "document.querySelector('.xterm-rows').innerText.includes('by-42-keys')")

	t.Run("VimIsTypedInto", func(t *testing.T) {
		one.t = t
		vim, err := browser.GetVim(t.Context(), browser.Dir())
		if absent, ok := errors.AsType[browser.Absent](err); ok {
			t.Skip(absent)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.do(t, "cp", vim, "keys:/workspace/vim")
		one.writes("./vim -u NONE -N numbers.txt\r")
		rows := "[...document.querySelectorAll('.xterm-rows > div')].map(d => d.innerText.trim())"
		one.until("it has the screen", "(r => r[0] === '1' && r.at(-1).includes('numbers.txt'))(%s)", rows)
		before := await[int](t, one.tab, "document.querySelectorAll('.xterm-rows > div').length")
		if err := browser.Size(one.tab, 900, 420); err != nil {
			t.Fatal(err)
		}
		one.until("it is drawn for the new size", "(r => r.length < %d && r.length > 3 && r[0] === '1' && r.at(-2) === String(r.length - 1))(%s)", before, rows)
		one.writes("G")
		one.until("it is at the end", "(%s).includes('500')", rows)
		if err := browser.Size(one.tab, 0, 0); err != nil {
			t.Fatal(err)
		}
		one.until("it has the old size", "(r => r.length === %d && r.at(-2) === '500')(%s)", before, rows)
		one.writes("ggOtyped in vim: <ü> ")
		one.keys("Tab", "Escape")
		one.until("it is in the text", "(r => r[0].startsWith('typed in vim: <ü>') && r[1] === '1')(%s)", rows)
		one.picture("vim")
		one.writes(":w\r")
		one.until("it says what it wrote", "(%s).at(-1).includes('501')", rows)
		if got := s.do(t, "exec", "keys", "--", "head", "-n", "2", "numbers.txt"); got != "typed in vim: <ü> \t\n1\n" {
			t.Errorf("the file begins with %q", got)
		}
		one.writes(":q\r")
		one.until("the screen before is back", "document.querySelector('.xterm-rows').innerText.includes('by-42-keys')")
		one.writes("stty size\r")
		one.until("the shell knows the size", "document.querySelector('.xterm-rows').innerText.includes('%d ')", before)
	})
	one.t = t

	// The way out is written beside it.
	one.reads("Ctrl+Shift+Escape")
	one.keys("Tab")
	if !await[bool](t, one.tab, "document.activeElement.closest('.xterm') !== null") {
		t.Error("Tab leaves the terminal: it is the program's")
	}
	one.keys("Control+Shift+Escape")
	one.until("it is left", "!document.activeElement.closest('.xterm') && document.activeElement !== document.body")
	one.tabsTo("For a screen reader")
	one.keys("Enter")
	one.until("what it shows can be read", "document.querySelector('.xterm-accessibility')?.innerText.includes('by-42-keys')")
	one.keys("Enter")

	// Back in time.
	one.keys("Control+k")
	one.until("the palette has the focus", "document.activeElement?.classList.contains('palette')")
	one.writes("snapshots of this")
	one.until("one choice is left", "document.querySelectorAll('#palette [role=option]').length === 1")
	one.keys("Enter")
	one.until("it is opened", "location.pathname.endsWith('/time')")
	one.reads("Take a snapshot")
	one.tabsTo("Name")
	one.writes("before")
	one.tabsTo("Take a snapshot")
	one.keys("Enter")
	one.until("it is listed", "document.querySelector('main').innerText.includes('before')")
	s.do(t, "exec", "keys", "--", "rm", "numbers.txt")
	one.until("the graph has it", "document.querySelectorAll('.graph .point.snapshot').length === 1")
	one.tabsTo("keys now") // in the graph, which is one stop
	one.keys("ArrowLeft")
	one.until("the snapshot has the focus", "document.activeElement.getAttribute('aria-label')?.startsWith('before')")
	one.tabsTo("Go back to it…")
	one.keys("Enter")
	one.until("it is asked", "document.querySelector('dialog[open]')")
	if name, _ := one.focused(); name != "Go back" {
		one.tabsTo("Go back")
	}
	one.keys("Enter")
	one.until("it has gone back", "document.querySelectorAll('dialog[open]').length === 0 && document.querySelector('.title .state.running')")
	if got := s.do(t, "exec", "keys", "--", "ls"); !strings.Contains(got, "numbers.txt") {
		t.Errorf("the sandbox has %q", got)
	}

	// A question is left unanswered by Escape, and then it is answered.
	one.tabsTo("Delete…")
	one.keys("Enter")
	one.until("it is asked", "document.querySelector('dialog[open]')")
	one.keys("Escape")
	one.until("it is left", "!document.querySelector('dialog[open]')")
	if name, _ := one.focused(); !strings.HasPrefix(name, "Delete") {
		t.Errorf("the focus is at %q, not where it was", name)
	}
	one.keys("Enter")
	one.until("it is asked again", "document.querySelector('dialog[open]')")
	if name, _ := one.focused(); !strings.HasPrefix(name, "It runs.") {
		one.tabsTo("It runs.")
	}
	one.writes("keys")
	one.tabsTo("Delete it")
	one.keys("Enter")
	one.until("it is gone", "location.pathname === '/console/sandboxes' && document.body.innerText.includes('There are no sandboxes yet')")
	if left := s.sandboxes(t); len(left) > 0 {
		t.Error(fmt.Sprint("there still are ", left))
	}
	one.keys("Shift+Tab")
	one.keys("?")
	one.reads("out of a terminal")
}
