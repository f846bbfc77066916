// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"image/color"
	"image/png"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/internal/dockerd/dockerdtest"
)

// day is the work of an agent, from its first call to its last.
type day struct {
	*field
	*agent
	shop    *shop
	resumes bool // a call of this era outlives its connection
	tracks  bool // what a command changed is told
}

// era is a version of the protocol that differs from others in more than words.
type era struct {
	name, version string
	resumes       bool
}

var (
	stateless = era{"stateless", "2026-07-28", false}
	handshake = era{"handshake", "2025-11-25", true}
)

// TestAnAgentsDay shows that an agent can do a day's work through MCP alone: nothing else is
// asked of the server but what its answers link to. It is done in both eras of the protocol,
// each in a world of its own, and the connection breaks twice in each.
func TestAnAgentsDay(t *testing.T) {
	images := needRoot(t)
	for _, e := range []era{stateless, handshake} {
		t.Run(e.name, func(t *testing.T) { spendDay(t, images, e, true) })
	}
}

// On an Engine the day is the same, but that what a command changed is not told. The Engine gets the image first, which takes a minute.
func TestSoakAnAgentsDayOnAnEngine(t *testing.T) {
	if os.Getenv("SANDPIT_SOAK") != "1" {
		t.Skip("set SANDPIT_SOAK=1 to have an Engine get the python image and spend a day with it")
	}
	images := needRoot(t)
	h := dockerdtest.New(t)
	spendDay(t, images, handshake, false, "SANDPIT_RUNTIMES=docker", "SANDPIT_DOCKER_HOST=unix://"+h.Socket())
}

// spendDay is a day of an era, with a server of these variables.
func spendDay(t *testing.T, images string, e era, tracks bool, variables ...string) {
	names := map[string]netip.Addr{"other.example": shelf} // it is there, and nobody allows it
	for _, h := range shopHosts {
		names[h] = shelf
	}
	w := newWorld(t, names)
	d := &day{field: &field{world: w, api: netip.AddrPortFrom(house, 8080)}, shop: openShop(t, w), resumes: e.resumes, tracks: tracks}
	if d.shop == nil {
		t.Skip("this host has no git to serve a repository with")
	}
	empty := w.host(t)
	d.open(t, images, append(variables, "SANDPIT_MCP_GROUPS=runs")...)
	if !tracks { // the first create would wait for longer than a call may
		d.must(t, "create", "--name", "first")
		d.must(t, "rm", "-f", "first")
	}
	token, err := os.ReadFile(filepath.Join(d.server.dir, "data", "admin-token"))
	if err != nil {
		t.Fatal(err)
	}
	d.agent = &agent{
		url: "http://" + d.api.String() + "/mcp", token: strings.TrimSpace(string(token)), version: e.version,
		wire: &wire{world: w}, told: make(chan string, 64),
	}
	t.Cleanup(d.wire.cut)

	d.arrives(t)
	d.clones(t)
	d.installs(t)
	d.seesTestsFail(t)
	d.mends(t)
	plotted := d.plots(t)
	d.seesTestsPass(t)
	d.goesOn(t, plotted)
	d.reports(t)
	d.pushes(t)
	d.leaves(t, plotted)

	if err := d.cleanUp(); err != nil {
		t.Error(err)
	}
	if d := difference(empty, w.host(t)); d != "" {
		t.Errorf("it left behind:\n%s", d)
	}
}

// arrives: it looks at what there is, and makes a sandbox that reaches what it needs.
func (d *day) arrives(t *testing.T) {
	d.connect(t)
	if d.session.InitializeResult().Instructions == "" {
		t.Error("the server says nothing of itself")
	}
	listed, err := d.session.ListTools(t.Context(), nil)
	if err != nil || len(listed.Tools) == 0 {
		t.Fatalf("there are the tools %v, %v", listed, err)
	}
	d.ask(t, "create_sandbox", map[string]any{
		"name": "shop", "network": "restricted", "allow_domains": strings.Join(shopHosts, ","),
		"env": map[string]any{
			"GIT_SSL_CAINFO": "/workspace/ca.pem", "PIP_CERT": "/workspace/ca.pem", "SSL_CERT_FILE": "/workspace/ca.pem",
			"PIP_INDEX_URL": "https://pypi.example/simple", "PIP_RETRIES": "0",
			"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
			"RES_OPTIONS": "timeout:1 attempts:1", // a name that nobody answers for is asked for again
		},
	}, "created sandbox shop", "network restricted")
	d.ask(t, "write_file", map[string]any{"sandbox": "shop", "path": "ca.pem", "content": string(d.shop.authority)}, "/workspace/ca.pem")
}

// inRepository runs a command in the repository's folder.
func (d *day) inRepository(t *testing.T, command string, says ...string) {
	t.Helper()
	d.ask(t, "run_command", map[string]any{"sandbox": "shop", "cwd": "repo", "command": command}, says...)
}

// clones: it gets a repository from where the policy allows, and hears why not from elsewhere.
func (d *day) clones(t *testing.T) {
	clone := func(host string, says ...string) {
		t.Helper()
		d.ask(t, "run_command", map[string]any{"sandbox": "shop", "command": "git clone https://" + host + "/repo.git"}, says...)
	}
	clone("other.example", "exit 128", "network blocked: other.example is not among the names", "add it to allow_domains", "which allows files.example, git.example")
	told := []string{"exit 0"}
	if d.tracks {
		told = append(told, "changes in repo/.git\n", "created repo/shop/prices.py (")
	}
	clone("git.example", told...)
	d.ask(t, "list_files", map[string]any{"sandbox": "shop", "path": "repo", "depth": 2}, "tests/test_prices.py")
	d.ask(t, "read_file", map[string]any{"sandbox": "shop", "path": "repo/README.md"}, "python -m proof tests")
}

// installs: it gets from the index what the repository requires, and what that does.
func (d *day) installs(t *testing.T) {
	d.inRepository(t, "pip install -r requirements.txt", "exit 0", "Successfully installed proof-1.0 tally-1.0")
}

// reading is a process that runs in the background, as far as the agent has read on.
type reading struct {
	answer        // the last
	output string // all of it, as it came piece by piece
}

func (r *reading) add(g answer) { r.answer, r.output = g, r.output+g.section("stdout") }

// test starts the repository's tests in the background.
func (d *day) test(t *testing.T) *reading {
	t.Helper()
	r := &reading{}
	r.add(d.ask(t, "run_command", map[string]any{"sandbox": "shop", "cwd": "repo", "command": "python -m proof tests", "background": true},
		"started in the background", "stop_process"))
	return r
}

// readOn reads by the calls that the answers name, until there is a text.
func (d *day) readOn(t *testing.T, r *reading, want string) {
	t.Helper()
	for end := time.Now().Add(callBound); !strings.Contains(r.output, want); {
		if time.Now().After(end) {
			t.Fatalf("it never says %q, but\n%s", want, r.output)
		}
		tool, args := r.next(t)
		args["wait_seconds"] = 0.2 // and not until its end
		r.add(d.ask(t, tool, args))
	}
}

// whole checks how the tests ended, and that the pieces that were read are all that they said.
func (d *day) whole(t *testing.T, r *reading, verdict string, lines ...string) {
	t.Helper()
	if !strings.Contains(r.text, verdict) {
		t.Errorf("want %q, got\n%s", verdict, r.text)
	}
	process := regexp.MustCompile(`^process (\w+) `).FindStringSubmatch(r.text)
	if process == nil {
		t.Fatalf("no process is named in\n%s", r.text)
	}
	all := d.ask(t, "read_process", map[string]any{"sandbox": "shop", "process": process[1]}, verdict).section("stdout")
	if want := strings.Join(lines, "\n") + "\n"; all != want || r.output != want {
		t.Errorf("the tests said\n%s\npiece by piece\n%s\nwant\n%s", all, r.output, want)
	}
}

// seesTestsFail: it reads what the tests say while they run. Its connection is cut in the
// middle of a call.
func (d *day) seesTestsFail(t *testing.T) {
	r := d.test(t)
	d.readOn(t, r, "feed: open\n")
	d.shop.feed.add()
	d.readOn(t, r, "feed: 100\n")
	tool, args := r.next(t)
	p := d.begin(t, tool, args)
	d.shop.feed.add()
	d.hear(t, p, "feed: 200")
	d.wire.cut()
	d.shop.feed.add()
	d.shop.feed.end()
	<-p.ended
	switch {
	case d.resumes && p.err != nil:
		t.Fatalf("the call did not go on by another connection: %v", p.err)
	case !d.resumes && p.err == nil:
		t.Fatalf("the call outlived its connection: %s", p.got.text)
	case p.err != nil:
		p.got = d.ask(t, tool, args)
	}
	r.add(p.got)
	d.whole(t, r, "ended: exit 1",
		"tests/test_feed.py::test_every_price_comes_once", "feed: open", "feed: 100", "feed: 200", "feed: 300", "PASSED",
		"tests/test_prices.py::test_a_total", "PASSED", "tests/test_prices.py::test_a_discount", "FAILED", "2 tests passed, 1 failed")
	if s := r.section("stderr"); !strings.Contains(s, "assert total([(1000, 2)], discount=25) == 1500") {
		t.Errorf("why it failed is not in\n%s", r.text)
	}
}

// mends: it finds the mistake, and puts it right.
func (d *day) mends(t *testing.T) {
	d.ask(t, "search_files", map[string]any{"sandbox": "shop", "path": "repo", "pattern": `\bdiscount\b`, "glob": "*.py"}, "shop/prices.py:7: ")
	d.ask(t, "read_file", map[string]any{"sandbox": "shop", "path": "repo/shop/prices.py"}, "     7\t    return whole - discount")
	d.ask(t, "edit_file", map[string]any{
		"sandbox": "shop", "path": "repo/shop/prices.py",
		"old_text": "return whole - discount", "new_text": "return whole * (100 - discount) // 100",
	}, "1 place", "\n-    return whole - discount", "\n+    return whole * (100 - discount) // 100")
}

// plots: it draws what things cost, sees it, and leaves it as a file with a link, which is
// what it gives.
func (d *day) plots(t *testing.T) (link string) {
	g := d.ask(t, "run_code", map[string]any{"sandbox": "shop", "code": `
import sys; sys.path.insert(0, "repo")
import matplotlib.pyplot as plt
from shop.prices import total
costs = [total([(100, n)], discount=5 * n) for n in range(1, 9)]
plt.plot(costs)
plt.savefig("/artifacts/costs.png")
plt.show()`}, "ok after", "/artifacts/costs.png")
	if len(g.images) != 1 || g.images[0].MIMEType != "image/png" || len(g.links) != 1 {
		t.Fatalf("it shows %d images, and has the links %v", len(g.images), g.links)
	}
	drawn(t, g.images[0].Data)
	link = regexp.MustCompile(`http://\S+`).FindString(g.text)
	saved := d.signed(t, link, "image/png")
	drawn(t, saved)
	if seen := d.ask(t, "read_file", map[string]any{"sandbox": "shop", "path": "/artifacts/costs.png"}); len(seen.images) != 1 || !bytes.Equal(seen.images[0].Data, saved) {
		t.Errorf("the file is not seen as it is behind its link: %s", seen.text)
	}
	read, err := d.session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: g.links[0].URI})
	if err != nil || len(read.Contents) != 1 || !bytes.Equal(read.Contents[0].Blob, saved) {
		t.Errorf("the resource %s is not the file: %v", g.links[0].URI, err)
	}
	return link
}

// drawn checks that a picture is one, of more than one colour.
func drawn(t *testing.T, data []byte) {
	t.Helper()
	m, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	b, colours := m.Bounds(), make(map[color.Color]bool)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			colours[color.RGBAModel.Convert(m.At(x, y))] = true
		}
	}
	if len(colours) < 2 {
		t.Errorf("all of %v is %v", b, colours)
	}
}

// signature is that of a link.
var signature = regexp.MustCompile(`\.[A-Za-z0-9_-]{43}`)

// signed fetches a file by a link of the server's, and checks that nobody makes such a link
// but the server.
func (d *day) signed(t *testing.T, link, kind string) []byte {
	t.Helper()
	status, got, body := d.fetch(t, link)
	if got, _, _ = strings.Cut(got, ";"); status != http.StatusOK || got != kind {
		t.Fatalf("%s: got %d, %s, want %s\n%s", link, status, got, kind, body)
	}
	at := signature.FindStringIndex(link)
	if at == nil {
		t.Fatalf("%s is not signed", link)
	}
	forged := []byte(link)
	if forged[at[0]+1] == 'A' {
		forged[at[0]+1] = 'B'
	} else {
		forged[at[0]+1] = 'A'
	}
	for _, other := range []string{string(forged), link[:at[0]] + link[at[1]:]} {
		if status, _, got := d.fetch(t, other); status/100 != 4 || bytes.Contains(got, body) {
			t.Errorf("%s: got %d", other, status)
		}
	}
	return body
}

// seesTestsPass: it tests again what it has mended. The server is killed while it waits, and
// another goes on; the tests do too.
func (d *day) seesTestsPass(t *testing.T) {
	d.shop.feed.begin()
	r := d.test(t)
	d.readOn(t, r, "feed: open\n")
	tool, args := r.next(t)
	p := d.begin(t, tool, args)
	d.shop.feed.add()
	d.hear(t, p, "feed: 100")
	d.in(func() {
		if err := d.server.end(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	d.shop.feed.add()
	d.start(t)
	d.shop.feed.end()
	<-p.ended
	if p.err == nil {
		t.Fatalf("the call outlived its server: %s", p.got.text)
	}
	if d.resumes {
		d.connect(t) // the session is gone; where there is none, there is nothing to open
	}
	r.add(d.ask(t, tool, args))
	d.whole(t, r, "ended: exit 0",
		"tests/test_feed.py::test_every_price_comes_once", "feed: open", "feed: 100", "feed: lost", "feed: back", "feed: 200", "PASSED",
		"tests/test_prices.py::test_a_total", "PASSED", "tests/test_prices.py::test_a_discount", "PASSED", "3 tests passed, 0 failed")
}

// goesOn: what it had before the server was killed is there: variables, and links.
func (d *day) goesOn(t *testing.T, link string) {
	d.ask(t, "run_code", map[string]any{"sandbox": "shop", "code": "len(costs), costs[-1]"}, "ok after", "(8, 480)")
	drawn(t, d.signed(t, link, "image/png"))
}

// reports: it has a run leave what the tests say for the user, who gets it by its link.
func (d *day) reports(t *testing.T) {
	g := d.ask(t, "run_sandbox", map[string]any{
		"identifier": "shop", "commands": []any{map[string]any{"shell": "cd repo && python -m proof tests > /artifacts/report.txt"}},
	}, "run completed: 1 of 1 commands", "report.txt")
	i := slices.IndexFunc(g.links, func(l *sdk.ResourceLink) bool { return l.Name == "report.txt" })
	if i < 0 || !strings.Contains(g.text, g.links[i].URI) {
		t.Fatalf("no link to the report is among %v in\n%s", g.links, g.text)
	}
	if got := d.signed(t, g.links[i].URI, "text/plain"); !strings.HasSuffix(string(got), "3 tests passed, 0 failed\n") {
		t.Errorf("the report is\n%s", got)
	}
}

// pushes: it gives its work back, and what is there then is right.
func (d *day) pushes(t *testing.T) {
	d.inRepository(t, "git commit -q -am 'A discount is in percent' && git push -q origin HEAD:mended", "exit 0")
	d.ask(t, "run_command", map[string]any{
		"sandbox": "shop", "command": "git clone -q -b mended https://git.example/repo.git again && cd again && git log --format=%s -n 1 && python -m proof tests",
	}, "exit 0", "A discount is in percent\n", "3 tests passed, 0 failed\n")
}

// leaves: it puts away what it had, and nothing of it is left.
func (d *day) leaves(t *testing.T, link string) {
	d.ask(t, "delete_sandbox", map[string]any{"sandbox": "shop"}, "shop")
	if g := d.ask(t, "list_sandboxes", nil); strings.Contains(g.text, "shop") {
		t.Errorf("it is still there: %s", g.text)
	}
	if status, _, _ := d.fetch(t, link); status != http.StatusNotFound {
		t.Errorf("its file is still there: got %d", status)
	}
	if err := d.session.Close(); err != nil {
		t.Error(err)
	}
}
