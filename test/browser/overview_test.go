// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/test/browser"
)

// TestWhatTheServerIsAtAndHowItIsSet is about the pages of who runs the server: overview, settings, projects, audit.
func TestWhatTheServerIsAtAndHowItIsSet(t *testing.T) {
	p := needBrowser(t)
	s := serve(t, "log: {max_mb: 9}\ntracing: {headers: {Authorization: a-secret-of-the-file}}\n")
	one := s.signedIn(t, p)
	whole := t
	main := func(who *person) string {
		return await[string](who.t, who.tab, "document.querySelector('main').innerText")
	}
	// look has axe-core look at what the page is for a moment, where it is there, in both themes; pages as they are at first are
	// among consolePages.
	look := func(name string) {
		one.t.Helper()
		one.checks(name, func(theme string) { one.picture(name + "-" + theme) })
	}

	t.Run("TheOverviewIsEmptyAtFirst", func(t *testing.T) {
		one.t = t
		one.presses("Overview")
		one.reads("There are none yet")
		one.reads("sandpit create --name first")
		one.reads("checks passed")
		look("overview-empty")
	})
	t.Run("TheOverviewTellsWhatHappened", func(t *testing.T) {
		one.t = t
		s.do(t, "create", "--name", "shop", "--network", "off")
		s.do(t, "exec", "shop", "--", "true")
		if out, err := s.command("exec", "shop", "--", "sh", "-c", "exit 7 # <b>markup</b>").CombinedOutput(); err == nil {
			t.Fatalf("it did not fail: %s", out)
		}
		one.until("it is counted", `/1\s*running/.test(document.querySelector('.states')?.innerText) && /2 commands/.test(document.body.innerText)`)
		one.reads("1 sandbox created")
		one.reads("1 failure: 1 command exit")
		one.until("it is among what happened last", "document.querySelector('main table.list')?.innerText.includes('<b>markup</b>')")
		one.reads("Store of the runtime native")
		one.reads("Open files of the server")
		if got := await[int](t, one.tab, "document.querySelectorAll('.bars rect:not(.unknown)').length"); got == 0 {
			t.Error("nothing is drawn")
		}
		// What was before the server began is not drawn as nothing.
		if got := await[int](t, one.tab, "document.querySelector('.bars').querySelectorAll('rect.unknown').length"); got < 50 || got > 59 {
			t.Errorf("%d minutes of 60 are said not to be known, of a server that has just begun", got)
		}
		one.picture("overview")
	})
	t.Run("WhatIsWrongIsShownWithItsRemedy", func(t *testing.T) {
		one.t = t
		data := filepath.Join(s.dir, "data")
		if err := os.Chmod(data, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := browser.Visit(one.tab, s.url+"/console/overview"); err != nil {
			t.Fatal(err)
		}
		one.reads("could be written by others (mode 0777)")
		one.reads("→ stop the server, and run `sandpit doctor --repair`")
		if err := os.Chmod(data, 0o700); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("ASettingIsChangedAndTakenBack", func(t *testing.T) {
		one.t = t
		one.presses("Settings")
		one.until("the settings are there", "document.querySelector('[aria-label=\"Change idle_timeout_seconds\"]')")
		one.picture("settings")
		await[bool](t, one.tab, "document.querySelector('[aria-label=\"Change idle_timeout_seconds\"]').click() === undefined")
		one.reads("It is so already.")
		one.fills("Value", "-5")
		one.presses("Make the change")
		one.until("it is refused with its reason", "document.querySelector('dialog[open] .trouble')?.innerText.includes('idle_timeout_seconds')")
		one.take() // the browser tells of the 422
		one.fills("Value", "4321")
		one.reads("4321 s (1 h 12 min)")
		one.reads("sandpit settings set idle_timeout_seconds=4321")
		if got := s.do(t, "settings", "ls", "idle_timeout_seconds", "-o", "json"); strings.Contains(got, "4321") {
			t.Errorf("it was changed before anybody agreed: %s", got)
		}
		look("settings-change")
		one.presses("Make the change")
		one.reads("idle_timeout_seconds is 4321 s (1 h 12 min) now.")
		if got := s.do(t, "settings", "ls", "idle_timeout_seconds", "-o", "json"); !strings.Contains(got, "4321") {
			t.Errorf("it was not changed: %s", got)
		}
		one.until("its source is told", "document.querySelector('[aria-label=\"Take back idle_timeout_seconds\"]')")
		await[bool](t, one.tab, "document.querySelector('[aria-label=\"Take back idle_timeout_seconds\"]').click() === undefined")
		one.reads("sandpit settings unset idle_timeout_seconds")
		one.presses("Make the change")
		one.until("it is taken back", "!document.querySelector('[aria-label=\"Take back idle_timeout_seconds\"]') && !document.querySelector('dialog[open]')")
		await[bool](t, one.tab, "document.querySelector('[aria-label=\"Change allowed_variables\"]').click() === undefined")
		one.fills("Value", "APP_*\n OTHER \n")
		one.reads("none → APP_*, OTHER")
		one.presses("Make the change")
		one.reads("allowed_variables is APP_*, OTHER now.")
		s.do(t, "settings", "unset", "allowed_variables")
	})
	t.Run("WhatNeedsARestartIsTold", func(t *testing.T) {
		one.t = t
		row := func(key string) string {
			return "[...document.querySelectorAll('section[aria-labelledby=restart] tbody tr')].find(r => r.querySelector('code').innerText === '" + key + "')?.innerText.replace(/\\s+/g, ' ')"
		}
		for key, want := range map[string]string{
			"log.max_mb": "log.max_mb 9 the configuration file", "data": "data " + filepath.Join(s.dir, "data") + " the environment", "preview.domain": "preview.domain localhost the default",
			"tracing.headers": "tracing.headers Authorization: [redacted] secret the configuration file", "admin_token": "admin_token not set secret the default", "events.keep": "events.keep not set the default",
		} {
			one.until(key+" is told", "%s === %q", row(key), want)
		}
		one.until("what holds at once is above alone", "!%s", row("log.level"))
		one.fills("Find", "max_mb")
		one.until("one finds", "%s && !%s", row("log.max_mb"), row("data"))
		await[bool](t, one.tab, "[...document.querySelectorAll('label')].find(l => l.innerText.includes('leave out defaults')).control.click() === undefined")
		one.until("one key is left", "document.querySelectorAll('section[aria-labelledby=restart] tbody tr').length === 1")
		one.fills("Find", "")
		look("settings-restart")
		if got := await[string](t, one.tab, "fetch('/v1/settings/configuration').then(r => r.text())"); strings.Contains(got, "a-secret") || !strings.Contains(got, `"key":"listen"`) {
			t.Errorf("the answer is %s", got)
		}
	})
	t.Run("AProjectIsMadeAndItsQuotasAreChanged", func(t *testing.T) {
		one.t = t
		one.presses("Access")
		one.presses("Make a project")
		one.fills("Name", "web")
		one.until("it may be made", "document.querySelector('dialog[open] button.primary')")
		await[bool](t, one.tab, "document.querySelector('dialog[open] button.primary').click() === undefined")
		one.until("it is there", "document.querySelector('[aria-label=\"Change the quotas of web\"]')")
		await[bool](t, one.tab, "document.querySelector('[aria-label=\"Change the quotas of web\"]').click() === undefined")
		one.fills("Sandboxes", "7")
		one.reads("no bound → 7")
		look("quotas-change")
		one.presses("Make the change")
		one.until("its use is shown against it", "document.querySelector('[aria-label=\"The project web\"]')?.innerText.includes('0 of 7')")
		if got := s.do(t, "project", "show", "web", "-o", "json"); !strings.Contains(got, `"sandboxes": 7`) {
			t.Errorf("by the command line: %s", got)
		}
		one.picture("access")
		one.presses("Make a token")
		one.fills("Name", "for-web")
		one.fills("Project", "web")
		one.chooses("Tools by MCP", "mcp-sandboxd")
		one.presses("Make it")
		one.until("it is shown", "document.querySelector('pre[aria-label=\"The token\"]')?.innerText.startsWith('spt_')")
		one.presses("I have copied it")
		var all []struct {
			Name, Project, Profile string
			MCP                    string `json:"mcp_profile"`
		}
		if err := json.Unmarshal([]byte(s.do(t, "token", "ls", "-o", "json")), &all); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, one := range all {
			found = found || one.Name == "for-web" && one.Project == "web" && one.MCP == "mcp-sandboxd"
		}
		if !found {
			t.Errorf("the tokens are %+v", all)
		}
	})
	t.Run("TheAuditLogIsFilteredAndExported", func(t *testing.T) {
		one.t = t
		one.presses("Audit")
		one.fills("Types", "exec")
		one.presses("Search")
		one.until("commands alone are shown", "(rows => rows.length === 2 && rows.every(r => r.innerText.includes('exec')))([...document.querySelectorAll('main tbody tr')])")
		await[bool](t, one.tab, `(() => { window.kept = null; const make = URL.createObjectURL; URL.createObjectURL = (b) => { b.text().then((t) => { window.kept = t; }); return make(b); }; HTMLAnchorElement.prototype.click = function () {}; return true })()`)
		one.presses("Export as CSV")
		one.until("it has those alone", `window.kept && window.kept.includes("markup") && !window.kept.includes("signIn")`)
		one.picture("audit-filtered")
	})
	t.Run("AProjectSeesItsOwnAndNoSettings", func(t *testing.T) {
		var made struct {
			Token string `json:"token"`
		}
		if err := json.Unmarshal([]byte(s.do(t, "token", "create", "--name", "blue", "--project", "blue", "--scope", "sandboxes:read", "-o", "json")), &made); err != nil {
			t.Fatal(err)
		}
		blue := visit(t, p, s.url+"/console/overview")
		blue.fills("Token", made.Token)
		blue.presses("Sign in")
		blue.reads("project blue")
		blue.reads("0 commands")
		blue.reads("Nothing was used yet.")
		if got := main(blue); strings.Contains(got, "Health") || strings.Contains(got, "Open files") || strings.Contains(got, "markup") || strings.Contains(got, "Store of") {
			t.Errorf("it sees %s", got)
		}
		blue.picture("overview-of-a-project")
		if err := browser.Visit(blue.tab, s.url+"/console/settings"); err != nil {
			t.Fatal(err)
		}
		blue.reads("These are the server's.")
		if got := main(blue); strings.Contains(got, "idle_timeout") || strings.Contains(got, "max_mb") {
			t.Errorf("it sees %s", got)
		}
		if err := browser.Visit(blue.tab, s.url+"/console/access"); err != nil {
			t.Fatal(err)
		}
		blue.until("its own project is there", "document.querySelector('[aria-label=\"The project blue\"]')")
		if got := main(blue); strings.Contains(got, "web") || strings.Contains(got, "Quotas…") || strings.Contains(got, "Make a") {
			t.Errorf("it sees %s", got)
		}
	})
	one.t = whole
	documented(whole, s, one.complaints)
	for _, c := range one.take() {
		whole.Errorf("the browser says: %s", c)
	}
}
