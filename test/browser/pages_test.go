// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"sandpit.dev/test/browser"
)

// signedIn opens the console as the server's administrator.
func (s *server) signedIn(t *testing.T, p browser.Program) *person {
	t.Helper()
	one := visit(t, p, s.url+"/console/")
	one.reads("Sign in")
	one.fills("Token", s.token)
	one.presses("Sign in")
	one.reads("Sandboxes")
	one.take() // nobody was signed in at first
	return one
}

// chooses selects in the list with a label.
func (p *person) chooses(label, value string) {
	p.t.Helper()
	find := "[...document.querySelectorAll('label')].filter(l => l.innerText.trim().startsWith(" + quoted(label) + ")).map(l => l.control ?? l.querySelector('select'))[0]"
	p.until("there is a list "+label, "%s", find)
	await[bool](p.t, p.tab, "(i => { i.value = %q; i.dispatchEvent(new Event('change', {bubbles: true})); return true })(%s)", value, find)
}

func quoted(text string) string {
	b, _ := json.Marshal(text) // a string always can
	return string(b)
}

// message sends a message of MCP, as a client does.
func (s *server) message(t *testing.T, token, session, body string) (string, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil || w.StatusCode >= 300 {
		t.Fatalf("got %d %s %v", w.StatusCode, text, err)
	}
	return w.Header.Get("Mcp-Session-Id"), string(text)
}

// reader makes a token that may only read, and returns it.
func (s *server) reader(t *testing.T) string {
	t.Helper()
	var made struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(s.do(t, "token", "create", "--name", "reader", "--scope", "sandboxes:read", "-o", "json")), &made); err != nil {
		t.Fatal(err)
	}
	return made.Token
}

func TestAClientIsConnected(t *testing.T) {
	p := needBrowser(t)
	s := serve(t, "")
	one := s.signedIn(t, p)
	one.presses("Connect")
	one.reads("sandpit mcp config claude-code")
	one.picture("connect-empty")
	one.presses("Claude Code")
	one.reads("claude mcp add")
	if at := await[string](t, one.tab, "location.href"); !strings.HasSuffix(at, "/console/connect?client=claude-code") {
		t.Errorf("the page's address is %s", at)
	}
	one.fills("Name", "desk")
	one.presses("Make the token")
	one.until("it is shown", "document.querySelector('pre[aria-label=\"The token\"]')?.innerText.startsWith('spt_')")
	token := await[string](t, one.tab, "document.querySelector('pre[aria-label=\"The token\"]').innerText")
	one.reads("export SANDPIT_TOKEN=" + token)
	if got := s.do(t, "token", "ls"); !strings.Contains(got, "desk") {
		t.Errorf("the tokens: %s", got)
	}
	one.reads("Waiting for the first call by desk")
	one.picture("connect-waits")
	session, _ := s.message(t, token, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"claude-code","title":"Claude <b>Code</b>\u202e","version":"2.1"}}}`)
	one.reads("Claude <b>Code</b>⟨202e⟩ 2.1 connected")
	s.message(t, token, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	_, list := s.message(t, token, session, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if !strings.Contains(list, "run_command") {
		t.Fatalf("the tools: %s", list)
	}
	one.until("it is seen to list", "/2\\.1 listed [0-9]{2} tools (now|[0-9]+ s ago)/.test(document.querySelector('.first').innerText)")
	one.picture("connect-seen")
	if got := s.do(t, "mcp", "clients"); !strings.Contains(got, "claude-code") || !strings.Contains(got, "tools/list") || !strings.Contains(got, "desk") {
		t.Errorf("by the command line: %s", got)
	}
	for _, c := range []struct{ client, has string }{{"VS Code", "give it the token when it asks"}, {"Claude Desktop", "which may do everything"}, {"Codex", "bearer_token_env_var"}} {
		one.presses(c.client)
		one.reads(c.has)
	}
	one.presses("Claude Desktop")
	one.until("the token is written", "(b => { if (b && !b.checked) b.click(); return document.querySelector('pre[aria-label^=\"What the file\"]')?.innerText.includes(%q) })(document.querySelector('main input[type=checkbox]'))", token)
	if got := await[string](t, one.tab, "location.href + JSON.stringify(localStorage) + JSON.stringify(sessionStorage) + JSON.stringify(history.state)"); strings.Contains(got, token) {
		t.Errorf("the token is in %s", got)
	}
	one.presses("Audit")
	one.presses("Connect")
	if got := await[string](t, one.tab, "document.body.innerText"); strings.Contains(got, token) {
		t.Error("the token is shown once more")
	}
	for _, c := range one.take() {
		t.Errorf("the browser says: %s", c)
	}

	reader := visit(t, p, s.url+"/console/connect?client=codex")
	reader.fills("Token", s.reader(t))
	reader.presses("Sign in")
	reader.reads("makes no others")
	reader.reads("Nobody yet by your token")
	if got := await[string](t, reader.tab, "document.querySelector('main').innerText"); strings.Contains(got, "Make the token") || strings.Contains(got, "desk") {
		t.Errorf("a token that only reads sees %s", got)
	}
}

// row is the row of a table that has a text.
func row(text string) string {
	return fmt.Sprintf("[...document.querySelectorAll('table.list tbody tr')].find(r => r.innerText.includes(%q))", text)
}

// clicks presses a button by the name that it is read out by.
func (p *person) clicks(label string) {
	p.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('button')].find(e => e.getAttribute('aria-label') === %q && e.checkVisibility() && !e.disabled)", label)
	p.until("there is a button "+label, "%s", find)
	await[bool](p.t, p.tab, "(%s).click() === undefined", find)
}

// goes visits a page of the console.
func (p *person) goes(s *server, path string) {
	p.t.Helper()
	if err := browser.Visit(p.tab, s.url+"/console/"+path); err != nil {
		p.t.Fatal(err)
	}
}

func (p *person) closed() {
	p.t.Helper()
	p.until("nothing is asked", "document.querySelectorAll('dialog[open]').length === 0")
}

// same is what the places are called that show a form as a command, a request and a call.
const same = "The same by the command line, REST and MCP"

const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func TestThePagesOfAProject(t *testing.T) {
	p := needBrowser(t)
	s := serve(t, "")
	one := s.signedIn(t, p)
	whole := t
	t.Run("Empty", func(t *testing.T) {
		one.t = t
		for page, has := range map[string]string{"snapshots": "There are no snapshots", "volumes": "There are no volumes", "templates": "There are no templates", "skills": "keeps no skills"} {
			one.goes(s, page)
			one.reads(has)
			one.until("it says how", "document.querySelector('.empty pre')?.innerText.startsWith('sandpit ')")
		}
	})
	s.do(t, "create", "--name", "shop", "--label", "team=data", "--env", "KEPT=secret-value")
	t.Run("SettingsAreChanged", func(t *testing.T) {
		one.t = t
		one.goes(s, "sandboxes/shop/settings")
		one.reads("KEPT")
		one.fills("Memory in MiB", "333")
		one.fills("Idle after, in seconds", "7200")
		one.fills("Variable", "FRESH")
		one.fills("Its value", "another-secret")
		one.presses("Set it")
		one.clicks("Take away KEPT")
		one.reads("is taken away")
		one.presses(same)
		one.reads("sandpit update shop --memory 333M --idle-timeout 7200s --env-set FRESH=… --env-unset KEPT")
		one.picture("settings")
		if got := await[string](t, one.tab, "document.body.innerText"); strings.Contains(got, "secret-value") || strings.Contains(got, "another-secret") {
			t.Error("a value of a variable is shown")
		}
		one.presses("Save")
		one.reads("It is changed.")
		if got := s.do(t, "inspect", "shop", "-o", "json"); !strings.Contains(got, `"memory_mb": 333`) || !strings.Contains(got, `"idle_timeout_seconds": 7200`) || strings.Contains(got, `"KEPT"`) {
			t.Errorf("the server has %s", got)
		}
		if got := s.do(t, "exec", "shop", "--", "sh", "-c", "echo $FRESH$KEPT"); strings.TrimSpace(got) != "another-secret" {
			t.Errorf("a command has %q", got)
		}
		// Somebody else changes the same meanwhile.
		one.fills("Processes", "100")
		s.do(t, "update", "shop", "--pids", "222", "--label", "team=web")
		one.reads("Somebody else changed the same meanwhile")
		one.reads("meanwhile somebody made 222 of")
		one.until("it cannot be saved", "[...document.querySelectorAll('.save button')].find(b => b.innerText === 'Save').disabled")
		one.picture("settings-conflict")
		one.presses("Take theirs")
		one.until("it is theirs", "!document.body.innerText.includes('Somebody else') && [...document.querySelectorAll('label')].find(l => l.innerText === 'Processes').control.value === '222'")
		one.fills("Labels", "team=web\ntier=<i>front</i>")
		one.presses("Save")
		one.reads("It is changed.")
		if got := s.do(t, "inspect", "shop", "-o", "json"); !strings.Contains(got, `"pids": 222`) || !strings.Contains(got, "tier") || !strings.Contains(got, `"web"`) {
			t.Errorf("the server has %s", got)
		}
		one.fills("Memory in MiB", "1")
		one.presses("Save")
		one.until("what is wrong is said", "document.querySelector('.trouble[role=alert]')?.innerText.includes('memory_mb')")
		one.until("nothing of it is lost", "[...document.querySelectorAll('label')].find(l => l.innerText === 'Memory in MiB').control.value === '1'")
		one.take()
	})
	t.Run("ARunLeavesArtifacts", func(t *testing.T) {
		one.t = t
		one.goes(s, "sandboxes/shop/runs")
		one.reads("There are no runs")
		one.presses("Start a run")
		one.fills("Commands", "echo '<b>made</b>'; echo oops >&2\nprintf '<svg onload=alert(1)>' > /artifacts/a.svg; printf '<h1>page</h1>' > '/artifacts/p<b>.html'; echo "+picture+" | base64 -d > /artifacts/dot.png\nexit 3")
		one.presses("Start it")
		one.reads("exit 3")
		one.reads("<b>made</b>")
		one.reads("p<b>.html")
		one.clicks("Show a.svg")
		one.reads("<svg onload=alert(1)>")
		one.clicks("Show p<b>.html")
		one.reads("<h1>page</h1>")
		one.clicks("Show dot.png")
		one.until("the picture is there", "document.querySelector('img.picture')?.naturalWidth === 1 && document.querySelector('img.picture').src.startsWith('blob:')")
		if got := await[int](t, one.tab, "document.querySelectorAll('main svg, main h1 ~ * h1, main b b').length"); got != 0 {
			t.Errorf("%d elements are of an artifact", got)
		}
		s.do(t, "code", "shop", "-c", "x = 6 * 7")
		one.until("the context is listed", "%s", row("python"))
		one.picture("runs")
	})
	t.Run("SnapshotsOfAllSandboxes", func(t *testing.T) {
		one.t = t
		s.do(t, "exec", "shop", "--", "sh", "-c", "echo kept > kept.txt")
		s.do(t, "snapshot", "create", "shop", "--name", "before")
		one.presses("Snapshots")
		one.until("it is listed", "%s?.innerText.includes('shop')", row("before"))
		one.picture("snapshots")
		one.presses("Import a snapshot")
		one.fills("Name", "brought")
		id := await[string](t, one.tab, "fetch('/v1/snapshots').then(r => r.json()).then(l => l.items.find(s => s.name === 'before').id)")
		await[bool](t, one.tab, "fetch('/v1/snapshots/%s/archive').then(r => r.blob()).then(b => { const d = new DataTransfer(), i = document.querySelector('input[type=file]'); d.items.add(new File([b], 'x.tar.gz')); i.files = d.files; return i.dispatchEvent(new Event('change')) })", id)
		one.reads("brought is imported.")
		one.until("it is listed, of no sandbox", "%s?.innerText.includes('none')", row("brought"))
		one.clicks("New sandbox from brought")
		one.fills("Name", "copy")
		one.presses("Create")
		one.until("it runs", "document.querySelector('.title .state.running')")
		if got := s.do(t, "exec", "copy", "--", "cat", "kept.txt"); got != "kept\n" {
			t.Errorf("the copy has %q", got)
		}
		one.presses("Snapshots")
		one.clicks("Delete brought")
		one.reads("are lost: its sandbox is no more")
		one.presses("Delete it")
		one.until("it is gone", "!%s && %s", row("brought"), row("before"))
		// A file that is no snapshot.
		one.presses("Import a snapshot")
		await[bool](t, one.tab, "(i => { const d = new DataTransfer(); d.items.add(new File(['no archive'], 'x.gz')); i.files = d.files; return i.dispatchEvent(new Event('change')) })(document.querySelector('input[type=file]'))")
		one.until("it is refused", "document.querySelector('.drop .trouble')")
		one.take()
	})
	t.Run("VolumesAreMadeUsedAndDeleted", func(t *testing.T) {
		one.t = t
		one.presses("Volumes")
		one.presses("Create a volume")
		one.fills("Name", "data")
		one.presses(same)
		one.reads("POST /v1/volumes")
		one.presses("Create")
		one.until("it is listed", "%s?.innerText.includes('nobody')", row("data"))
		s.do(t, "create", "--name", "user", "--volume", "data:/mnt/data")
		one.until("its user is listed", "%s?.innerText.includes('user')", row("data"))
		one.until("it cannot be deleted", "document.querySelector('button[aria-label=\"Delete data\"]').disabled")
		one.picture("volumes")
		s.do(t, "rm", "--force", "user")
		one.clicks("Delete data")
		one.reads("no snapshot of a sandbox has files of a volume")
		one.presses("Delete it")
		one.reads("There are no volumes")
	})
	t.Run("TemplatesAreMadeUsedAndDeleted", func(t *testing.T) {
		one.t = t
		one.presses("Templates")
		one.presses("Create a template")
		one.fills("Name", "web")
		one.fills("Starts", "sleep 1000")
		one.fills("Memory in MiB", "128")
		one.presses(same)
		one.reads("sandpit template create web --start 'sleep 1000' --memory 128M")
		one.presses("Create")
		one.until("it is listed", "%s?.innerText.includes('ready')", row("web@1"))
		one.reads("128 MiB")
		one.picture("templates")
		one.clicks("New sandbox of web@1")
		one.fills("Name", "site")
		one.presses("Create")
		one.until("it runs", "document.querySelector('.title .state.running')")
		if got := s.do(t, "inspect", "site", "-o", "json"); !strings.Contains(got, `"memory_mb": 128`) {
			t.Errorf("the server has %s", got)
		}
		one.presses("Templates")
		one.clicks("Delete web@1")
		one.presses("Delete it")
		one.reads("There are no templates")
	})
	t.Run("SkillsAreReadAsText", func(t *testing.T) {
		one.t = t
		one.presses("Skills")
		one.presses("Write a skill")
		one.fills("SKILL.md", "---\nname: notes\ndescription: Keeps <img src=x onerror=alert(1)> notes.\n---\n\n# Notes\n<script>alert(1)</script>\u202eback")
		one.presses("Keep it")
		one.reads("notes is kept.")
		one.reads("<script>alert(1)</script>⟨202e⟩back")
		one.picture("skills")
		one.chooses("Install into", await[string](t, one.tab, "[...document.querySelectorAll('main select option')].find(o => o.innerText === 'shop').value"))
		one.presses("Install")
		one.reads("It is installed.")
		if got := s.do(t, "exec", "shop", "--", "cat", "skills/notes/SKILL.md"); !strings.Contains(got, "# Notes") {
			t.Errorf("the sandbox has %q", got)
		}
		one.clicks("Delete notes")
		one.reads("it stays there")
		one.presses("Delete it")
		one.reads("keeps no skills")
	})
	t.Run("SandboxesAreFilteredAndResumed", func(t *testing.T) {
		one.t = t
		one.presses("Sandboxes")
		one.reads("copy")
		one.chooses("Label", "team=web")
		one.until("one is left", "document.querySelectorAll('.row:not(.head)').length === 1 && document.querySelector('.row:not(.head)').innerText.includes('shop')")
		one.chooses("Label", "")
		one.chooses("Sorted by", "name")
		one.until("they are by name", "[...document.querySelectorAll('.row .name a')].map(a => a.innerText).join() === 'copy,shop,site'")
		one.fills("Search", "nothing is so")
		one.reads("None of the 3 is so")
		one.presses("Show all")
		s.do(t, "pause", "shop")
		s.do(t, "pause", "copy")
		one.until("they are paused", "document.querySelectorAll('.row .state.paused').length === 2")
		one.clicksBox("Choose shop")
		one.clicksBox("Choose copy")
		one.picture("sandboxes-filtered")
		one.presses("Resume")
		one.until("they run", "document.querySelectorAll('.row .state.running').length === 3")
		one.presses("Create a sandbox")
		one.fills("Name", "it's")
		one.presses("More")
		one.fills("Labels", "a=b")
		one.presses(same)
		one.reads("--name 'it'\\''s' --label a=b")
		one.fills("Labels", "")
		one.fills("Name", "by-mcp")
		one.fills("Memory in MiB", "256")
		tool, args, _ := strings.Cut(await[string](t, one.tab, "[...document.querySelectorAll('dialog[open] details[open] pre')].at(-1).innerText"), " ")
		session, _ := s.message(t, s.token, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
		if _, got := s.message(t, s.token, session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+args+`}}`); !strings.Contains(got, "by-mcp") || strings.Contains(got, `"isError":true`) {
			t.Errorf("%s %s: %s", tool, args, got)
		}
		if got := s.do(t, "inspect", "by-mcp", "-o", "json"); !strings.Contains(got, `"memory_mb": 256`) {
			t.Errorf("by the call that the form shows: %s", got)
		}
		one.until("the defaults are said", "(l => ['Memory in MiB', 'Processors'].every(n => Number(l.find(e => e.innerText === n).control.placeholder) > 0))([...document.querySelectorAll('dialog label')])")
		one.fills("Name", "by-form")
		one.fills("Memory in MiB", "1")
		one.presses("Create")
		one.until("what is wrong is in sight", "(r => r && r.top >= 0 && r.bottom <= innerHeight)(document.querySelector('dialog .trouble')?.getBoundingClientRect())")
		one.take() // the browser tells of the 422
		one.fills("Memory in MiB", "256")
		one.chooses("Image", "…")
		one.fills("Its name", "python-3.12")
		one.reads("python-3.12 is python here")
		one.chooses("Network", "restricted")
		one.until("a name for hosts is chosen", "(b => b && (b.checked || (b.click(), false)))([...document.querySelectorAll('dialog .choice')].find(l => l.innerText.trim() === 'node')?.querySelector('input'))")
		one.fills("And these hosts", "*.example.org 192.0.2.0/24")
		one.reads("--network restricted --allow node --allow-domain '*.example.org' --allow-cidr 192.0.2.0/24")
		one.picture("create")
		one.presses("Create")
		one.reads("\"python-3.12\" names python 3.12")
		one.picture("create-note")
		one.presses("Open it")
		one.until("it runs", "document.querySelector('.title .state.running')")
		if got := s.do(t, "inspect", "by-form", "-o", "json"); !strings.Contains(got, `"*.example.org"`) || !strings.Contains(got, `"192.0.2.0/24"`) || !strings.Contains(got, `"node"`) {
			t.Errorf("the server has %s", got)
		}
	})
	t.Run("AnImageIsLookedAt", func(t *testing.T) {
		one.t = t
		one.presses("Images")
		one.until("the default is listed", "[...document.querySelectorAll('table.list button[aria-expanded]')].some(b => b.closest('tr').innerText.includes('the default') && (b.click(), true))")
		one.reads("Builds on this server")
		one.until("who uses it is said", "[...document.querySelectorAll('section[aria-label=\"The image\"] a')].some(a => a.innerText === 'shop')")
		one.picture("images-one")
	})
	t.Run("NothingWasRefusedByItsPolicy", func(t *testing.T) {
		for _, c := range one.take() {
			t.Errorf("the browser says: %s", c)
		}
		documented(t, s, one.complaints)
	})
	t.Run("ANarrowScreenHasAMenu", func(t *testing.T) {
		one.t = t
		if _, err := chromedp.Run(one.tab, chromedp.EmulateViewport(360, 740)); err != nil {
			t.Fatal(err)
		}
		one.goes(s, "snapshots")
		one.reads("before")
		one.until("the pages are put away", "!document.querySelector('#pages').checkVisibility()")
		one.picture("narrow")
		one.presses("Menu")
		one.picture("narrow-menu")
		one.presses("Volumes")
		one.reads("outlives sandboxes")
		one.until("the pages are put away again", "!document.querySelector('#pages').checkVisibility()")
		if _, err := chromedp.Run(one.tab, chromedp.EmulateViewport(800, 600)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("TheServerIsKilledUnderEachPage", func(t *testing.T) {
		one.t = t
		s.do(t, "volume", "create", "data")
		pages := map[string]string{"connect": "Who called", "sandboxes/shop/settings": "Processors", "sandboxes/shop/runs": "failed", "snapshots": "before", "volumes": "data", "templates": "There are no templates", "skills": "keeps no skills", "images": "the default", "sandboxes": "shop"}
		all := make(map[string]*person)
		for page, has := range pages {
			two := visit(t, p, strings.TrimSpace(s.do(t, "console", "--print")))
			two.reads("Sandboxes")
			two.goes(s, page)
			two.reads(has)
			all[page] = two
		}
		all["sandboxes/shop/settings"].fills("Memory in MiB", "444")
		s.kill(t)
		for page, two := range all {
			two.reads("The server has not answered for")
			two.reads(pages[page]) // what was read stays
		}
		s.again(whole)
		for page, two := range all {
			two.until(page+" says so no longer", "!document.body.innerText.includes('The server has not answered for') && !document.querySelector('main .trouble')")
			two.reads(pages[page])
		}
		all["sandboxes/shop/settings"].presses("Save") // what was typed was kept
		all["sandboxes/shop/settings"].reads("It is changed.")
		s.do(t, "volume", "create", "later")
		all["volumes"].reads("later")
	})
	t.Run("WhatATokenMayNotDoHasNoButton", func(t *testing.T) {
		s.do(t, "project", "create", "other")
		s.do(t, "snapshot", "create", "shop", "--name", "after")
		reader := visit(t, p, s.url+"/console/")
		reader.fills("Token", s.reader(t))
		reader.presses("Sign in")
		reader.reads("may only read")
		var made struct {
			Token string `json:"token"`
		}
		if err := json.Unmarshal([]byte(s.do(t, "token", "create", "--name", "guest", "--project", "other", "-o", "json")), &made); err != nil {
			t.Fatal(err)
		}
		other := visit(t, p, s.url+"/console/")
		other.fills("Token", made.Token)
		other.presses("Sign in")
		other.reads("There are no sandboxes yet")
		other.take()
		for page, has := range map[string][2]string{"snapshots": {"before", "There are no snapshots"}, "volumes": {"data", "There are no volumes"}, "templates": {"There are no templates", "There are no templates"}, "skills": {"keeps no skills", "keeps no skills"}, "images": {"the default", "the default"}} {
			reader.goes(s, page)
			reader.reads(has[0])
			if got := await[string](t, reader.tab, "[...document.querySelectorAll('main button')].map(b => b.innerText).join()"); regexp.MustCompile("Delete|Create|New|Import|Upload|Write|Pull|default|Rebuild|Install").MatchString(got) {
				t.Errorf("%s: a token that only reads sees the buttons %s", page, got)
			}
			other.goes(s, page)
			other.reads(has[1])
			if got := await[string](t, other.tab, "document.querySelector('main').innerText"); strings.Contains(got, "shop") || strings.Contains(got, "copy") {
				t.Errorf("%s: another project sees %s", page, got)
			}
		}
		for _, tab := range []string{"settings", "runs"} {
			reader.goes(s, "sandboxes/shop/"+tab)
			reader.reads(map[string]string{"settings": "may only read", "runs": "failed"}[tab])
			if got := await[string](t, reader.tab, "[...document.querySelectorAll('main section section button, main section[aria-label] button')].filter(b => !b.disabled).map(b => b.innerText).join()"); regexp.MustCompile("Save|Set it|Take away|Start it|End|Restart").MatchString(got) {
				t.Errorf("%s: a token that only reads sees the buttons %s", tab, got)
			}
			other.goes(s, "sandboxes/shop/"+tab)
			other.until("there is none for it", "document.querySelector('.trouble')")
		}
	})
}

// clicksBox clicks the check box that is read out so.
func (p *person) clicksBox(label string) {
	p.t.Helper()
	find := fmt.Sprintf("document.querySelector('input[type=checkbox][aria-label=%q]')", label)
	p.until("there is a box "+label, "%s", find)
	await[bool](p.t, p.tab, "(%s).click() === undefined", find)
}
