// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"sandpit.dev/test/browser"
)

const pointNames = "[...document.querySelectorAll('.graph .point')].map(p => p.getAttribute('aria-label').replace(/, a snapshot of [^,]*,[^,]*,[^,]*/, '')).join('; ')"

// points clicks the node of the graph whose words begin so.
func (p *person) points(name string) {
	p.t.Helper()
	p.until("the graph has "+name, "[...document.querySelectorAll('.graph .point')].some(p => p.getAttribute('aria-label').startsWith(%q) && (p.dispatchEvent(new MouseEvent('click', {bubbles: true})), true))", name)
}

// TestSnapshotsAreAGraph goes back, forks and begins anew from the graph of a sandbox's disks.
func TestSnapshotsAreAGraph(t *testing.T) {
	needBrowser(t)
	s := serve(t, "")
	s.do(t, "create", "--name", "past")
	s.do(t, "exec", "past", "--", "sh", "-c", "echo one > f")
	s.do(t, "snapshot", "create", "past", "--name", "a")
	s.do(t, "exec", "past", "--", "sh", "-c", "echo two > f")
	s.do(t, "snapshot", "create", "past", "--name", "b")
	s.do(t, "rollback", "past", "--to", "a")
	s.do(t, "snapshot", "create", "past", "--name", "<b>c")
	s.do(t, "fork", "past", "--from", "b", "--name", "twin")
	s.do(t, "snapshot", "create", "twin", "--name", "d")
	s.do(t, "create", "--name", "stranger")
	s.do(t, "snapshot", "create", "stranger", "--name", "other")
	one := signedIn(t, s)
	one.sized(1280, 900)
	one.presses("past")
	one.turns("time")

	t.Run("WhatCameOfWhat", func(t *testing.T) {
		one.t = t
		one.until("the graph is drawn", "document.querySelectorAll('.graph .point').length === 8")
		got := await[string](t, one.tab, pointNames)
		for _, want := range []string{"a;", "b, after a;", "<b>c, after going back to a;", "past now, after <b>c", "beginning of twin, after b", "twin now, after d"} {
			if !strings.Contains(got+";", want) {
				t.Errorf("the graph lacks %q: %s", want, got)
			}
		}
		if strings.Contains(got, "other") {
			t.Errorf("the graph has what has nothing to do with the sandbox: %s", got)
		}
		one.picture("graph")
		await[bool](t, one.tab, "[...document.querySelectorAll('label')].find(l => l.innerText.includes('All sandboxes')).click() === undefined")
		one.until("the others are there, too", "[...document.querySelectorAll('.graph .point')].some(p => p.getAttribute('aria-label').startsWith('other'))")
		await[bool](t, one.tab, "[...document.querySelectorAll('label')].find(l => l.innerText.includes('All sandboxes')).click() === undefined")
		one.until("they are gone again", "document.querySelectorAll('.graph .point').length === 8")
	})
	t.Run("ByTheKeyboard", func(t *testing.T) {
		one.t = t
		await[bool](t, one.tab, "document.querySelector('.graph .point[tabindex=\"0\"]').focus() === undefined")
		if got := await[string](t, one.tab, "document.activeElement.getAttribute('aria-label')"); !strings.HasPrefix(got, "past now") {
			t.Errorf("the focus is on %q", got)
		}
		for _, step := range []struct{ key, at string }{{"ArrowLeft", "<b>c"}, {"ArrowLeft", "b, "}, {"ArrowDown", "beginning of twin"}, {"ArrowRight", "d, "}, {"Home", "beginning of twin"}, {"ArrowUp", "<b>c"}} {
			await[bool](t, one.tab, "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: %q, bubbles: true})) !== null", step.key)
			one.until("the focus goes to "+step.at, "document.activeElement.getAttribute('aria-label')?.startsWith(%q)", step.at)
		}
		one.until("it is told of", "document.querySelector('.chosen-point')?.innerText.startsWith('<b>c')")
	})
	t.Run("BackByTheGraph", func(t *testing.T) {
		one.t = t
		one.points("b, ")
		one.presses("Go back to it…")
		one.presses("Go back")
		one.until("the graph says so", "[...document.querySelectorAll('.graph .point')].some(p => p.getAttribute('aria-label') === 'past now, after going back to b')")
		if got := s.do(t, "exec", "past", "--", "cat", "f"); got != "two\n" {
			t.Errorf("the sandbox has %q", got)
		}
	})
	t.Run("ComparedByTheGraph", func(t *testing.T) {
		one.t = t
		one.points("a, ")
		one.presses("Compare from here")
		one.points("d, ")
		one.presses("Compare to here")
		one.presses("Compare")
		one.until("the difference is shown", "document.querySelector('ul.files:not([aria-label])')?.innerText.includes('/workspace/f')")
		one.presses("/workspace/f")
		one.until("its lines are shown", "document.querySelector('.sides.lines ins')?.innerText === '+two' && document.querySelector('.sides.lines del')?.innerText === '-one'")
		one.picture("lines")
	})
	t.Run("ForkedAndBegunAnew", func(t *testing.T) {
		one.t = t
		one.points("a, ")
		one.fills("copies", "2")
		await[bool](t, one.tab, "[...document.querySelectorAll('.chosen-point button')].find(b => b.innerText === 'Fork…').click() === undefined")
		one.presses("Fork and start them")
		one.until("two forks are in the graph", "[...document.querySelectorAll('.graph .point')].filter(p => /^beginning of [a-z0-9]{16}, after a$/.test(p.getAttribute('aria-label'))).length === 2")
		one.presses("Begin a sandbox with it…")
		one.until("it is asked", "document.querySelector('dialog[open] input')")
		await[bool](t, one.tab, "(i => { i.value = 'anew'; return i.dispatchEvent(new InputEvent('input', {bubbles: true})) })(document.querySelector('dialog[open] input'))")
		one.presses("Create")
		one.until("it is opened", "document.querySelector('h1').innerText.includes('anew')")
		if got := s.do(t, "exec", "anew", "--", "cat", "f"); got != "one\n" {
			t.Errorf("the sandbox has %q", got)
		}
	})
	t.Run("ExportedAndImported", func(t *testing.T) {
		one.t = t
		dir := t.TempDir()
		if _, err := chromedp.CallBrowser(one.tab, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{Behavior: cdpbrowser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir}); err != nil {
			t.Fatal(err)
		}
		if err := browser.Visit(one.tab, s.url+"/console/sandboxes/past/time"); err != nil {
			t.Fatal(err)
		}
		await[bool](t, one.tab, "(window.showSaveFilePicker = undefined) === undefined")
		one.points("a, ")
		one.presses("Export")
		one.reads("a.tar.gz downloaded, ")
		file := filepath.Join(dir, "a.tar.gz")
		for deadline := time.Now().Add(bound); ; time.Sleep(50 * time.Millisecond) {
			if _, err := os.Stat(file); err == nil {
				break
			} else if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
		packed, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		await[bool](t, one.tab, "(i => { const d = new DataTransfer(); d.items.add(new File([Uint8Array.from(atob(%q), c => c.charCodeAt(0))], 'a.tar.gz')); i.files = d.files; return i.dispatchEvent(new Event('change')) })(document.querySelector('input[type=file]'))", base64.StdEncoding.EncodeToString(packed))
		await[bool](t, one.tab, "[...document.querySelectorAll('label')].find(l => l.innerText.includes('All sandboxes')).click() === undefined")
		one.until("it is there", "[...document.querySelectorAll('.graph .lane')].some(l => l.textContent === 'imported')")
		one.picture("graph-all")
		await[bool](t, one.tab, "(document.documentElement.dataset.theme = 'dark') !== ''")
		one.picture("graph-dark")
	})
	t.Run("NothingWasRefusedByItsPolicy", func(t *testing.T) {
		for _, c := range one.take() {
			t.Errorf("the browser says: %s", c)
		}
	})
	t.Run("ItUsesWhatItsPageSays", func(t *testing.T) { documented(t, s, one.complaints) })
}

// TestHundredsOfSnapshotsSoak holds that what is out of sight is not drawn.
func TestHundredsOfSnapshotsSoak(t *testing.T) {
	if os.Getenv("SANDPIT_SOAK") == "" {
		t.Skip("SANDPIT_SOAK=1 takes several hundred snapshots")
	}
	needBrowser(t)
	s := serve(t, "")
	s.do(t, "create", "--name", "old")
	const count = 600
	for i := range count {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/sandboxes/old/snapshots", strings.NewReader(fmt.Sprintf(`{"name":"s%d"}`, i)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.token)
		r.Header.Set("Content-Type", "application/json")
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		if a.StatusCode != http.StatusCreated {
			t.Fatalf("snapshot %d: %s", i, a.Status)
		}
	}
	one := signedIn(t, s)
	one.sized(1280, 900)
	one.presses("old")
	one.turns("time")
	one.until("the newest is drawn", "[...document.querySelectorAll('.graph .point')].some(p => p.getAttribute('aria-label').startsWith('s%d,'))", count-1)
	one.picture("graph-many")
	nodes := func() int { return await[int](t, one.tab, "document.querySelectorAll('*').length") }
	if n := nodes(); n > 2000 {
		t.Errorf("the page has %d nodes", n)
	} else {
		t.Logf("the page has %d nodes", n)
	}
	await[bool](t, one.tab, "(document.querySelector('.graph').scrollLeft = 0) === 0")
	one.until("the oldest is drawn", "[...document.querySelectorAll('.graph .point')].some(p => p.getAttribute('aria-label').startsWith('s0,'))")
	if n := nodes(); n > 2000 {
		t.Errorf("the page has %d nodes", n)
	}
	one.until("the table has a part", "document.body.innerText.includes('1 to 30 of %d')", count)
}
