// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"sandpit.dev/access"
	"sandpit.dev/audit/recorder"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/fault"
	"sandpit.dev/git"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	alice = access.Caller{Project: "default", Actor: "alice", Via: "test", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}
	bob   = access.Caller{Project: "other", Actor: "bob", Via: "test", Scopes: alice.Scopes}
	carol = access.Caller{Project: "default", Actor: "carol", Via: "test", Scopes: []access.Scope{access.SandboxesRead}}
)

const password = "s3cret-of-alice"

func login() git.Remote { return git.Remote{Username: "u", Password: password} }

// house is a sandbox, and a server with a repository that the user u may read with the password.
type house struct {
	*enginetest.Server
	t      *testing.T
	git    *git.Service
	box    string
	url    string
	first  string // commits of the repository: of main, and of side
	second string
	other  atomic.Int64 // how often another server was asked
	leaked atomic.Bool  // that one was told a password
	bare   string       // the repository's directory at the server
	tls    *httptest.Server
	asked  atomic.Pointer[func(*http.Request)] // called when somebody who may asks the server
}

func open(t *testing.T) *house {
	t.Helper()
	skiptest.WithoutGit(t)
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	h := &house{Server: enginetest.Start(t, t.TempDir()), t: t}
	h.git = git.New(h.Engine, h.Files)
	s, _, err := h.Engine.Create(t.Context(), alice, engine.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	h.box = string(s.ID)

	dir := t.TempDir()
	host := h.host
	work := filepath.Join(dir, "work")
	host(dir, "init", "-q", "-b", "main", work)
	for i, text := range []string{"one\n", "two\n"} {
		if i == 1 {
			host(work, "checkout", "-q", "-b", "side")
		}
		if err := os.WriteFile(filepath.Join(work, "f"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		host(work, "add", "f")
		host(work, "commit", "-qm", text)
	}
	h.first, h.second = host(work, "rev-parse", "main"), host(work, "rev-parse", "side")
	host(work, "checkout", "-q", "main")
	host(dir, "clone", "-q", "--bare", work, "app.git")
	host(dir, "init", "-q", "--bare", "-b", "main", "empty.git")
	h.bare = filepath.Join(dir, "app.git")
	host(h.bare, "config", "http.receivepack", "true")
	hook := "#!/bin/sh\nwhile read old new ref; do case $ref in */protected) echo 'no: fatal: Authentication failed for you' >&2; exit 1;; esac; done\n"
	if err := os.WriteFile(filepath.Join(h.bare, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}

	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.other.Add(1)
		if r.Header.Get("Authorization") != "" {
			h.leaked.Store(true)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="other"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(other.Close)
	backend := &cgi.Handler{
		Path: program, Args: []string{"http-backend"}, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/elsewhere.git") {
			http.Redirect(w, r, other.URL+r.URL.RequestURI(), http.StatusFound)
			return
		}
		user, got, _ := r.BasicAuth()
		if user != "u" && user != "git" || got != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/echo.git") { // a server that says again what it was told
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "you said %s, %s \x1b]0;owned\x07\x1b[2J\n", got, r.Header.Get("Authorization"))
			return
		}
		if ask := h.asked.Load(); ask != nil {
			(*ask)(r)
		}
		r.Header.Del("Authorization") // which would be a variable of the server's processes
		backend.ServeHTTP(w, r)
	})
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	h.url = server.URL
	h.tls = httptest.NewTLSServer(answer)
	t.Cleanup(h.tls.Close)
	return h
}

// host runs git on the host, as the repository's server does.
func (h *house) host(in string, args ...string) string {
	h.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = in
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (h *house) clone(r git.CloneRequest) git.Cloned {
	h.t.Helper()
	got, err := h.git.Clone(h.t.Context(), alice, h.box, r)
	if err != nil {
		h.t.Fatalf("Clone of %s: %v", r.URL, fault.As(err).Message)
	}
	return got
}

// run runs a command inside and returns what it prints.
func (h *house) run(command string) string {
	h.t.Helper()
	var out strings.Builder
	res, err := h.Engine.Exec(h.t.Context(), alice, h.box, engine.ExecRequest{Shell: command}, func(f sandbox.Frame) error {
		out.Write(f.Data)
		return nil
	})
	if err != nil || res.ExitCode != 0 {
		h.t.Fatalf("%s: %v, exit code %d\n%s", command, err, res.ExitCode, out.String())
	}
	return strings.TrimSpace(out.String())
}

// recorded returns all that the records have of the sandbox, its commands' outputs included.
func (h *house) recorded() string {
	h.t.Helper()
	var all strings.Builder
	page, _, err := h.Engine.Activity(h.t.Context(), alice, h.box, engine.ActivityRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, ev := range page {
		fmt.Fprintf(&all, "%+v\n", *ev)
		if ev.ProcessID == "" {
			continue
		}
		f, err := h.Engine.Follow(h.t.Context(), alice, h.box, ev.ProcessID, engine.FollowRequest{Once: true})
		if err != nil {
			h.t.Fatal(err)
		}
		_, err = f.Run(h.t.Context(), engine.FollowSink{Frame: func(f sandbox.Frame) error {
			all.Write(f.Data)
			return nil
		}})
		f.Close()
		if err != nil {
			h.t.Error(err)
		}
	}
	return all.String()
}

// audited returns the audit log.
func (h *house) audited() string {
	h.t.Helper()
	auditor := access.Caller{Project: "default", Actor: "auditor", Via: "test", Scopes: []access.Scope{access.Admin}}
	e, err := h.Audit.NewExport(auditor, recorder.Query{})
	if err != nil {
		h.t.Fatal(err)
	}
	var all strings.Builder
	if err := e.JSON(h.t.Context(), &all); err != nil {
		h.t.Fatal(err)
	}
	return all.String()
}

func encoded(user string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

func TestARepositoryIsCloned(t *testing.T) {
	t.Parallel()
	h := open(t)
	auth := git.CloneRequest{URL: h.url + "/app.git", Remote: login()}

	got := h.clone(auth)
	want := git.Cloned{URL: h.url + "/app.git", Path: sandbox.Workspace + "/app", Commit: h.first, Branch: "main"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	side := auth
	side.Path, side.Branch, side.Depth = "deep/side", "side", 1
	if got := h.clone(side); got.Branch != "side" || got.Commit != h.second || h.run("cat deep/side/f; git -C deep/side rev-list --count HEAD") != "two\n1" {
		t.Errorf("a branch with a depth: got %+v", got)
	}
	at := auth
	at.Path, at.Commit = "-odd", h.second[:8]
	if got := h.clone(at); got.Branch != "" || got.Commit != h.second || h.run("cat ./-odd/f") != "two" {
		t.Errorf("a commit: got %+v", got)
	}
	token := git.CloneRequest{URL: h.url + "/app.git", Remote: git.Remote{Token: password}, Path: "by-token"}
	if got := h.clone(token); got.Commit != h.first {
		t.Errorf("by a token: got %+v", got)
	}
	within := git.CloneRequest{URL: strings.Replace(h.url, "http://", "http://u:"+password+"@", 1) + "/app.git", Path: "within"}
	if got := h.clone(within); got.URL != h.url+"/app.git" {
		t.Errorf("credentials within the address: got %+v", got)
	}
	empty := auth
	empty.URL = h.url + "/empty.git"
	if got := h.clone(empty); got.Commit != "" || got.Branch != "" || got.Path != sandbox.Workspace+"/empty" {
		t.Errorf("without a commit: got %+v", got)
	}
	h.run("git init -q -b main from && cd from && git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x")
	if got := h.clone(git.CloneRequest{URL: "./from", Path: "to"}); got.Branch != "main" {
		t.Errorf("of a path inside: got %+v", got)
	}
}

func TestCredentialsAreInNoFileRecordOrMessage(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.clone(git.CloneRequest{URL: h.url + "/app.git", Remote: login()})
	_, err := h.git.Clone(t.Context(), alice, h.box, git.CloneRequest{URL: h.url + "/echo.git", Remote: login()})
	f, ok := errors.AsType[*git.Failure](err)
	if !ok || fault.Of(err) != fault.State || !strings.Contains(f.Said, "you said ***") {
		t.Fatalf("a server that says the password again: %v", err)
	}
	if strings.ContainsAny(fault.As(err).Message, "\x1b\x07") {
		t.Errorf("the message has control characters: %q", fault.As(err).Message)
	}
	_, wrong := h.git.Clone(t.Context(), alice, h.box, git.CloneRequest{URL: strings.Replace(h.url, "http://", "http://u:"+password+"x@", 1) + "/app.git", Path: "no"})
	if fault.Of(wrong) != fault.State || strings.Contains(fault.As(wrong).Message, git.Refused) {
		t.Errorf("a wrong password: %v", wrong)
	}
	_, far := h.git.Clone(t.Context(), alice, h.box, git.CloneRequest{URL: "https://git.invalid/x"})
	if fault.Of(far) != fault.State || !strings.Contains(fault.As(far).Message, git.Refused+"git.invalid cannot be reached") || !strings.Contains(fault.As(far).Remedy, "--allow-domain git.invalid") {
		t.Errorf("without a network: %v", far)
	}
	if got := h.run("cat app/f; { grep -rF 's3cret-of' . ; env; } | grep -c 's3cret-of' || true"); got != "one\n0" {
		t.Errorf("inside: %q", got)
	}
	for where, text := range map[string]string{"the record": h.recorded(), "the error": fmt.Sprint(err, fault.As(err)), "the other error": fmt.Sprint(wrong, fault.As(wrong))} {
		for _, value := range []string{password, encoded("u")} {
			if strings.Contains(text, value) {
				t.Errorf("%s has %q:\n%s", where, value, text)
			}
		}
	}
}

func TestAnotherServerIsToldNoCredentials(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, err := h.git.Clone(t.Context(), alice, h.box, git.CloneRequest{URL: h.url + "/elsewhere.git", Remote: login()})
	if fault.Of(err) != fault.State || h.other.Load() == 0 || h.leaked.Load() {
		t.Errorf("after a redirect: %v, the other server was asked %d times, and told: %v", err, h.other.Load(), h.leaked.Load())
	}
	// What is inside says that the address is another's.
	h.run(`printf '[url "` + h.url + `/elsewhere.git"]\n\tinsteadOf = https://example.org/\n[credential]\n\thelper = "!cat >stolen"\n' >"$HOME/.gitconfig"`)
	_, err = h.git.Clone(t.Context(), alice, h.box, git.CloneRequest{URL: "https://example.org/", Path: "no", Remote: login()})
	if fault.Of(err) != fault.State || h.leaked.Load() {
		t.Errorf("another address by the configuration inside: %v, told: %v", err, h.leaked.Load())
	}
}

func TestGitRunsNoOtherProgram(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, url := range []string{
		"ext::sh -c 'touch /workspace/owned'", "ext::x", "fd::7", "http::x://y", "--upload-pack=touch owned", "-u", "", "file:///etc", "FILE:///etc", "ftp://x/y", "javascript://x", "https://u:p@a.helper=!id>owned;/x", "https://a b/x", "a=b:x",
		"ssh://-oProxyCommand=touch%20owned/x", "-oProxyCommand=x:y", "a@-oProxyCommand=x:y", "ssh://-l@host/x", "https:///x", "https://", "ssh://u:p@host/x",
		"https://host/a\nb", "https://host/\x1b[2J", "https://h/" + strings.Repeat("x", 3000), "https://a b/", "\xff",
	} {
		_, err := h.git.Clone(t.Context(), alice, h.box, git.CloneRequest{URL: url, Path: "x"})
		if !fault.Is(err, fault.Invalid) || fault.As(err).Fields[0].Name != "url" {
			t.Errorf("%q: %v", url, err)
		}
	}
	// git itself refuses what its configuration inside makes of an address.
	h.run(`git config --global protocol.ext.allow always; git config --global "url.ext::touch owned;.insteadOf" https://example.org/; git config --global "url.ext::touch owned;#.insteadOf" ./`)
	for _, url := range []string{"https://example.org/x", "./x"} {
		_, err := h.git.Clone(t.Context(), alice, h.box, git.CloneRequest{URL: url, Path: "x"})
		if f, ok := errors.AsType[*git.Failure](err); !ok || url != "./x" && !strings.Contains(f.Said, "not allowed") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if got := h.run("ls"); got != "" {
		t.Errorf("there is now %s", got)
	}
}

func TestWrongRequests(t *testing.T) {
	t.Parallel()
	h := open(t)
	ok := h.url + "/app.git"
	for field, all := range map[string][]git.CloneRequest{
		"path":            {{URL: ok, Path: "a\x00b"}, {URL: ok, Path: strings.Repeat("x", 5000)}, {URL: ok, Path: "a\x1b[2J"}, {URL: "https://example.org"}, {URL: "https://example.org/.."}},
		"branch":          {{URL: ok, Branch: "--bare"}, {URL: ok, Branch: "a b"}, {URL: ok, Branch: "a..b"}, {URL: ok, Branch: "a\nb"}, {URL: ok, Branch: "/x"}},
		"commit":          {{URL: ok, Commit: "--orphan"}, {URL: ok, Commit: "abc"}, {URL: ok, Commit: "HEAD"}},
		"depth":           {{URL: ok, Depth: -1}},
		"password":        {{URL: ok, Remote: git.Remote{Password: "a\nhost=evil"}}, {URL: ok, Remote: git.Remote{Password: strings.Repeat("x", 5000)}}},
		"username":        {{URL: ok, Remote: git.Remote{Username: "a\nhost=evil", Password: "x"}}},
		"token":           {{URL: ok, Remote: git.Remote{Token: "a", Password: "b"}}, {URL: ok, Remote: git.Remote{Token: "a\x00"}}},
		"url":             {{URL: "./from", Path: "x", Remote: git.Remote{Password: password}}, {URL: "git@example.org:x.git", Remote: git.Remote{Token: password}}},
		"timeout_seconds": {{URL: ok, Timeout: -1}},
	} {
		for _, r := range all {
			_, err := h.git.Clone(t.Context(), alice, h.box, r)
			if !fault.Is(err, fault.Invalid) || fault.As(err).Fields[0].Name != field {
				t.Errorf("%s: %+v: %v", field, r, err)
			}
			if err != nil && strings.Contains(err.Error(), password) {
				t.Errorf("%s: the error has the password: %v", field, err)
			}
		}
	}
	if _, err := h.git.Clone(t.Context(), carol, h.box, git.CloneRequest{URL: ok}); !fault.Is(err, fault.Denied) {
		t.Errorf("who may only read: %v", err)
	}
	if _, err := h.git.Clone(t.Context(), bob, h.box, git.CloneRequest{URL: ok}); !fault.Is(err, fault.NotFound) {
		t.Errorf("another project: %v", err)
	}
	if got := h.run("ls -A"); got != "" {
		t.Errorf("there is now %s", got)
	}
}

func TestWhatIsThereStays(t *testing.T) {
	t.Parallel()
	h := open(t)
	auth := git.CloneRequest{URL: h.url + "/app.git", Remote: login()}
	h.run("mkdir app && echo mine >app/f")
	if _, err := h.git.Clone(t.Context(), alice, h.box, auth); !fault.Is(err, fault.Exists) {
		t.Errorf("into a directory with files: %v", err)
	}
	auth.Commit, auth.Path = "0000000000", "new"
	if _, err := h.git.Clone(t.Context(), alice, h.box, auth); !fault.Is(err, fault.NotFound) || fault.ReasonOf(err) != git.ReasonNoCommit || !strings.Contains(fault.As(err).Message, "checking out 0000000000") {
		t.Errorf("a commit that is not there: %v", err)
	}
	if got := h.run("cat app/f; ls"); got != "mine\napp" {
		t.Errorf("inside: %q", got)
	}
}

func TestACloneEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	h := open(t)
	gone := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(gone)
		<-r.Context().Done()
	}))
	t.Cleanup(slow.Close)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-gone
		cancel()
	}()
	if _, err := h.git.Clone(ctx, alice, h.box, git.CloneRequest{URL: slow.URL + "/x"}); err == nil || ctx.Err() == nil {
		t.Errorf("got %v", err)
	}
}
