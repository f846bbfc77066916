// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"

	v1 "sandpit.dev/api/v1"
)

// served is a server with the sandbox "box" in which site is served.
type served struct {
	*server
	t    *testing.T
	addr string
	box  string // its id
}

func openServed(t *testing.T) *served {
	t.Helper()
	images := needRoot(t)
	dir := t.TempDir()
	s := &served{&server{dir: dir, env: environment(dir, images)}, t, "", ""}
	t.Cleanup(func() {
		if err := s.cleanUp(); err != nil {
			t.Error(err)
		}
	})
	s.begin()
	s.box = s.do("create", "--name", "box")
	s.serve("box")
	return s
}

// begin starts the server.
func (s *served) begin() {
	s.t.Helper()
	if err := s.start(); err != nil {
		s.t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(s.dir, "run", "server.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	var note struct{ URL string }
	if err := json.Unmarshal(b, &note); err != nil {
		s.t.Fatal(err)
	}
	s.addr = strings.TrimPrefix(note.URL, "http://")
}

// killed has the server killed and started again.
func (s *served) killed() {
	s.t.Helper()
	if err := s.end(syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	s.begin()
}

func (s *served) do(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// refused runs a command that has to fail, and say so.
func (s *served) refused(word string, args ...string) {
	s.t.Helper()
	if out, err := s.command(args...).CombinedOutput(); err == nil || !strings.Contains(string(out), word) {
		s.t.Errorf("%v: got %v, %s; want %q", args, err, out, word)
	}
}

func (s *served) serve(ref string) {
	s.t.Helper()
	write := s.command("exec", "-i", ref, "-c", "cat > site.py")
	write.Stdin = strings.NewReader(site)
	if out, err := write.CombinedOutput(); err != nil {
		s.t.Fatalf("write: %v\n%s", err, out)
	}
	s.do("exec", "-n", ref, "-c", `nohup python3 site.py >log 2>&1 &
python3 -c 'import socket, time
while socket.socket().connect_ex(("127.0.0.1", 8000)): time.sleep(.02)'`)
}

func (s *served) link(ref string, flags ...string) (l v1.PreviewLink) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.do(append([]string{"link", "create", ref, "8000", "-o", "json"}, flags...)...)), &l); err != nil {
		s.t.Fatal(err)
	}
	return l
}

// wants asks for a page with nothing but its address.
func (s *served) wants(what, address string, status int, headers ...string) (body string) {
	s.t.Helper()
	got, body := browser(s.t, s.addr).get(address, headers...)
	if got != status {
		s.t.Errorf("%s: got %d %s, want %d", what, got, body, status)
	}
	return body
}

func TestLinksOnRecord(t *testing.T) {
	s := openServed(t)
	l := s.link("box")
	host := strings.TrimSuffix(strings.TrimPrefix(l.URL, "http://"), "/")
	if body := s.wants("the link", l.URL, 200, "Authorization", "Bearer spt_x", "X-Sandpit-Token", "y", "Cookie", "sandpit_preview=z; own=1"); !strings.Contains(body, "home") ||
		!strings.Contains(body, "own=1") || strings.Contains(body, "spt_") || strings.Contains(strings.ToLower(body), "sandpit") {
		t.Errorf("the program saw %s", body)
	}
	s.wants("in upper case", "http://"+strings.ToUpper(host)+"/", 200)
	for _, bad := range []string{
		"8001-" + l.Token, "8000-" + l.Token[:39], "8000-" + l.Token + "a", "8000-" + l.Token[:20] + "." + l.Token[20:], "x.8000-" + l.Token,
		"8000-" + l.Token[:16], "8000-" + strings.Repeat("a", 40), "8000-" + l.ID + strings.Repeat("0", 24), "8000--" + l.Token[1:], "99999999999999999999-" + l.Token,
		"8000-" + strings.Repeat(l.Token, 5),
	} {
		if status, body := browser(t, s.addr).get("http://" + bad + ".localhost/v1/info"); status != 401 && status != 404 || strings.Contains(body, "version") {
			t.Errorf("%s: got %d %s", bad, status, body)
		}
	}
	if body := s.wants("the API there", l.URL+"v1/info", 404); !strings.Contains(body, "the program has no") {
		t.Errorf("got %s", body)
	}
	s.wants("the token by path", "http://localhost/preview/"+l.SandboxID+"/8000/", 401, "X-Sandpit-Token", l.Token)
	s.wants("the token to the API", "http://localhost/v1/sandboxes", 401, "Authorization", "Bearer "+l.Token)

	// A fork and a sandbox of a snapshot have none, and cannot revoke their parent's.
	s.do("fork", "--name", "fork", "box")
	s.do("snapshot", "create", "--name", "then", "box")
	s.do("create", "--name", "again", "--from-snapshot", "box/then")
	for _, ref := range []string{"fork", "again"} {
		if got := s.do("link", "ls", "-q", ref); got != "" {
			t.Errorf("%s has the links %s", ref, got)
		}
		s.refused("there is no link", "link", "rm", ref, l.ID)
	}
	s.wants("after all of that", l.URL, 200)

	c, _, err := websocket.Dial(t.Context(), l.URL+"ws", &websocket.DialOptions{HTTPClient: browser(t, s.addr).http})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.CloseNow() }()
	if err := c.Write(t.Context(), websocket.MessageText, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := c.Read(t.Context()); err != nil || string(got) != "x" {
		t.Fatalf("got %q, %v", got, err)
	}
	kept := s.link("box")
	s.do("link", "rm", "box", l.ID)
	if _, got, err := c.Read(t.Context()); err == nil {
		t.Errorf("what was open by a revoked link got %q", got)
	}
	if _, _, err := websocket.Dial(t.Context(), l.URL+"ws", &websocket.DialOptions{HTTPClient: browser(t, s.addr).http}); err == nil {
		t.Error("a revoked link opens a WebSocket")
	}
	s.wants("a revoked link", l.URL, 401)

	// The server is killed at once after what it acknowledged.
	last := s.link("box")
	s.do("link", "rm", "box", kept.ID)
	s.killed()
	for _, gone := range []v1.PreviewLink{l, kept} {
		s.wants("revoked before a kill", gone.URL, 401)
	}
	if body := s.wants("made before a kill", last.URL, 200); !strings.Contains(body, "home") {
		t.Errorf("got %s", body)
	}
	if got := s.do("link", "ls", "-q", "box"); got != last.ID {
		t.Errorf("box has the links %s, want %s", got, last.ID)
	}

	// They pass to a fork that takes the place. Signed links name a sandbox by its id and end; they say who has its place.
	s.serve("fork")
	s.do("exec", "box", "--", "sh", "-c", "echo shared > shared.txt")
	file := s.do("file", "link", "box", "shared.txt")
	signed := []string{s.do("preview", "box", "8000"), file[strings.LastIndex(file, "\n")+1:]}
	for _, u := range signed {
		s.wants("a signed link", u, 200)
	}
	fork := s.do("promote", "fork")
	for _, u := range signed {
		if body := s.wants("a signed link of what was promoted away", u, 404); !strings.Contains(body, "promoted away") || !strings.Contains(body, fork) {
			t.Errorf("%s answers %s, want the id %s", u, body, fork)
		}
	}
	if got := s.do("link", "ls", "-q", "box"); got != last.ID {
		t.Errorf("after a promotion box has the links %s, want %s", got, last.ID)
	}
	s.wants("after a promotion", last.URL, 200)
	s.do("rm", "-f", "box")
	s.wants("of a deleted sandbox", last.URL, 401)
	s.killed()
	s.wants("of a deleted sandbox, after a kill", last.URL, 401)
}

func TestATokenForAllPorts(t *testing.T) {
	s := openServed(t)
	box := s.do("create", "--name", "web")
	s.serve("web")
	url := "http://8000-" + box + ".localhost/"
	said, token, _ := strings.Cut(s.do("link", "access", "--token", "web"), "\n")
	if said != "private; programs see the host: own" || !strings.HasPrefix(token, "spp_s.0.0.") {
		t.Fatalf("got %s, %s", said, token)
	}
	s.wants("without it", url, 401)
	s.wants("with it", url+"?ork_preview_token="+token, 200)
	if got := s.do("link", "access", "web"); strings.Contains(got, "spp_") {
		t.Errorf("it is shown again: %s", got)
	}
	s.killed()
	s.serve("web")
	s.wants("after a kill", url+"?sandpit_token="+token, 200)
	s.do("link", "access", "--no-token", "web")
	s.wants("taken back", url+"?sandpit_token="+token, 401)
	if got := s.do("link", "access", "--token", "web"); strings.HasSuffix(got, token) {
		t.Errorf("it is the same again: %s", got)
	}
}

func TestPublicPreviews(t *testing.T) {
	s := openServed(t)
	box := s.do("create", "--name", "web")
	s.serve("web")
	host := "8000-" + box + ".localhost"
	url := "http://" + host + "/"
	admin, err := os.ReadFile(filepath.Join(s.dir, "data", "admin-token"))
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(admin))

	// As shipped nothing can be public.
	s.refused("its operator allows no public ones", "link", "access", "--public", "web")
	s.refused("its operator allows no public ones", "link", "access", "--public-port", "8000", "web")
	s.wants("as shipped", url, 401)
	s.refused("is not private or public", "settings", "set", "max_previews=all")
	s.do("settings", "set", "max_previews=public")
	s.wants("where it is allowed, and not said", url, 401)
	if got := s.do("link", "access", "--public-port", "8000", "web"); got != "private but for the ports 8000; programs see the host: own" {
		t.Errorf("got %s", got)
	}

	// The page is served, and our credentials are not shown to it.
	body := s.wants("a public page", url, 200, "Authorization", "Bearer "+token, "X-Sandpit-Token", token, "Cookie", "sandpit_preview=z; own=1",
		"Origin", "https://elsewhere.example", "Sec-Fetch-Site", "cross-site")
	if !strings.Contains(body, "home") || !strings.Contains(body, "own=1") || strings.Contains(body, token) || strings.Contains(strings.ToLower(body), "sandpit") {
		t.Errorf("the program saw %s", body)
	}
	// The API is not there, and takes nothing from its pages.
	for _, path := range []string{"v1/info", "v1/sandboxes", "mcp", "healthz", "metrics", "api/v1/sandboxes", "preview/" + box + "/8000/v1/info"} {
		if body := s.wants(path, url+path, 404, "Authorization", "Bearer "+token); !strings.Contains(body, "the program has no /"+path) {
			t.Errorf("%s: got %s", path, body)
		}
	}
	origin := []string{"Origin", strings.TrimSuffix(url, "/")}
	s.wants("a public page calls the API with the token", "http://localhost/v1/sandboxes", 403, append(origin, "Authorization", "Bearer "+token)...)
	s.wants("a public page calls the API with a browser's cookies", "http://localhost/v1/sandboxes", 403, append(origin, "Cookie", "sandpit_preview="+token+"; token="+token)...)
	s.wants("the API with cookies", "http://localhost/v1/sandboxes", 401, "Cookie", "sandpit_preview="+token+"; mine=1")
	s.wants("a public page opens the API", "http://localhost/v1/sandboxes", 403, "Cookie", "sandpit_preview="+token+"; mine=1", "Sec-Fetch-Site", "same-site")
	s.wants("the API's token in its address", url+"?sandpit_token="+token, 401)
	// What is not public stays private: other ports and sandboxes, and the server's own origin.
	s.wants("another port", "http://8001-"+box+".localhost/", 401)
	s.wants("by path", "http://localhost/preview/"+box+"/8000/", 401)
	s.wants("another sandbox", "http://8000-"+s.box+".localhost/", 401)
	if status, body := browser(t, s.addr).get("http://8000-"+s.box+".localhost/", "Origin", origin[1], "Sec-Fetch-Site", "same-site", "Cookie", "mine=1"); status != 401 {
		t.Errorf("a public page asks for a private one: got %d %s", status, body)
	}
	fork := s.do("fork", "web")
	s.serve(fork)
	s.wants("a fork", "http://8000-"+fork+".localhost/", 401)

	// What programs see as their host.
	for given, want := range map[string]string{"localhost": "localhost:8000", "app.example": "app.example", "own": host} {
		s.do("link", "access", "--host", given, "web")
		if body := s.wants("the host "+given, url, 200); !strings.Contains(body, "Host: "+want+"\n") && !strings.Contains(body, "Host: "+want+"\r\n") || !strings.Contains(body, "X-Forwarded-Host: "+host) {
			t.Errorf("%s: the program saw %s", given, body)
		}
	}
	s.do("link", "access", "--host", "own", "web")
	for _, bad := range []string{"App.example", "a/b", "a\r\nX: y", "::1", "a:99999999", strings.Repeat("a", 64), ".", "localhost:", ""} {
		s.refused("host", "link", "access", "--host", bad, "web")
	}

	// It is so after the server was killed, and ends at once when it is taken back.
	s.killed()
	s.wants("after a kill", url, 200)
	open := func() *websocket.Conn {
		t.Helper()
		c, _, err := websocket.Dial(t.Context(), url+"ws", &websocket.DialOptions{HTTPClient: browser(t, s.addr).http})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.CloseNow() })
		if err := c.Write(t.Context(), websocket.MessageText, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, got, err := c.Read(t.Context()); err != nil || string(got) != "x" {
			t.Fatalf("got %q, %v", got, err)
		}
		return c
	}
	c := open()
	s.do("link", "access", "--private", "web")
	if _, got, err := c.Read(t.Context()); err == nil {
		t.Errorf("what was open of a public port got %q", got)
	}
	s.killed()
	s.wants("private before a kill", url, 401)
	s.do("link", "access", "--public", "web")
	s.wants("all ports", url, 200)
	// A program cannot tell a token that is valid from one that is not; one of another form is its own business.
	for _, guess := range []string{token, "spt_admin_" + strings.Repeat("A", 52), "spt_guess", "sps_guess.guess"} {
		if body := s.wants("a token, valid or not", url, 200, "Authorization", "Bearer "+guess); strings.Contains(body, "Authorization") {
			t.Errorf("the program saw %s", body)
		}
	}
	if body := s.wants("a token of the program's", url, 200, "Authorization", "Bearer its-own"); !strings.Contains(body, "Bearer its-own") {
		t.Errorf("the program saw %s", body)
	}
	c = open()
	other := s.link("web").URL
	s.wants("by a link", other, 200)
	s.do("settings", "set", "max_previews=private")
	if _, got, err := c.Read(t.Context()); err == nil {
		t.Errorf("what was open of a public port got %q after its server let nothing be public", got)
	}
	s.wants("by a link, still", other, 200)
	s.wants("where it is not allowed any more", url, 401)
	if got := s.do("link", "access", "web"); got != "public (this server shows none: max_previews is private); programs see the host: own" {
		t.Errorf("got %s", got)
	}
	s.do("settings", "set", "max_previews=public")
	s.wants("where it is allowed again", url, 200)
	s.do("rm", "-f", "web")
	s.wants("of a deleted sandbox", url, 401)
}
