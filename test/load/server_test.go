// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/client"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/leaktest"
	"sandpit.dev/internal/running"
	"sandpit.dev/internal/skiptest"
)

// soak reports whether the campaigns run in full.
func soak() bool { return os.Getenv("SANDPIT_SOAK") == "1" }

// length is how long a campaign is.
func length(short, full int) int {
	if soak() {
		return full
	}
	return short
}

// caches are what a server may hold for later, up to a bound.
var caches = []leaktest.Cache{
	{Kind: leaktest.Descriptors, Part: "user:[]", Most: 64},        // namespaces of free uid ranges
	{Kind: leaktest.Descriptors, Part: "/sandpit.db", Most: 16},    // connections of the database's pool
	{Kind: leaktest.Descriptors, Part: "pipe:[]", Most: 64},        // of connections through gates; the next ones take them
	{Kind: leaktest.Sockets, Part: "/sandpit/sudo.sock", Most: 64}, // in the /dev of each free uid range
	{Kind: leaktest.Directories, Part: "/spare/", Most: 256},       // emptied layers, each seen by two ways
	{Kind: leaktest.Sockets, Part: "@sandpit-", Most: 1},           // of each server, by which it has its installation alone
}

// program is the server as users have it, and otherBuild the same of another version.
var (
	program    = sync.OnceValues(func() (string, error) { return build("sandpit", "v1.0.0-load") })
	otherBuild = sync.OnceValues(func() (string, error) { return build("sandpit-other", "v1.0.1-other") })
)

// build builds the server's program with the agent in it. It changes nothing in the
// source tree.
func build(name, version string) (string, error) {
	dir, err := programDir()
	if err != nil {
		return "", err
	}
	tool := func(args ...string) (string, error) {
		var out, said bytes.Buffer
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		cmd.Stdout, cmd.Stderr = &out, &said
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, said.Bytes())
		}
		return strings.TrimSpace(out.String()), nil
	}
	agent := filepath.Join(dir, "agent")
	if _, err := tool("build", "-trimpath", "-ldflags=-s -w", "-o", agent, "sandpit.dev/cmd/sandpit-agent"); err != nil {
		return "", err
	}
	place, err := tool("list", "-f", "{{.Dir}}", "sandpit.dev/agent/embedded")
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(place, "bin", "sandpit-agent"): agent}})
	if err != nil {
		return "", err
	}
	overlay, path := filepath.Join(dir, name+".json"), filepath.Join(dir, name)
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		return "", err
	}
	_, err = tool("build", "-overlay", overlay, "-trimpath", "-ldflags=-s -w -X main.version="+version, "-o", path, "sandpit.dev/cmd/sandpit")
	return path, err
}

// programDir is where program builds.
var programDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "sandpit-load-") })

// TestMain removes what program made.
func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := programDir(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// host is a data directory, and the server on it, which may be killed and
// started again.
type host struct {
	t      *testing.T
	dir    string // holds all of it
	images string
	token  string
	listen string                                                               // its address; it may have port 0
	build  func() (string, error)                                               // of the next start
	env    []string                                                             // of the next start, beside its own
	flags  []string                                                             // the same
	within []string                                                             // program and arguments that start the server's; nil: it is started itself
	dial   func(ctx context.Context, network, address string) (net.Conn, error) // reaches the server; nil: as the host does

	cmd    *exec.Cmd
	ended  chan struct{} // closed when cmd has ended
	client *client.Client
	url    string // of the server
	http   *http.Client
	marks  []string
	empty  leaktest.Snapshot // of the time before the server
	said   int64             // how long its log was before
}

// open starts a server on a new data directory. At the test's end it and all
// that it made are gone.
func open(t *testing.T) *host { return openAt(t, "127.0.0.1:0") }

// openAt is open with an address of the caller's.
func openAt(t *testing.T, listen string) *host {
	return openOn(t, listen, func(string) {})
}

// openOn is openAt where prepare has made the data directory before the server does.
func openOn(t *testing.T, listen string, prepare func(data string)) *host {
	t.Helper()
	skiptest.WithoutRoot(t, "the native runtime makes namespaces with mapped id ranges")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	prepare(filepath.Join(dir, "data"))
	h := hostIn(t, dir, listen)
	t.Cleanup(h.sweep)
	h.start()
	return h
}

// hostIn is openAt with a directory of the caller's, and without the server's start and end.
func hostIn(t *testing.T, dir, listen string) *host {
	t.Helper()
	imagetest.Python(t)
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, listen: listen, build: program, dir: dir, images: imagetest.Dir(t), token: "load-" + rand.Text()}
	if h.empty, err = leaktest.Take(leaktest.Scope{Dir: filepath.Join(dir, "data"), Marks: h.marks}); err != nil {
		t.Fatal(err)
	}
	return h
}

// start starts the server and waits until it answers.
func (h *host) start() {
	h.t.Helper()
	if err := h.begin(); err != nil {
		h.t.Fatal(err)
	}
}

// begin is start for a server that may not come up.
func (h *host) begin() error {
	path, err := h.build()
	if err != nil {
		return err
	}
	run := filepath.Join(h.dir, "run")
	log, err := os.OpenFile(filepath.Join(h.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	line := append(slices.Clone(h.within), path)
	cmd := exec.Command(line[0], append(line[1:], []string{"serve", "--listen", h.listen, "--data", filepath.Join(h.dir, "data"), "--images", h.images}...)...)
	cmd.Args = append(cmd.Args, h.flags...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SANDPIT_") }),
		"SANDPIT_ADMIN_TOKEN="+h.token, "SANDPIT_RUN_DIR="+run, "SANDPIT_POOL=0")
	cmd.Env = append(cmd.Env, h.env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // how it ended is for who waits for it
	}()
	h.cmd, h.ended = cmd, ended
	limit, cancel := context.WithTimeout(h.t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if told, err := running.Read(run); err == nil && told.PID == cmd.Process.Pid {
			h.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DialContext: h.dial}}
			h.url = told.URL
			h.client = client.New(told.URL, h.token, client.Options{HTTP: h.http})
			h.marks = []string{h.namespace()}
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("the server ended instead of starting: %v\n%s", cmd.ProcessState, h.tail())
		case <-limit.Done():
			return fmt.Errorf("the server did not start in time\n%s", h.tail())
		case <-tick.C:
		}
	}
}

// namespace is the mark of what the native runtime has on the host. A change of where it is
// kept shows: the tests hold that what is alive is seen.
func (h *host) namespace() string {
	h.t.Helper()
	var id struct{ Namespace string }
	b, err := os.ReadFile(filepath.Join(h.dir, "data", "id.json"))
	if err == nil {
		err = json.Unmarshal(b, &id)
	}
	if err != nil || id.Namespace == "" {
		h.t.Fatalf("the data directory names no namespace: %v", err)
	}
	return id.Namespace
}

// kill ends the server at once, as a crash does.
func (h *host) kill() {
	_ = h.cmd.Process.Kill() // it may have ended
	<-h.ended
	h.http.CloseIdleConnections()
}

// tail returns the last words of the server.
func (h *host) tail() string {
	b, err := os.ReadFile(filepath.Join(h.dir, "server.log"))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4096):])
}

func (h *host) scope() leaktest.Scope {
	return leaktest.Scope{Dir: filepath.Join(h.dir, "data"), Servers: []int{h.cmd.Process.Pid}, Marks: h.marks}
}

func (h *host) look() leaktest.Snapshot {
	h.t.Helper()
	s, err := leaktest.Take(h.scope())
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// settleTime bounds the wait for the kernel to take apart what was let go.
const settleTime = 20 * time.Second

// holdNothingBeyond fails the test if there is more on the host than before.
func (h *host) holdNothingBeyond(before leaktest.Snapshot) {
	h.t.Helper()
	h.http.CloseIdleConnections() // ours, of which the server holds the other ends
	limit, cancel := context.WithTimeout(h.t.Context(), settleTime)
	defer cancel()
	left, now, err := leaktest.Settle(limit, h.scope(), before, caches)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Logf("before: %v", before)
	h.t.Logf("after:  %v", now)
	if len(left) > 0 {
		h.t.Errorf("%d things are left:\n%s", len(left), strings.Join(left[:min(len(left), 60)], "\n"))
	}
}

// deleteAll deletes every sandbox, several at a time.
func (h *host) deleteAll(ctx context.Context) error {
	g := group{limit: 8}
	for box, err := range h.client.List(ctx, client.ListQuery{}) {
		if err != nil {
			return err
		}
		g.do(func() error { return h.client.Delete(ctx, box.ID) })
	}
	return g.wait()
}

// sweep ends all that the test made, whether it failed or not.
func (h *host) sweep() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.t.Context()), time.Minute)
	defer cancel()
	if h.cmd == nil {
		return
	}
	if h.client != nil {
		if err := h.deleteAll(ctx); err != nil {
			h.t.Errorf("at the end: %v", err)
		}
		h.http.CloseIdleConnections()
	}
	_ = h.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-h.ended:
		if code := h.cmd.ProcessState.ExitCode(); code != 0 {
			h.t.Errorf("the server ended with %v\n%s", h.cmd.ProcessState, h.tail())
		}
	case <-ctx.Done():
		h.kill()
		h.t.Errorf("the server did not end when it was asked to\n%s", h.tail())
	}
	// With the server nothing may be left but its files.
	scope := h.scope()
	scope.Servers = nil
	limit, stop := context.WithTimeout(ctx, settleTime/2)
	defer stop()
	left, _, err := leaktest.Settle(limit, scope, h.empty, []leaktest.Cache{{Kind: leaktest.Directories, Most: 1 << 20}})
	if err != nil || len(left) > 0 {
		h.t.Errorf("after the server's end there is left (%v):\n%s", err, strings.Join(left, "\n"))
	}
	h.clear(scope)
	if h.t.Failed() {
		h.t.Logf("the server said:\n%s", h.tail())
	}
}

// clear takes off the host what a failure left, so that it costs the next test
// nothing.
func (h *host) clear(scope leaktest.Scope) {
	procs, err := scope.Processes()
	for _, p := range procs {
		_ = syscall.Kill(p.PID, syscall.SIGKILL) // it may have ended
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(h.t.Context()), settleTime/2)
	defer cancel()
	var now leaktest.Snapshot
	if err == nil {
		_, now, err = leaktest.Settle(limit, scope, h.empty, []leaktest.Cache{
			{Kind: leaktest.Directories, Most: 1 << 20}, {Kind: leaktest.Cgroups, Most: 1}, {Kind: leaktest.Loops, Most: 1},
		})
	}
	for _, dir := range slices.Backward(slices.Sorted(maps.Keys(now[leaktest.Cgroups]))) {
		err = errors.Join(err, os.Remove(dir))
	}
	if err != nil {
		h.t.Errorf("what is left cannot be cleared: %v", err)
	}
}
