// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

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

// runDirs are where a server of this machine may have told of itself: the
// user's own place first, then root's.
func (a *app) runDirs() []string {
	if dir := a.getenv("SANDPIT_RUN_DIR"); dir != "" {
		return []string{dir}
	}
	uid := os.Getuid()
	return slices.Compact([]string{
		running.Dir(uid, a.getenv("XDG_RUNTIME_DIR")), running.Dir(0, ""),
	})
}

// local finds the server of this machine. dir is where it told of itself.
func (a *app) local() (s running.Server, dir string, err error) {
	for _, dir := range a.runDirs() {
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

// alive reports whether there is a process with this number, whoever's it is.
func alive(pid int) bool {
	return pid > 0 && !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// localURL returns where the server of this machine is, if there is one.
func (a *app) localURL() (url string, runsHere bool) {
	if s, _, err := a.local(); err == nil && alive(s.PID) {
		url = s.URL
	}
	return url, true
}

// located completes p with what is known of the server of this machine.
func (a *app) located(p place) (place, error) {
	s, _, err := a.local()
	switch {
	case p.url != "":
		if err == nil && tidy(p.url) == s.URL {
			p.data = s.Data
		}
	case errors.Is(err, fs.ErrNotExist):
		return place{}, fault.New(fault.Unavailable, "no sandpit server runs on this machine").
			WithRemedy("start one with: sandpit up (or use one elsewhere, with: sandpit login URL)")
	case err != nil:
		return place{}, err
	case !alive(s.PID):
		return place{}, fault.New(fault.Unavailable, "the server at %s is gone (process %d has ended)", s.URL, s.PID).
			WithRemedy("start it again with: sandpit up --data %s", s.Data)
	default:
		p.url, p.data = s.URL, s.Data
	}
	if p.token != "" {
		return p, nil
	}
	if p.data == "" {
		return place{}, noToken(p.url)
	}
	p.tokenFile = filepath.Join(p.data, daemon.AdminTokenFile)
	b, err := os.ReadFile(p.tokenFile)
	if err != nil {
		return place{}, fault.Wrap(fault.Unauthenticated, err, "the token of the server at %s cannot be read", p.url).
			WithRemedy("set SANDPIT_TOKEN, or run this as the user that the server runs as")
	}
	p.token = strings.TrimSpace(string(b))
	return p, nil
}
