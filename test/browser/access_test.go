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
func TestTheConsoleIsForEverybody(t *testing.T) {
	p := needBrowser(t)
	script, err := os.ReadFile(axe)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the package axe-core is not there: make console fetches it")
	}
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, "")
	one := visit(t, p, s.url+"/console/")
	one.reads("Sign in")
	look := func(name string) {
		t.Helper()
		for _, theme := range []string{"light", "dark"} {
			await[bool](t, one.tab, "(document.documentElement.dataset.theme = %q) !== ''", theme)
			await[bool](t, one.tab, "(() => { %s; return true })()", string(script))
			for _, v := range await[[]string](t, one.tab, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v => v.id + " (" + v.impact + "): " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + n.failureSummary).join(" | ")))`) {
				t.Errorf("%s, %s: %s", name, theme, v)
			}
		}
	}
	look("signing in")
	one.fills("Token", s.token)
	one.presses("Sign in")
	one.reads("There are no sandboxes yet")
	one.take() // nobody was signed in at first
	look("no sandboxes")
	s.do(t, "create", "--name", "shop", "--label", "team=data", "--env", "A=1")
	s.do(t, "exec", "shop", "--", "sh", "-c", "echo out; echo err >&2; echo x > made.txt")
	s.do(t, "snapshot", "create", "shop", "--name", "one")
	s.do(t, "exec", "--detach", "shop", "--", "python3", "-m", "http.server", "8000")
	one.reads("shop")
	look("sandboxes")
	for _, c := range []struct{ tab, has string }{
		{"", "Use"}, {"/terminal", "No terminal is open"}, {"/files", "made.txt"}, {"/processes", "sh -c"}, {"/activity", "1 file changed"}, {"/time", "one"}, {"/network", "Policy"}, {"/ports", "8000"},
	} {
		if err := browser.Visit(one.tab, s.url+"/console/sandboxes/shop"+c.tab); err != nil {
			t.Fatal(err)
		}
		one.reads(c.has)
		look("shop" + c.tab)
	}
	one.presses("Terminal")
	one.presses("New terminal")
	one.until("the terminal is there", "document.querySelector('.xterm-rows')")
	look("a terminal")
	for _, c := range []struct{ page, has string }{{"images", "the default"}, {"access", "Signed in"}, {"audit", "signIn"}, {"connect", "Nobody yet"}, {"connect?client=claude-code", "Make the token"}, {"nowhere", "There is no such page"}, {"sandboxes/none", "none"}} {
		if err := browser.Visit(one.tab, s.url+"/console/"+c.page); err != nil {
			t.Fatal(err)
		}
		one.reads(c.has)
		look(c.page)
	}
	if err := browser.Visit(one.tab, s.url+"/connect"); err != nil {
		t.Fatal(err)
	}
	look("/connect")
	if err := browser.Visit(one.tab, s.url+"/console/sandboxes"); err != nil {
		t.Fatal(err)
	}
	one.presses("Create a sandbox")
	look("the form")
	if got := one.take(); len(got) > 1 { // the sandbox that there is not
		t.Errorf("the browser says %s", fmt.Sprint(got))
	}
}
