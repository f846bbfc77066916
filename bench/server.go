// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	program   string
	images    string
	run       string // its run directory
	token     string
	prewarmed int
	config    string   // path; "": none
	env       []string // further variables

	cmd    *exec.Cmd
	ended  chan error // of the process
	log    string     // path
	data   string
	url    string
	client *client.Client
}

// newServer returns one that is still to be started.
func newServer(program, dir, images string) *server {
	return &server{
		program: program, images: images, run: filepath.Join(dir, "run"), token: "bench-" + rand.Text(),
		data: filepath.Join(dir, "data"), log: filepath.Join(dir, "server.log"),
	}
}

// startServer starts a server and waits until it answers.
// Sandboxes may be allowed to reach the address, if it is valid.
func startServer(ctx context.Context, program, dir, images string, prewarmed int, allow netip.Addr) (*server, error) {
	s := newServer(program, dir, images)
	s.prewarmed = prewarmed
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
		"SANDPIT_ADMIN_TOKEN="+s.token, "SANDPIT_RUN_DIR="+s.run, "SANDPIT_POOL="+strconv.Itoa(s.prewarmed), "SANDPIT_CONFIG="+s.config)
	s.cmd.Env = append(s.cmd.Env, s.env...)
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

// tail returns the last words of the log.
func (s *server) tail() string {
	b, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-2048):])
}

// close deletes what is left in the server, and ends it. It returns an error if a process goes on
// without the server: whoever measures next would share the machine with it.
func (s *server) close(ctx context.Context) error {
	var errs []error
	for box, err := range s.client.List(ctx, client.ListQuery{}) {
		if err != nil {
			errs = append(errs, err)
			break
		}
		errs = append(errs, s.client.Delete(ctx, box.ID))
	}
	all, err := s.scope().Processes()
	errs = append(errs, err, s.end(), s.gone(ctx, all))
	return errors.Join(errs...)
}

// gone waits until the processes have ended.
func (s *server) gone(ctx context.Context, all []leaktest.Process) error {
	limit, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	for _, p := range all {
		for {
			now, err := leaktest.ReadStat(p.PID)
			if err != nil || now.Start != p.Start || now.Dead { // an error: it has no entry in /proc
				break
			}
			if err := sleep(limit, askEvery); err != nil {
				return fmt.Errorf("process %d (%s) goes on %v after its server's end: was its sandbox not deleted?", p.PID, p.Name, endTimeout)
			}
		}
	}
	return nil
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
