// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandpit.dev/daemon"
	"sandpit.dev/fault"
	"sandpit.dev/internal/running"
)

// runDirs returns where a server of this machine may have left its address: the
// user's own place first, then root's.
func (f *Finder) runDirs() []string {
	if dir := f.Getenv("SANDPIT_RUN_DIR"); dir != "" {
		return []string{dir}
	}
	uid := os.Getuid()
	return slices.Compact([]string{
		running.Dir(uid, f.Getenv("XDG_RUNTIME_DIR")), running.Dir(0, ""),
	})
}

// Local finds the server of this machine. dir is where it left its address.
func (f *Finder) Local() (s running.Server, dir string, err error) {
	for _, dir := range f.runDirs() {
		s, err := running.Read(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return s, dir, fault.Wrap(fault.Unavailable, err, "where this machine's server is cannot be read").
				WithRemedy("if no server runs, remove the file that is named above")
		}
		return s, dir, nil
	}
	return running.Server{}, "", fs.ErrNotExist
}

// Alive reports whether there is a process with this number, whoever's it is.
func Alive(pid int) bool {
	return pid > 0 && !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// LocalURL returns where the server of this machine is, if there is one.
func (f *Finder) LocalURL() (url string, runsHere bool) {
	if s, _, err := f.Local(); err == nil && Alive(s.PID) {
		url = s.URL
	}
	return url, true
}

// Located completes p with what is known of the server of this machine.
func (f *Finder) Located(p Server) (Server, error) {
	s, _, err := f.Local()
	switch {
	case p.URL != "":
		if err == nil && Tidy(p.URL) == s.URL {
			p.Data = s.Data
		}
	case errors.Is(err, fs.ErrNotExist):
		return Server{}, fault.New(fault.Unavailable, "no sandpit server runs on this machine").
			WithRemedy("start one with: sandpit up (or use one elsewhere, with: sandpit login URL)")
	case err != nil:
		return Server{}, err
	case !Alive(s.PID):
		return Server{}, fault.New(fault.Unavailable, "the server at %s is gone (process %d has ended)", s.URL, s.PID).
			WithRemedy("start it again with: sandpit up --data %s", s.Data)
	default:
		p.URL, p.Data = s.URL, s.Data
	}
	if p.Token != "" {
		return p, nil
	}
	if p.Data == "" {
		return Server{}, noToken(p.URL)
	}
	p.TokenFile = filepath.Join(p.Data, daemon.AdminTokenFile)
	b, err := os.ReadFile(p.TokenFile)
	if err != nil {
		return Server{}, fault.Wrap(fault.Unauthenticated, err, "the token of the server at %s cannot be read", p.URL).
			WithRemedy("set SANDPIT_TOKEN, or run this as the user that the server runs as")
	}
	p.Token = strings.TrimSpace(string(b))
	return p, nil
}
