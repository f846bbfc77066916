// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"sandpit.dev/test/browser"
)

// axe is what looks for what keeps people from using a page. The console's lockfile names it; make console fetches it.
const axe = "../../console/ui/node_modules/axe-core/axe.min.js"

// TestTheConsoleIsForEverybody looks at each page in both themes, empty and with something in it.
// axeScript is that, or "" where it is not there.
func axeScript(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile(axe)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(script)
}

// checks has axe-core, where it is there, look at what the page is in both themes, and calls then in each. What is in frames is not the
// page's.
func (p *person) checks(name string, then func(theme string)) {
	p.t.Helper()
	script := axeScript(p.t)
	for _, theme := range []string{"light", "dark"} {
		await[bool](p.t, p.tab, "(document.documentElement.dataset.theme = %q) !== ''", theme)
		if script != "" {
			await[bool](p.t, p.tab, "(() => { %s; return true })()", script)
			for _, v := range await[[]string](p.t, p.tab, `axe.run(document, {iframes: false, resultTypes: ["violations"]}).then(r => r.violations.map(v => v.id + " (" + v.impact + "): " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + n.failureSummary).join(" | ")))`) {
				p.t.Errorf("%s, %s: %s", name, theme, v)
			}
		}
		then(theme)
	}
}

func TestTheConsoleIsForEverybody(t *testing.T) {
	p := needBrowser(t)
	if axeScript(t) == "" {
		t.Skip("the package axe-core is not there: make console fetches it")
	}
	s := serve(t, "")
	one := visit(t, p, s.url+"/console/")
	one.reads("Sign in")
	gallery := newGallery(t)
	look := func(name string) {
		t.Helper()
		one.checks(name, func(theme string) { gallery.add(t, one.tab, name, theme) })
		one.fits(name)
	}
	look("signing in")
	one.fills("Token", s.token)
	one.presses("Sign in")
	one.reads("There are no sandboxes yet")
	one.take() // nobody was signed in at first
	look("no sandboxes")
	for page, has := range map[string]string{"snapshots": "There are no snapshots", "volumes": "There are no volumes", "templates": "There are no templates", "skills": "keeps no skills"} {
		one.goes(s, page)
		one.reads(has)
		look("no " + page)
	}
	one.goes(s, "sandboxes")
	furnish(t, s)
	one.reads("shop")
	for _, c := range consolePages() {
		if err := browser.Visit(one.tab, s.url+"/console"+c.path); err != nil {
			t.Fatal(err)
		}
		one.reads(c.has)
		look(c.path)
	}
	if err := browser.Visit(one.tab, s.url+"/console/sandboxes/shop/terminal"); err != nil {
		t.Fatal(err)
	}
	one.presses("New terminal")
	one.until("the terminal is there", "document.querySelector('.xterm-rows')?.innerText.includes('$')")
	look("a terminal")
	one.presses("Ports")
	one.clicks("Make a link to port 8000")
	one.presses("Show it here")
	one.until("the preview is there", "document.querySelector('iframe')")
	look("a preview in a frame")
	one.presses("Beside a terminal")
	one.until("both are there", "document.querySelector('iframe') && document.querySelector('.xterm-rows')?.innerText.includes('$')")
	look("a preview beside a terminal")
	one.presses("Processes")
	one.until("a command's output is shown", "document.querySelector('.log')?.textContent.includes('err') || (document.querySelector('table.list button[aria-expanded=true]') ?? [...document.querySelectorAll('table.list button')].find(b => b.innerText.includes('made.txt'))?.click(), false)")
	look("output")
	if err := browser.Visit(one.tab, s.url+"/connect"); err != nil {
		t.Fatal(err)
	}
	look("connect, signed out")
	if err := browser.Visit(one.tab, s.url+"/console/sandboxes"); err != nil {
		t.Fatal(err)
	}
	one.presses("Create a sandbox")
	look("the form")
	gallery.close(t)
	if got := one.take(); len(got) > 1 { // the sandbox that there is not
		t.Errorf("the browser says %s", fmt.Sprint(got))
	}
}
