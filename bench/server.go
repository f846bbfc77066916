// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sandpit.dev/client"
	"sandpit.dev/internal/leaktest"
	"sandpit.dev/internal/running"
)

const (
	readyTimeout = 30 * time.Second
	endTimeout   = 30 * time.Second
	askEvery     = 5 * time.Millisecond
)

// server is a server of our own, on a data directory of its own.
type server struct {
	program string
	images  string
	run     string // its run directory
	token   string
	blanks  int
	config  string // path; "": none

	cmd    *exec.Cmd
	ended  chan error // of the process
	log    string     // path
	data   string
	url    string
	client *client.Client
}

// buildServer builds the server's program, with the agent in it, into dir. It
// changes nothing in the source tree.
func buildServer(ctx context.Context, dir string) (string, error) {
	agent, program, overlay := filepath.Join(dir, "agent"), filepath.Join(dir, "sandpit"), filepath.Join(dir, "overlay.json")
	if err := tool(ctx, io.Discard, "build", "-trimpath", "-ldflags=-s -w", "-o", agent, "sandpit.dev/cmd/sandpit-agent"); err != nil {
		return "", err
	}
	var place bytes.Buffer
	if err := tool(ctx, &place, "list", "-f", "{{.Dir}}", "sandpit.dev/agent/embedded"); err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(strings.TrimSpace(place.String()), "bin", "sandpit-agent"): agent,
	}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		return "", err
	}
	return program, tool(ctx, io.Discard, "build", "-overlay", overlay, "-trimpath", "-ldflags=-s -w", "-o", program, "sandpit.dev/cmd/sandpit")
}

func tool(ctx context.Context, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// startServer starts a server and waits until it answers.
// Sandboxes may be allowed to reach the address, if it is valid.
func startServer(ctx context.Context, program, dir, images string, blanks int, allow netip.Addr) (*server, error) {
	s := &server{
		program: program, images: images, run: filepath.Join(dir, "run"), token: "bench-" + rand.Text(), blanks: blanks,
		data: filepath.Join(dir, "data"), log: filepath.Join(dir, "server.log"),
	}
	if allow.IsValid() {
		s.config = filepath.Join(dir, "config.yaml")
		if err := os.WriteFile(s.config, fmt.Appendf(nil, "network:\n  allow_private: [%q]\n", allow), 0o600); err != nil {
			return nil, err
		}
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// again ends the server and starts it anew on the same data.
func (s *server) again(ctx context.Context) error {
	if err := s.end(); err != nil {
		return err
	}
	return s.start(ctx)
}

func (s *server) start(ctx context.Context) (err error) {
	out, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	s.ended = make(chan error, 1)
	s.cmd = exec.Command(s.program, "serve", "--listen", "127.0.0.1:0", "--data", s.data, "--images", s.images)
	s.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SANDPIT_") }),
		"SANDPIT_ADMIN_TOKEN="+s.token, "SANDPIT_RUN_DIR="+s.run, "SANDPIT_BLANKS="+strconv.Itoa(s.blanks), "SANDPIT_CONFIG="+s.config)
	s.cmd.Stdout, s.cmd.Stderr = out, out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for us: we end it in order
	if err := s.cmd.Start(); err != nil {
		return err
	}
	go func() { s.ended <- s.cmd.Wait() }()
	defer func() {
		if err != nil {
			err = errors.Join(err, s.end())
		}
	}()
	limit, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		if told, err := running.Read(s.run); err == nil && told.PID == s.cmd.Process.Pid {
			s.url = told.URL
			s.client = client.New(told.URL, s.token, client.Options{})
			return nil
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("the server ended (%w): %s", err, s.tail())
		case <-limit.Done():
			return fmt.Errorf("the server is not ready after %v: %s", readyTimeout, s.tail())
		case <-time.After(askEvery):
		}
	}
}

// scope is what of the host belongs to the server.
func (s *server) scope() leaktest.Scope {
	return leaktest.Scope{Dir: s.data, Servers: []int{s.cmd.Process.Pid}}
}

// tail gives the last words of the log.
func (s *server) tail() string {
	b, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-2048):])
}

// close deletes what is left in the server, and ends it.
func (s *server) close(ctx context.Context) error {
	var errs []error
	for box, err := range s.client.List(ctx, client.ListQuery{}) {
		if err != nil {
			errs = append(errs, err)
			break
		}
		errs = append(errs, s.client.Delete(ctx, box.ID))
	}
	return errors.Join(append(errs, s.end())...)
}

// end ends the process. Sandboxes would go on.
func (s *server) end() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case err := <-s.ended:
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return fmt.Errorf("the server ended with %v: %s", exit, s.tail())
		}
		return err
	case <-time.After(endTimeout):
		_ = s.cmd.Process.Kill()
		<-s.ended
		return fmt.Errorf("the server did not end within %v", endTimeout)
	}
}
