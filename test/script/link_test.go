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
}

func openServed(t *testing.T) *served {
	t.Helper()
	images := needRoot(t)
	dir := t.TempDir()
	s := &served{&server{dir: dir, env: environment(dir, images)}, t, ""}
	t.Cleanup(func() {
		if err := s.cleanUp(); err != nil {
			t.Error(err)
		}
	})
	s.begin()
	s.do("create", "--name", "box")
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

	// They pass to a fork that takes the place.
	s.serve("fork")
	s.do("promote", "fork")
	if got := s.do("link", "ls", "-q", "box"); got != last.ID {
		t.Errorf("after a promotion box has the links %s, want %s", got, last.ID)
	}
	s.wants("after a promotion", last.URL, 200)
	s.do("rm", "-f", "box")
	s.wants("of a deleted sandbox", last.URL, 401)
	s.killed()
	s.wants("of a deleted sandbox, after a kill", last.URL, 401)
}
