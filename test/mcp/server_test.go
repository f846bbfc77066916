// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package mcp tests the MCP face of sandpit with programs that others wrote: the
// official conformance suite, and clients as agents use them, against the real
// binary. What cannot be shown there, for want of tools that the suite asks for by
// name, is shown through the program in fixture, which serves the same way.
package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/test/servertest"
)

// startBound is how long a program may take to be ready: far more than it does.
const startBound = 60 * time.Second

// bin is where TestMain put the programs.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if flag.Parse(); testing.Short() {
		return m.Run() // what needs the programs skips itself, with the reason
	}
	dir, err := os.MkdirTemp("", "sandpit-mcp-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if _, err := servertest.Build(dir, "./test/mcp/fixture"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	bin = dir
	return m.Run()
}

// server is a `sandpit serve` of one test's.
type server struct {
	url   string // of MCP
	token string
	env   []string // of the server's own commands
	dir   string
}

// serve starts one, which ends with the test.
func serve(t *testing.T) *server {
	t.Helper()
	return serveBy(t, nil)
}

// serveBy is serve, where by changes how the server is started, if it is not nil. It is told the
// server's own directory.
func serveBy(t *testing.T, by func(cmd *exec.Cmd, dir string)) *server {
	t.Helper()
	servertest.Sources(t)
	s := place(t)
	cmd := s.begin(t, by)
	t.Cleanup(func() { end(t, cmd, syscall.SIGTERM) })
	t.Cleanup(func() { s.empty(t) }) // sandboxes outlive their server
	return s
}

// place makes the directory of a server that is not started yet.
func place(t *testing.T) *server {
	t.Helper()
	skiptest.WithoutRoot(t, "the native runtime does")
	imagetest.Python(t)
	dir := t.TempDir()
	return &server{dir: dir, env: []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + dir,
		"SANDPIT_RUN_DIR=" + filepath.Join(dir, "run"), "SANDPIT_DATA=" + filepath.Join(dir, "data"),
		"SANDPIT_IMAGES=" + imagetest.Dir(t), "SANDPIT_LISTEN=127.0.0.1:0",
	}}
}

// begin starts it, see serveBy. Whoever calls it ends it.
func (s *server) begin(t *testing.T, by func(cmd *exec.Cmd, dir string)) *exec.Cmd {
	t.Helper()
	cmd := s.command("serve")
	if by != nil {
		by(cmd, s.dir)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	line := start(t, cmd, &log)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server said:\n%s", log.Bytes()[max(0, log.Len()-4<<10):])
		}
	})
	rest, ok := strings.CutPrefix(line, "sandpit is ready at ")
	address, _, _ := strings.Cut(rest, ";")
	token, err := os.ReadFile(filepath.Join(s.dir, "data/admin-token"))
	if !ok || err != nil {
		t.Fatalf("the server said %q; %v", line, err)
	}
	s.url, s.token = address+"/mcp", strings.TrimSpace(string(token))
	return cmd
}

func (s *server) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, "sandpit"), args...)
	cmd.Env = s.env
	return cmd
}

// empty deletes what sandboxes are left.
func (s *server) empty(t *testing.T) {
	out, err := s.command("ls", "-a", "-q").Output()
	if err != nil {
		t.Errorf("list the sandboxes: %v", err)
	}
	if ids := strings.Fields(string(out)); len(ids) > 0 {
		if out, err := s.command(append([]string{"rm", "-f"}, ids...)...).CombinedOutput(); err != nil {
			t.Errorf("delete the sandboxes: %v\n%s", err, out)
		}
	}
}

// proxy puts a server's token on requests of clients that have no way to say one, and
// gives the address for them.
func (s *server) proxy(t *testing.T) string {
	t.Helper()
	to, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host // the header Host stays: the suite tests who may say what there
			r.Out.Header.Set("Authorization", "Bearer "+s.token)
		},
	}
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// It is read whole first: an answer that begins while the transport still
		// looks for its end would break the connection.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client went
		}
		r.Body = http.NoBody
		if len(body) > 0 {
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		r.ContentLength, r.TransferEncoding = int64(len(body)), nil
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p.URL + to.Path
}

// fixture starts the fixture server and gives its address. It ends with the test.
func fixture(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "fixture"))
	in, err := cmd.StdinPipe() // open as long as it is to run
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	address := start(t, cmd, &log)
	t.Cleanup(func() {
		_ = in.Close()
		end(t, cmd, 0)
	})
	return address
}

// start starts a program and gives the first line that it prints.
func start(t *testing.T, cmd *exec.Cmd, log *bytes.Buffer) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	type first struct {
		line string
		err  error
	}
	said := make(chan first, 1)
	go func() {
		r := bufio.NewReader(out)
		line, err := r.ReadString('\n')
		said <- first{strings.TrimSpace(line), err}
		_, _ = io.Copy(io.Discard, r)
	}()
	limit := time.NewTimer(startBound)
	defer limit.Stop()
	f := first{err: fmt.Errorf("it is not ready after %s", startBound)}
	select {
	case f = <-said:
	case <-limit.C:
	}
	if f.err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("start %s: %v\n%s", cmd.Path, f.err, log)
	}
	return f.line
}

// end ends a program, which has to agree. With no signal it knows already.
func end(t *testing.T, cmd *exec.Cmd, sig syscall.Signal) {
	if sig != 0 {
		if err := cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
	}
	limit := time.AfterFunc(startBound, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s ended with %v", cmd.Path, err)
	}
}
