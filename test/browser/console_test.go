// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"

	"sandpit.dev/test/browser"
)

// complaints are what the browser says of the page's errors, violations of its policy among them, and what the page asked for.
type complaints struct {
	mu    sync.Mutex
	all   []string
	asked []string // methods and addresses
	stray []string // what a page of the console asked of another origin
}

func (c *complaints) hear(event any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		c.asked = append(c.asked, e.Request.Method+" "+e.Request.URL)
		if page, to := originOf(e.DocumentURL), originOf(e.Request.URL); strings.HasPrefix(strings.TrimPrefix(e.DocumentURL, page), "/console") && to != page && to != "" {
			c.stray = append(c.stray, e.DocumentURL+": "+e.Request.URL)
		}
	case *network.EventWebSocketCreated:
		c.asked = append(c.asked, "GET "+strings.Replace(e.URL, "ws", "http", 1))
	case *log.EventEntryAdded:
		c.all = append(c.all, fmt.Sprintf("%s %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
	case *runtime.EventExceptionThrown:
		c.all = append(c.all, fmt.Sprint(e.ExceptionDetails.Text, " ", e.ExceptionDetails.Exception))
	}
}

// originOf is the origin of an address of the web; "" where it has none, as that of data.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// stayed finds out that no page of the console asked for anything of another origin.
func (c *complaints) stayed(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.stray {
		t.Errorf("a page of the console asked for what is not the server's: %s", s)
	}
}

// take returns what was said since it was called last.
func (c *complaints) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	c.all = nil
	return all
}

// person is somebody who uses the console.
type person struct {
	t   *testing.T
	tab context.Context
	*complaints
}

// visit opens the browser at an address of the server's.
func visit(t *testing.T, p browser.Program, address string) *person {
	t.Helper()
	one := &person{t: t, complaints: new(complaints)}
	t.Cleanup(func() { one.stayed(t) })
	one.tab = tab(t, p, address, one.hear)
	return one
}

// until waits for an expression to be true in the page.
func (p *person) until(what, format string, args ...any) {
	p.t.Helper()
	expression := fmt.Sprintf(format, args...)
	deadline := time.Now().Add(bound)
	for !await[bool](p.t, p.tab, "!!(%s)", expression) {
		if time.Now().After(deadline) {
			p.picture("failed")
			p.t.Fatalf("%s: not within %v; the browser says %q, and the page:\n%s", what, bound, p.take(), await[string](p.t, p.tab, "document.body?.innerText ?? ''"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// reads waits for the page to have a text.
func (p *person) reads(text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("the page reads %q", text), "document.body?.innerText.includes(%q)", text) // a page that loads has no body yet
}

// presses clicks what is called so: a button or a link.
func (p *person) presses(name string) {
	p.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('button, a, summary')].find(e => e.innerText.trim() === %q && e.checkVisibility() && !e.disabled)", name)
	p.until("there is a "+name, "%s", find)
	await[bool](p.t, p.tab, "(%s).click() === undefined", find)
}

// turns opens a part of the sandbox that is looked at, by its address.
func (p *person) turns(part string) {
	p.t.Helper()
	p.until("there is the part "+part, "document.querySelector('.tabs a[href$=%q]')", "/"+part)
	await[bool](p.t, p.tab, "document.querySelector('.tabs a[href$=%q]').click() === undefined", "/"+part)
}

// looksOver opens the overview of the sandbox that is looked at.
func (p *person) looksOver() {
	p.t.Helper()
	await[bool](p.t, p.tab, "document.querySelector('.tabs a').click() === undefined")
}

// fills writes into the input with a label.
func (p *person) fills(label, text string) {
	p.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('label')].filter(l => l.innerText.trim().startsWith(%q)).map(l => l.control)[0]", label)
	p.until("there is an input "+label, "%s", find)
	await[bool](p.t, p.tab, "(i => { i.focus(); i.value = %q; i.dispatchEvent(new InputEvent('input', {bubbles: true})); return true })(%s)", text, find)
}

// picture keeps what the page looks like, where pictures are asked for.
func (p *person) picture(name string) {
	p.t.Helper()
	dir := os.Getenv("SANDPIT_TEST_PICTURES")
	if dir == "" {
		return
	}
	png, err := browser.Picture(p.tab)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600)
	}
	if err != nil {
		p.t.Error(err)
	}
}

func TestTheConsole(t *testing.T) {
	p := needBrowser(t)
	s := serve(t, "")
	one := visit(t, p, s.url+"/")
	one.reads("Sign in")
	one.picture("signin")
	whole := t

	t.Run("ATokenIsExchangedOnce", func(t *testing.T) {
		one.t = t
		one.fills("Token", "spt_none")
		one.presses("Sign in")
		one.reads("No such token: it is mistyped, revoked or over.")
		one.until("the field keeps its text", "document.querySelector('input[name=token]').value === 'spt_none'")
		one.take() // the browser tells of the 401
		one.fills("Token", s.token)
		one.presses("Sign in")
		one.reads("There are no sandboxes yet")
		one.picture("empty")
		if got := await[string](t, one.tab, "document.cookie + JSON.stringify(localStorage) + location.href + document.documentElement.outerHTML"); strings.Contains(got, s.token) || strings.Contains(got, "spc_") {
			t.Errorf("the page has the token, or the cookie: %s", got)
		}
	})
	t.Run("ASandboxIsCreated", func(t *testing.T) {
		one.t = t
		one.presses("Create a sandbox")
		one.fills("Name", "shop")
		one.presses("Create")
		one.reads("Last used")
		one.until("it runs", "document.querySelector('.title .state.running')")
		one.picture("overview")
	})
	t.Run("WhatRunsIsOnTheOverview", func(t *testing.T) {
		one.t = t
		s.do(t, "exec", "--detach", "--name", "sleeper", "shop", "--", "sh", "-c", "echo begun; sleep 1000")
		one.until("its name is there", "document.querySelector('section[aria-label=\"What runs\"] a')?.innerText === 'sleeper'")
		one.until("the sandbox was used just now, without a reload", "Date.parse([...document.querySelectorAll('dt')].find(d => d.innerText === 'Last used').nextElementSibling.querySelector('time').dateTime) >= Date.parse(%q)", s.lastUsed(t, "shop"))
		one.turns("activity")
		one.until("no output is told of that is not counted yet", "[...document.querySelectorAll('.events a')].some(a => a.innerText === 'output so far' && (a.click(), true))")
		one.until("its output is above the list, and its time counts", "document.querySelector('.output + section table') && document.querySelector('.log')?.innerText.includes('begun') && / [1-9][0-9]* s/.test(document.querySelector('.output .faint')?.innerText)")
		one.picture("process")
		one.presses("Kill")
		one.until("the list has its end", "document.querySelector('table.list tr.chosen')?.innerText.includes('SIGKILL')")
		one.looksOver()
	})
	t.Run("WhatAnAgentDoesIsSeen", func(t *testing.T) {
		one.t = t
		s.do(t, "exec", "shop", "--", "sh", "-c", "echo '<b>made</b> by an \x1b[31magent\x1b[0m'; echo oops >&2; echo x > made.txt")
		one.presses("Activity")
		one.reads("made.txt")
		one.picture("activity")
		one.presses("Processes")
		one.until("the command is listed", "[...document.querySelectorAll('table.list button')].some(b => (b.click(), true))")
		one.reads("<b>made</b> by an agent")
		one.until("its colours are there", "document.querySelector('.log .c1')?.textContent === 'agent' && document.querySelector('.log .stderr')?.textContent.includes('oops')")
		one.picture("processes")
	})
	t.Run("ATerminalIsTypedInto", func(t *testing.T) {
		one.t = t
		one.presses("Terminal")
		one.presses("New terminal")
		one.until("the terminal is there", "document.querySelector('.xterm-rows')")
		one.until("its shell is", "document.querySelector('.xterm-rows').innerText.includes('$')")
		await[bool](t, one.tab, "document.querySelector('.xterm-helper-textarea').focus() === undefined")
		if err := browser.Type(one.tab, "echo typed-$((20+22))\r"); err != nil {
			t.Fatal(err)
		}
		one.until("its answer is shown", "document.querySelector('.xterm-rows').innerText.includes('typed-42')")
		one.picture("terminal")
		at := await[string](t, one.tab, "location.href")
		if err := browser.Visit(one.tab, at); err != nil {
			t.Fatal(err)
		}
		one.until("it is joined again after a reload", "document.querySelector('.xterm-rows')?.innerText.includes('typed-42')")
		one.turns("activity")
		one.turns("terminal")
		one.until("it is shown again", "document.querySelector('.xterm-rows')?.innerText.includes('typed-42')")
	})
	t.Run("FilesAreUploadedLookedAtAndDeleted", func(t *testing.T) {
		one.t = t
		one.presses("Files")
		one.until("the tree is there", "document.querySelector('.tree')?.innerText.includes('made.txt')")
		await[bool](t, one.tab, `(i => { const d = new DataTransfer(); d.items.add(new File(['<i>up</i>\u202eloaded'], 'up.txt')); i.files = d.files; return i.dispatchEvent(new Event('change')) })(document.querySelector('input[type=file]'))`)
		one.reads("uploaded, ")
		one.until("it is in the tree", "[...document.querySelectorAll('.tree button')].some(b => b.innerText.includes('up.txt') && (b.click(), true))")
		one.reads("<i>up</i>⟨202e⟩loaded")
		one.picture("files")
		if got := s.do(t, "exec", "shop", "--", "cat", "up.txt"); got != "<i>up</i>\u202eloaded" {
			t.Errorf("the sandbox has %q", got)
		}
		one.presses("Delete the file…")
		one.until("it is asked", "document.querySelectorAll('dialog[open]').length === 1")
		one.presses("Delete it")
		one.until("it is gone", "!document.querySelector('.tree').innerText.includes('up.txt')")
	})
	t.Run("WhatAnAgentBrokeIsUndone", func(t *testing.T) {
		one.t = t
		one.turns("time")
		one.fills("Name", "before")
		one.presses("Take a snapshot")
		one.until("it is listed", "document.querySelector('table.list')?.innerText.includes('before')")
		s.do(t, "exec", "shop", "--", "sh", "-c", "rm made.txt; echo junk > junk.txt")
		one.presses("Compare")
		one.until("the difference is shown", "document.querySelector('ul.files')?.innerText.includes('made.txt') && document.querySelector('ul.files').innerText.includes('junk.txt')")
		one.picture("time")
		one.presses("Go back…")
		one.until("a snapshot of now is offered, and has the focus", "document.querySelector('dialog[open] input:checked') === document.activeElement")
		one.presses("Go back")
		one.reads("Went back to before.")
		one.until("it has gone back, and nothing is compared", "document.querySelectorAll('dialog[open], ul.differences').length === 0 && document.querySelector('.title .state.running')")
		if got := s.do(t, "exec", "shop", "--", "ls"); !strings.Contains(got, "made.txt") || strings.Contains(got, "junk.txt") {
			t.Errorf("the sandbox has %q", got)
		}
	})
	t.Run("ARefusedNameIsAllowed", func(t *testing.T) {
		one.t = t
		s.do(t, "network", "set", "shop", "restricted", "--allow-domain", "example.org")
		s.do(t, "exec", "shop", "--", "sh", "-c", "python3 -c 'import urllib.request; urllib.request.urlopen(\"http://refused.example/\", timeout=5)' || true")
		one.presses("Activity")
		one.presses("Allow it on the page Network")
		one.until("the host is filled in", "document.querySelector('section[aria-label=Change] input')?.value === 'refused.example'")
		one.until("the refusal is shown", "[...document.querySelectorAll('table.list tr')].some(r => r.innerText.includes('refused.example') && r.innerText.includes('refused'))")
		one.presses("Allow…")
		one.until("the exact change is shown", "[...document.querySelectorAll('dialog .created')].map(e => e.innerText).join('').includes('refused.example')")
		one.picture("network")
		one.presses("Make the change")
		one.until("the policy has it", "[...document.querySelectorAll('section[aria-label=Policy] dd')].some(p => p.innerText.includes('refused.example'))")
		one.until("the row says so", "[...document.querySelectorAll('table.list tr')].some(r => r.innerText.includes('refused.example') && r.innerText.includes('allowed since') && !r.querySelector('button'))")
		if got := s.do(t, "network", "show", "shop"); !strings.Contains(got, "refused.example") || !strings.Contains(got, "example.org") {
			t.Errorf("the server has %s", got)
		}
		s.do(t, "network", "set", "shop", "off")
		one.reads("In mode off programs find no network at all")
		one.fills("Name or address", "https://Opened.example/path")
		one.presses("Allow a host…")
		one.until("the exact change is shown", "[...document.querySelectorAll('dialog .created')].map(e => e.innerText).join('').replace(/\\s/g, '').includes('\"restricted\"') && document.querySelector('dialog[open]')?.innerText.includes('opened.example')")
		one.presses("Make the change")
		one.until("it is made", "[...document.querySelectorAll('section[aria-label=Policy] dd')].some(p => p.innerText.includes('opened.example'))")
		one.presses("Open…")
		one.presses("Make the change")
		one.reads("as far as the server allows")
		if got := s.do(t, "network", "show", "shop"); !strings.Contains(got, "open") || strings.Contains(got, "opened.example") {
			t.Errorf("the server has %s", got)
		}
	})
	t.Run("APreviewIsMadeAndRevoked", func(t *testing.T) {
		one.t = t
		s.do(t, "exec", "--detach", "shop", "--", "python3", "-m", "http.server", "8000")
		one.presses("Ports")
		const button = "document.querySelector('button[aria-label=\"Make a link to port 8000\"]')"
		one.until("the port is there", "%s", button)
		await[bool](t, one.tab, button+".click() === undefined")
		one.until("its link is there", "document.querySelector('table.list a[href*=\"8000-\"]')")
		one.picture("ports")
		link := await[string](t, one.tab, "document.querySelector('table.list a[href*=\"8000-\"]').href")
		guest := visit(t, p, link)
		guest.reads("made.txt")
		one.presses("Revoke")
		one.until("the link is gone", "!document.querySelector('table.list a[href*=\"8000-\"]')")
		if err := browser.Visit(guest.tab, link); err != nil {
			t.Fatal(err)
		}
		guest.reads("not valid")
	})
	t.Run("ATokenIsMadeAndRevoked", func(t *testing.T) {
		one.t = t
		one.presses("Access")
		one.presses("Make a token")
		one.fills("Name", "reader")
		one.until("it may only read", "[...document.querySelectorAll('fieldset input')].forEach((b, i) => { if (b.checked !== (i === 0)) b.click() }) === undefined")
		one.presses("Make it")
		one.until("it is shown", "document.querySelector('dialog pre')?.innerText.startsWith('spt_')")
		token := await[string](t, one.tab, "document.querySelector('dialog pre').innerText")
		one.clicks("Copy: The token")
		one.until("it is copied, or selected to be", "document.querySelector('dialog .code button').innerText === 'Copied' || getSelection().toString().trim() === document.querySelector('dialog pre').innerText")
		one.presses("I have copied it")
		one.picture("access")
		two := visit(t, p, s.url+"/console/")
		two.fills("Token", token)
		two.presses("Sign in")
		two.reads("may only read")
		two.presses("shop")
		two.until("the sandbox is shown", "document.querySelector('.title .state.running')")
		if got := await[string](t, two.tab, "[...document.querySelectorAll('main button')].map(b => b.innerText).join()"); strings.Contains(got, "Stop") || strings.Contains(got, "Delete") {
			t.Errorf("a token that only reads sees the buttons %s", got)
		}
		if got := await[string](t, one.tab, "document.body.innerText"); strings.Contains(got, token) {
			t.Error("the token is shown once more")
		}
		one.presses("Sandboxes")
		one.presses("Access")
		one.until("the browser has a short name, and its own too", "[...document.querySelectorAll('td[title]')].some(c => /^Chrome [0-9]+ on Linux$/.test(c.innerText) && c.title.includes('Mozilla'))")
		one.until("a row's text and its button are in line", "(r => Math.abs(r(document.querySelector('table.list td').firstChild) - r(document.querySelector('table.list td button').firstChild)) < 1.5)(n => { const g = document.createRange(); g.selectNode(n); return g.getBoundingClientRect().bottom })")
		one.clicks("Revoke reader")
		one.reads("Every program that has it is refused from now on, and a browser is signed out.")
		one.picture("access-revoke")
		one.presses("Keep it")
		one.closed()
		one.clicks("Revoke reader")
		one.presses("Revoke it")
		two.reads("Your token was revoked, or your session ended. Sign in again.") // it is signed out by itself
	})
	t.Run("TheAuditLogHasAllOfIt", func(t *testing.T) {
		one.t = t
		one.presses("Audit")
		one.reads("signIn")
		id := await[string](t, one.tab, "fetch('/v1/sandboxes/shop').then(r => r.json()).then(s => s.id)")
		one.fills("Search", "shop")
		one.presses("Search")
		one.reads("What concerns the sandbox shop")
		one.until("its rows alone are there, with its name and its id", "(c => c.length > 2 && c.every(e => e.innerText === 'shop '+%q))([...document.querySelectorAll('table.list td:last-child')])", id)
		one.picture("audit-sandbox")
		one.fills("Search", "")
		one.fills("Who", "reader")
		one.presses("Search")
		one.until("rows of the one token alone are there", "(c => c.length > 0 && c.every(e => e.innerText.startsWith('reader')))([...document.querySelectorAll('table.list td:nth-child(2)')])")
		one.fills("Who", "")
		one.chooses("Time", "3600")
		one.reads("signIn")
		rows := await[int](t, one.tab, "document.querySelectorAll('table.list tbody tr').length")
		one.until("it says that reads are left out", "/[0-9]+ reads? (is|are) left out/.test(document.body.innerText)")
		await[bool](t, one.tab, "[...document.querySelectorAll('.filters label')].find(l => l.innerText.includes('leave out reads')).querySelector('input').click() === undefined")
		one.until("they are shown", "!document.body.innerText.includes('left out.') && document.querySelectorAll('table.list tbody tr').length > %d", min(rows, 99))
		one.presses("Check that nothing was altered")
		one.reads("rows are as they were written")
		one.picture("audit")
		one.presses("Images")
		one.reads("the default")
		one.picture("images")
		one.presses("Sandboxes")
		one.presses("shop")
	})
	t.Run("ThePaletteFindsAPartOfIt", func(t *testing.T) {
		one.t = t
		await[bool](t, one.tab, "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'k', ctrlKey: true, bubbles: true}))")
		one.until("the palette has the focus", "document.activeElement?.classList.contains('palette')")
		if err := browser.Type(one.tab, "this activ"); err != nil {
			t.Fatal(err)
		}
		one.until("one choice is left", "document.querySelectorAll('#palette [role=option]').length === 1")
		one.picture("palette")
		if err := browser.Type(one.tab, "\r"); err != nil {
			t.Fatal(err)
		}
		one.until("it is opened", "location.pathname.endsWith('/activity')")
	})
	t.Run("AnOpenPageIsNoUseOfTheSandbox", func(t *testing.T) {
		one.t = t
		for _, tab := range []string{"Terminal", "Processes", "Ports"} {
			one.presses(tab)
			time.Sleep(time.Second) // its first look may be a use
			before := s.lastUsed(t, "shop")
			time.Sleep(3 * time.Second) // in which it looks once or twice
			if now := s.lastUsed(t, "shop"); now != before {
				t.Errorf("%s: the sandbox was used at %s and, though nobody did anything, at %s", tab, before, now)
			}
		}
	})
	t.Run("ItGoesOnAfterAKillOfTheServer", func(t *testing.T) {
		one.t = t
		s.do(t, "exec", "--detach", "--name", "counter", "shop", "--", "sh", "-c", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo count-$i-; sleep 0.02; done")
		one.presses("Terminal")
		one.presses("New terminal") // the rollback ended the other
		one.until("its shell is there", "document.querySelector('.xterm-rows')?.innerText.includes('$')")
		await[bool](t, one.tab, "document.querySelector('.xterm-helper-textarea').focus() === undefined")
		if err := browser.Type(one.tab, "echo before-$((1+1))\r"); err != nil {
			t.Fatal(err)
		}
		one.until("its answer is shown", "document.querySelector('.xterm-rows').innerText.includes('before-2')")
		two := visit(t, p, strings.TrimSpace(s.do(t, "console", "--print")))
		two.reads("shop")
		two.presses("shop")
		two.presses("Processes")
		two.until("the counter is listed", "[...document.querySelectorAll('table.list button')].some(b => b.innerText.includes('count-') && (b.click(), true))")
		two.until("what uses most is shown", "document.querySelector('section[aria-label=\"What uses most now\"] tbody tr')")
		two.until("it counts", "/count-[0-9]+-/.test(document.querySelector('.log')?.textContent ?? '')")
		s.kill(t)
		one.reads("The server has not answered for")
		one.picture("away")
		before := await[int](t, two.tab, "Number([...document.querySelector('.log').textContent.matchAll(/count-([0-9]+)-/g)].at(-1)[1])")
		s.again(whole)
		one.until("it says so no longer", "!document.body.innerText.includes('The server has not answered for')")
		one.until("the terminal is joined again", "document.querySelector('.xterm-rows').innerText.includes('before-2') && document.querySelector('.screen [role=status]').innerText === ''")
		two.until("the output goes on", "Number([...document.querySelector('.log').textContent.matchAll(/count-([0-9]+)-/g)].at(-1)[1]) > %d", before)
		if got := await[bool](t, two.tab, "[...document.querySelector('.log').textContent.matchAll(/count-([0-9]+)-/g)].every((m, i) => Number(m[1]) === i + 1)"); !got {
			t.Error("of the output something is missing, or there twice")
		}
		s.do(t, "create", "--name", "after-the-kill")
		one.presses("Sandboxes")
		one.reads("after-the-kill") // by the stream that went on
		one.take()
		one.presses("shop")
	})
	t.Run("ItIsStoppedAndTheListKnows", func(t *testing.T) {
		one.t = t
		one.presses("Stop")
		one.until("it is stopped", "document.querySelector('.title .state.stopped')")
		one.presses("Sandboxes")
		one.until("the list says so", "document.querySelector('.row .state.stopped')")
		s.do(t, "create", "--name", "by-somebody-else")
		one.reads("by-somebody-else")
		one.picture("sandboxes")
	})
	t.Run("NothingWasRefusedByItsPolicy", func(t *testing.T) {
		for _, c := range one.take() {
			t.Errorf("the browser says: %s", c)
		}
	})
	t.Run("ItUsesWhatItsPageSays", func(t *testing.T) { documented(t, s, one.complaints) })
	t.Run("SigningOutEndsIt", func(t *testing.T) {
		one.t = t
		one.presses("Sign out")
		one.reads("No token at hand?")
		if err := browser.Visit(one.tab, s.url+"/console/sandboxes"); err != nil {
			t.Fatal(err)
		}
		one.reads("No token at hand?")
	})
	t.Run("TheCommandSignsIn", func(t *testing.T) {
		address := strings.TrimSpace(s.do(t, "console", "--print"))
		two := visit(t, p, address)
		two.reads("by-somebody-else")
		if got := await[string](t, two.tab, "location.href"); strings.Contains(got, "code") {
			t.Errorf("the code stays in the address: %s", got)
		}
		if sessions := s.do(t, "session", "ls"); !strings.Contains(sessions, "Mozilla") {
			t.Errorf("the sessions: %s", sessions)
		}
		two.take()
		codeReplacesNobodyUnasked(t, s, two)
		s.do(t, append([]string{"session", "rm"}, strings.Fields(s.do(t, "session", "ls", "-q"))...)...)
		two.reads("No token at hand?")
		if err := browser.Visit(two.tab, address); err != nil {
			t.Fatal(err)
		}
		two.reads("No token at hand?")
	})
}

// codeReplacesNobodyUnasked opens addresses with somebody else's code where the server's administrator is signed in.
func codeReplacesNobodyUnasked(t *testing.T, s *server, two *person) {
	t.Helper()
	other := *s
	other.env = append(slices.Clone(s.env), "SANDPIT_TOKEN="+s.reader(t))
	address := strings.TrimSpace(other.do(t, "console", "--print"))
	_, hash, _ := strings.Cut(address, "#")
	const name = "fetch('/v1/whoami').then(r => r.json()).then(w => w.name)"
	for _, open := range []func(){
		func() { // where no page of the console is open
			if err := errors.Join(browser.Visit(two.tab, "about:blank"), browser.Visit(two.tab, address)); err != nil {
				t.Fatal(err)
			}
		},
		func() { await[bool](t, two.tab, "(location.hash = %q) !== ''", hash) }, // where one is
	} {
		open()
		two.reads("You are signed in as admin-token")
		two.picture("code")
		two.until("to stay has the focus, and the code has left the address", "document.activeElement.innerText === 'Stay signed in as admin-token' && !location.href.includes('code')")
		if got := await[string](t, two.tab, name); got != "admin-token" {
			t.Errorf("%s is signed in", got)
		}
		two.presses("Stay signed in as admin-token")
		two.reads("by-somebody-else")
		if got := await[string](t, two.tab, name); got != "admin-token" {
			t.Errorf("%s is signed in", got)
		}
	}
	await[bool](t, two.tab, "(location.hash = %q) !== ''", hash)
	two.presses("Sign in by the code instead")
	two.reads("may only read")
	if got := await[string](t, two.tab, name); got != "reader" {
		t.Errorf("%s is signed in", got)
	}
	if got := await[string](t, two.tab, "document.body.innerText"); strings.Contains(got, "admin-token") {
		t.Errorf("the page still has what was the other's: %s", got)
	}
	// A code that is good no more changes nothing.
	await[bool](t, two.tab, "(location.hash = %q) !== ''", hash)
	two.presses("Sign in by the code instead")
	two.until("it is said why", "document.querySelector('[role=alert]')")
	two.presses("Stay signed in as reader")
	two.reads("by-somebody-else")
}

// documented compares what the pages asked for with the operations that docs/console.md names.
func documented(t *testing.T, s *server, c *complaints) {
	t.Helper()
	page, err := os.ReadFile("../../docs/console.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../api/rest/testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	used := make(map[string]bool)
	for _, asked := range c.asked {
		method, address, _ := strings.Cut(asked, " ")
		path, ours := strings.CutPrefix(address, s.url)
		path, _, _ = strings.Cut(path, "?")
		rest, api := strings.CutPrefix(path, "/v1")
		switch {
		case strings.HasPrefix(address, "data:"), strings.HasPrefix(address, "blob:"+s.url+"/"):
			continue
		case !ours:
			t.Errorf("a page asked for %s, which is not the server's", address)
			continue
		case !api:
			continue
		}
		id := ""
		for template, methods := range document.Paths {
			if o, ok := methods[strings.ToLower(method)]; ok && matches(template, rest) && (id == "" || !strings.Contains(template, "{")) {
				id = o.ID
			}
		}
		used[id] = true
		if !strings.Contains(string(page), "`"+id+"`") {
			t.Errorf("a page asked for %s %s (%s), which docs/console.md does not name", method, path, id)
		}
	}
	if len(used) < 12 {
		t.Errorf("the pages used %v alone", used)
	}
}

// matches reports whether a path is of a template's form.
func matches(template, path string) bool {
	a, b := strings.Split(template, "/"), strings.Split(path, "/")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !strings.HasPrefix(a[i], "{") && a[i] != b[i] {
			return false
		}
	}
	return true
}

// lastUsed returns when a sandbox was used last, by a list, which is no use of it.
func (s *server) lastUsed(t *testing.T, key string) string {
	t.Helper()
	var all []struct {
		Key          string `json:"key"`
		LastActivity string `json:"last_activity_at"`
	}
	if err := json.Unmarshal([]byte(s.do(t, "ls", "-a", "-o", "json")), &all); err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.Key == key {
			return one.LastActivity
		}
	}
	t.Fatalf("there is no sandbox %s", key)
	return ""
}
