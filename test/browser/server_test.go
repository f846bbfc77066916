// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/test/servertest"
)

// startBound is how long the server may take to be ready: far more than it does.
const startBound = 2 * time.Minute

// bin is where TestMain put the program.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if flag.Parse(); testing.Short() || os.Getuid() != 0 {
		return m.Run() // what needs the program skips itself, with the reason
	}
	dir, err := os.MkdirTemp("", "sandpit-browser-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if bin, err = servertest.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// server is a `sandpit serve` of one test's.
type server struct {
	url, token string
	env        []string
	dir        string
	process    *os.Process
	end        func() // waits for the process's end
}

// serve starts one with this configuration. It ends with the test, and its sandboxes with it.
func serve(t *testing.T, text string) *server {
	t.Helper()
	skiptest.WithoutRoot(t, "the native runtime does")
	servertest.Sources(t)
	imagetest.Python(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &server{dir: dir, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SANDPIT_RUN_DIR=" + filepath.Join(dir, "run"), "SANDPIT_DATA=" + filepath.Join(dir, "data"),
		"SANDPIT_IMAGES=" + imagetest.Dir(t), "SANDPIT_LISTEN=127.0.0.1:0", "SANDPIT_CONFIG=" + config,
	}}

	s.start(t)
	t.Cleanup(func() {
		if err := s.process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		s.end()
	})
	t.Cleanup(func() {
		if ids := s.sandboxes(t); len(ids) > 0 {
			if out, err := s.command(append([]string{"rm", "-f"}, ids...)...).CombinedOutput(); err != nil {
				t.Errorf("delete the sandboxes: %v\n%s", err, out)
			}
		}
	})
	return s
}

// start runs the program, and returns when it is ready.
func (s *server) start(t *testing.T) {
	t.Helper()
	cmd, log := s.command("serve"), new(bytes.Buffer)
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{}) // closed when the program has closed its output
	lines := make(chan string, 1)
	go func() {
		defer close(read)
		r := bufio.NewReader(out)
		line, _ := r.ReadString('\n')
		lines <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, r)
	}()
	s.end = sync.OnceFunc(func() {
		<-read
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("the server ended with %v and said:\n%s", err, log.Bytes()[max(0, log.Len()-4<<10):])
		}
	})
	s.process = cmd.Process
	limit := time.NewTimer(startBound)
	defer limit.Stop()
	line := ""
	select {
	case line = <-lines:
	case <-limit.C:
		t.Fatalf("the server is not ready after %s", startBound)
	}
	rest, ok := strings.CutPrefix(line, "sandpit is ready at ")
	token, err := os.ReadFile(filepath.Join(s.dir, "data", "admin-token"))
	if !ok || err != nil {
		t.Fatalf("the server said %q; %v", line, err)
	}
	s.url, _, _ = strings.Cut(rest, ";")
	s.token = strings.TrimSpace(string(token))
}

// kill ends the program by SIGKILL.
func (s *server) kill(t *testing.T) {
	t.Helper()
	if err := s.process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.end()
}

// again starts the program at the address that it had before.
func (s *server) again(t *testing.T) {
	t.Helper()
	s.env = append(s.env, "SANDPIT_LISTEN="+strings.TrimPrefix(s.url, "http://"))
	s.start(t)
}

func (s *server) command(args ...string) *exec.Cmd {
	return s.commandContext(context.Background(), args...)
}

func (s *server) commandContext(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env = s.env
	return cmd
}

// sandboxes are those that there are.
func (s *server) sandboxes(t *testing.T) []string {
	t.Helper()
	out, err := s.command("ls", "-a", "-q").Output()
	if err != nil {
		t.Errorf("list the sandboxes: %v", err)
	}
	return strings.Fields(string(out))
}
