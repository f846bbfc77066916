// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sandpit.dev/test/browser"
)

// evil are names that are markup, that change the direction of what follows, too, and that escape a title and a line as well.
var evil = []string{"<img src=x onerror=owned()>", "<img src=x onerror=owned()>\u202eowned\u2066", "<img src=x onerror=owned()>\"'><script>owned()</script>{{owned()}}\x1b]0;owned\x07\x1b[31m\u202eowned\u2066\u200b"}

// deceiving are the characters that no page shows as they are, in any of its texts or attributes that people see or hear.
const deceiving = `(() => {
	const bad = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/, found = [];
	const say = (where, text) => { if (bad.test(text ?? "")) found.push(where + ": " + JSON.stringify(text).slice(0, 200)); };
	say("title", document.title);
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n = walk.nextNode(); n; n = walk.nextNode()) if (!n.parentElement.closest(".xterm, .cm-editor")) say(n.parentElement.tagName, n.data);
	for (const e of document.querySelectorAll("*")) for (const a of ["title", "aria-label", "alt", "placeholder", "download"]) say(e.tagName + " " + a, e.getAttribute(a));
	for (const e of document.querySelectorAll("img, script:not([src^='/console/assets/']), iframe, object, embed, svg:not(figure.bars > svg, .graph > svg), figure.bars > svg :not(rect, title), .graph > svg :not(text, path, g, circle, title), form[action], a[href^='javascript:']")) if (!(e.src ?? "").startsWith("blob:")) found.push("element " + e.outerHTML.slice(0, 200));
	if (window.wasOwned) found.push("a script ran");
	return found;
})()`

// TestWhatIsAStrangersIsText has names, output, titles and details full of markup, of escapes and of characters that change the
// direction of text, wherever a stranger writes some, and looks at every page.
func TestWhatIsAStrangersIsText(t *testing.T) {
	p := needBrowser(t)
	s := serve(t, "")
	furnish(t, s)
	one := signed(t, p, s.url, s.token)
	// By REST all are written as they are; what is refused there is no stranger's to write.
	wrote := await[[]string](t, one.tab, `(async evils => {
		const said = [];
		const send = async (path, body, method = "POST") => { const r = await fetch("/v1" + path, {method, headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)}); said.push(path.slice(0, 60) + " " + r.status); return r.ok ? r.json().catch(() => ({})) : {}; };
		for (const [i, evil] of evils.entries()) {
			await send("/sandboxes/shop", {metadata: {["l" + i]: evil}}, "PATCH");
			await send("/sandboxes/shop/exec", {argv: ["sh", "-c", "printf '%%s\\n' \"$0\"; printf '%%s\\n' \"$0\" >&2; echo x > \"$(printf %%s \"$0\" | tr / _)\"; mkdir -p \"d$(printf %%s \"$0\" | tr / _)\"", evil]});
			await send("/sandboxes/shop/exec", {command: "exit 3 # " + evil, env: {A: evil}});
			await send("/sandboxes/shop/processes", {argv: ["bash", "-c", "exec -a \"$0\" python3 -m http.server 800" + (i + 1), evil], name: "evil" + i, labels: {of: evil}});
			await send("/sandboxes/shop/processes", {argv: ["bash", "-c", "exec -a \"$0\" python3 -m http.server 801" + (i + 1), evil]});
			await send("/sandboxes/shop/snapshots", {name: evil});
			await send("/tokens", {name: evil, scopes: ["sandboxes:read"]});
			await send("/sandboxes/shop/network/requests", {allow_domains: ["example" + i + ".net"], reason: evil});
			await send("/volumes", {name: "evil" + i, metadata: {of: evil}});
			await send("/templates", {name: "evil" + i, description: evil});
			await send("/sandboxes/" + encodeURIComponent(evil) + "/start", {});
		}
		return said;
	})(%s)`, must(json.Marshal(evil)))
	t.Logf("written: %q", wrote)
	ok := 0
	for _, w := range wrote {
		if strings.HasSuffix(w, " 200") || strings.HasSuffix(w, " 201") || strings.HasSuffix(w, " 202") {
			ok++
		}
	}
	if ok < 20 {
		t.Fatalf("too little was written: %q", wrote)
	}
	s.do(t, "exec", "shop", "--", "python3", "-c", "import socket\nfor n in ['<b>x<.example', '\\x1b[31mred.example', 'a\\u202eb.example']:\n try: socket.getaddrinfo(n, 80)\n except Exception: pass")
	await[bool](t, one.tab, "(window.owned = () => { window.wasOwned = true }) !== null")
	if found := await[[]string](t, one.tab, "(d => { d.title = '\\u202ex'; return %s })(document)", deceiving); len(found) == 0 {
		t.Fatal("nothing would be found")
	}
	one.take()
	look := func(path string) {
		t.Helper()
		time.Sleep(250 * time.Millisecond) // what is read a second time, and what a picture's onerror would do
		for _, found := range await[[]string](t, one.tab, "%s", deceiving) {
			t.Errorf("%s: %s", path, found)
		}
		for _, said := range one.take() {
			if !strings.Contains(said, "404") && !strings.Contains(said, "/sandboxes/none") {
				t.Errorf("%s: the browser says %s", path, said)
			}
		}
	}
	for _, c := range consolePages() {
		if err := browser.Visit(one.tab, s.url+"/console"+c.path); err != nil {
			t.Fatal(err)
		}
		await[bool](t, one.tab, "(window.owned = () => { window.wasOwned = true }) !== null")
		one.reads(c.has)
		look(c.path)
	}
	// The name in the address is a stranger's, too.
	if err := browser.Visit(one.tab, s.url+"/console/sandboxes/%3Cimg%20src=x%20onerror=owned()%3E%1b%5D0;x%07%E2%80%AE"); err != nil {
		t.Fatal(err)
	}
	one.reads("All sandboxes")
	look("a sandbox of that name")
	for _, address := range []string{"/console/sandboxes/%ff%fe", "/console/%ff", "/console/sandboxes/shop/%ff"} {
		if err := browser.Visit(one.tab, s.url+address); err != nil {
			t.Fatal(err)
		}
		one.until("the page says something", "document.querySelector('main')?.innerText.trim()")
		look(address)
	}
	// What commands wrote, and what they changed.
	if err := browser.Visit(one.tab, s.url+"/console/sandboxes/shop/processes"); err != nil {
		t.Fatal(err)
	}
	one.until("the output is shown", "document.querySelector('.log')?.textContent.includes('<img src=x') || (document.querySelector('table.list button[aria-expanded=true]') ?? [...document.querySelectorAll('table.list button')].find(b => b.innerText.includes('printf'))?.click(), false)")
	look("output")
	one.presses("Activity")
	one.reads("file")
	await[bool](t, one.tab, "[...document.querySelectorAll('summary')].forEach(s => s.click()) === undefined")
	look("activity")
	one.presses("Files")
	one.until("the files are there", "[...document.querySelectorAll('.tree button')].some(b => b.innerText.includes('<img') && (b.click(), true))")
	look("files")

	// A terminal's program sets its title, links, and the clipboard.
	one.presses("Terminal")
	one.presses("New terminal")
	one.until("its shell is there", "document.querySelector('.xterm-rows')?.innerText.includes('$')")
	await[bool](t, one.tab, "document.querySelector('.xterm-helper-textarea').focus() === undefined")
	before := await[string](t, one.tab, "document.title")
	if err := browser.Type(one.tab, `printf '\033]0;owned\007\033]52;c;b3duZWQ=\007\033]8;;javascript:owned()\033\\<img src=x onerror=owned()>\033]8;;\033\\\033[c\033[>c\033[6n\n'`+"\r"); err != nil {
		t.Fatal(err)
	}
	one.until("it is shown", "document.querySelector('.xterm-rows').innerText.includes('<img src=x')")
	if after := await[string](t, one.tab, "document.title"); after != before || strings.Contains(after, "owned") {
		t.Errorf("the title was %q and is %q", before, after)
	}
	look("a terminal")
	if err := browser.Type(one.tab, "touch ended; exit\r"); err != nil {
		t.Fatal(err)
	}
	one.reads("It ended")
	if got := s.do(t, "exec", "shop", "--", "sh", "-c", "ls | wc -l"); strings.TrimSpace(got) == "0" {
		t.Error(fmt.Sprint("the sandbox has no files: ", got))
	}
}

// TestAProjectSeesItsOwnAlone signs in with a project's token, while another project has what its pages would show.
func TestAProjectSeesItsOwnAlone(t *testing.T) {
	p := needBrowser(t)
	s := serve(t, "")
	furnish(t, s)
	s.do(t, "snapshot", "create", "shop", "--name", "secret-snapshot")
	s.do(t, "token", "create", "--name", "secret-token")
	s.do(t, "project", "create", "guests")
	token := secretIn(t, s.do(t, "token", "create", "--name", "guest", "--project", "guests", "--scope", "admin"))
	one := signed(t, p, s.url, token)
	id := idOf(t, s, "shop-again")
	if id == "" {
		t.Fatal("the other project has nothing")
	}
	// Its stream tells of its own, and of no other's.
	await[bool](t, one.tab, `(window.heard = [], window.source = new EventSource("/v1/events"), new Promise(done => { source.addEventListener("begun", () => done(true)); for (const k of ["created", "updated", "started", "deleted", "stopped"]) for (const n of ["sandbox", "snapshot", "volume"]) source.addEventListener(n + "." + k, e => heard.push(e.data)); }))`)
	s.do(t, "create", "--name", "secret-later")
	await[bool](t, one.tab, `fetch("/v1/sandboxes", {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"key":"ours"}'}).then(r => r.ok)`)
	one.until("its own is heard of", "heard.some(d => d.includes('ours'))")
	if got := await[string](t, one.tab, "heard.join()"); strings.Contains(got, "secret") || strings.Contains(got, "shop") {
		t.Errorf("the stream tells %s", got)
	}
	for _, query := range []string{"?project=default", "?project=*"} {
		if got := await[int](t, one.tab, `fetch("/v1/events" + %q).then(r => (r.body.cancel(), r.status))`, query); got == 200 {
			t.Errorf("the events of %s are told", query)
		}
	}
	one.reads("ours")
	for _, c := range append(consolePages(), consolePage{path: "/sandboxes/" + id}, consolePage{path: "/sandboxes/" + id + "/files"}, consolePage{path: "/sandboxes/" + id + "/terminal"}) {
		if err := browser.Visit(one.tab, s.url+"/console"+c.path); err != nil {
			t.Fatal(err)
		}
		one.until("the page says something", "document.querySelector('main')?.innerText.trim() && !document.querySelector('main').innerText.includes('Reading…')")
		time.Sleep(150 * time.Millisecond)
		text := await[string](t, one.tab, "document.querySelector('main').innerText")
		text = strings.ReplaceAll(text, "there is no sandbox", "")
		for _, theirs := range []string{"secret", "made.txt", "an-agent-with", "refused.example", "team"} {
			if strings.Contains(text, theirs) {
				t.Errorf("%s shows %s:\n%s", c.path, theirs, text)
			}
		}
		if strings.HasPrefix(c.path, "/sandboxes/") && !strings.Contains(text, "All sandboxes") {
			t.Errorf("%s is shown:\n%s", c.path, text)
		}
	}
}

// idOf is the id of the sandbox with a key.
func idOf(t *testing.T, s *server, key string) string {
	t.Helper()
	var one struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(s.do(t, "inspect", key, "-o", "json")), &one); err != nil {
		t.Fatal(err)
	}
	return one.ID
}

// must is for what cannot fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
