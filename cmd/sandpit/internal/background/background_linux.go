// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package background

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/daemon"
	"sandpit.dev/fault"
	"sandpit.dev/internal/running"
)

// LogName is the server's log in its data directory, when up started it.
const LogName = "server.log"

// startPoll is how often whoever waits for a server looks.
const startPoll = 50 * time.Millisecond

// startLock is the file in the data directory whose lock the one has who starts a
// server in the background, until it is ready.
const startLock = "start.lock"

// Launcher starts a server in the background.
type Launcher struct {
	Servers *place.Finder
	Config  daemon.Config
	Line    []string  // the arguments that it is started with
	Here    bool      // the data directory was named, and a server with another is none
	Stderr  io.Writer // is told that it starts
}

// Ensure starts a server in the background unless one answers, and waits
// until it is ready, within bound. Of many who do so at once, one starts it. It belongs
// to no terminal, and outlives whoever started it.
func (l *Launcher) Ensure(ctx context.Context, bound time.Duration) (s running.Server, started bool, err error) {
	cfg := l.Config
	if s, ok, err := l.answering(ctx); ok || err != nil {
		return s, false, err
	}
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return s, false, fault.Wrap(fault.Unavailable, err, "the data directory %s cannot be made", cfg.Data).
			WithRemedy("run as root, or choose another with --data")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, bound, errNotReady)
	defer cancel()
	lock, err := lockStart(ctx, filepath.Join(cfg.Data, startLock))
	if err != nil {
		return s, false, err
	}
	defer lock.Close()
	// Whoever had the lock may have started one.
	if s, ok, err := l.answering(ctx); ok || err != nil {
		return s, false, err
	}
	s, err = l.start(ctx, bound)
	return s, err == nil, err
}

// errNotReady is why waiting for a server ended.
var errNotReady = errors.New("the server is not ready in time")

// answering finds a server that takes requests.
func (l *Launcher) answering(ctx context.Context) (s running.Server, ok bool, err error) {
	s, _, err = l.Servers.Local()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, false, nil
	case err != nil:
		return s, false, err
	case !place.Alive(s.PID) || !ready(ctx, s.URL):
		return s, false, nil
	case l.Here && s.Data != l.Config.Data:
		return s, false, fault.New(fault.State, "a server with the data directory %s runs already, at %s", s.Data, s.URL).
			WithRemedy("end it first (sandpit down), or give this one a place of its own: SANDPIT_RUN_DIR=DIR sandpit up …")
	}
	return s, true, nil
}

// lockStart waits for the lock. Closing the file gives it back.
func lockStart(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "%s cannot be opened", path).
			WithRemedy("run as root, or choose another data directory with --data")
	}
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = f.Close() // the error is what matters
			return nil, fault.Wrap(fault.Unavailable, err, "%s cannot be locked", path)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = f.Close() // as above
			if errors.Is(context.Cause(ctx), errNotReady) {
				return nil, fault.New(fault.Timeout, "somebody else starts the server, and it is not ready yet").WithRemedy("see %s beside it", path)
			}
			return nil, ctx.Err()
		}
	}
}

// start starts a server and waits until it is ready.
func (l *Launcher) start(ctx context.Context, bound time.Duration) (running.Server, error) {
	cfg := l.Config
	path := filepath.Join(cfg.Data, LogName)
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return running.Server{}, fault.Wrap(fault.Unavailable, err, "the server's log cannot be written").
			WithRemedy("run as root, or choose another data directory with --data")
	}
	defer log.Close()
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return running.Server{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return running.Server{}, err
	}
	cmd := exec.Command(program, l.Line...)
	cmd.Stdout, cmd.Stderr = log, log
	if cfg.Log.File == "" { // what goes there by way of it is rotated
		cmd.Env = append(os.Environ(), "SANDPIT_LOG_FILE="+path)
	}
	cmd.Dir = "/"                                        // it must not keep a directory of ours busy
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives our terminal
	if cfg.RunDir == "" {
		cfg.RunDir = running.Dir(os.Getuid(), "")
	}
	if err := cmd.Start(); err != nil {
		return running.Server{}, fault.Wrap(fault.Unavailable, err, "the server cannot be started")
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the server, or with us
	fmt.Fprintln(l.Stderr, "starting the server…")
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	pid := cmd.Process.Pid
	for {
		select {
		case <-ended:
			return running.Server{}, fault.New(fault.Unavailable, "the server ended at once: %s", lastWords(path, begin)).
				WithRemedy("see %s, and what this host lacks: sandpit doctor", path)
		case <-ctx.Done(): // the server goes on starting: down ends it
			if errors.Is(context.Cause(ctx), errNotReady) {
				return running.Server{}, fault.New(fault.Timeout, "the server (process %d) is not ready after %s", pid, bound).WithRemedy("it goes on starting; see %s", path)
			}
			return running.Server{}, ctx.Err()
		case <-tick.C:
		}
		s, err := running.Read(cfg.RunDir)
		if err == nil && s.PID == pid && ready(ctx, s.URL) {
			return s, nil
		}
	}
}

// lastWords are what a server said of why it ended.
func lastWords(path string, begin int64) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const most = 64 << 10
	b, err := io.ReadAll(io.NewSectionReader(f, begin, most))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	last := len(lines) - 1
	if last > 0 && strings.HasPrefix(lines[last], "→") {
		return strings.TrimPrefix(lines[last-1], "sandpit: ") + " (" + lines[last] + ")"
	}
	return strings.TrimPrefix(lines[last], "sandpit: ")
}

// ready reports whether a server answers, and takes requests: one whose disk is full takes
// those that make room, and says to the others what is wrong.
func ready(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // only the status matters
	return resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusInsufficientStorage
}
