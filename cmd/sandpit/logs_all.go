// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/fault"
)

const (
	// maxFollowed is how many processes are followed at once: each takes a connection.
	maxFollowed = 64
	// lookAgain is how often is looked for processes that were started meanwhile.
	lookAgain = time.Second
	// shownID is how much of an id stands before a line.
	shownID = 8
)

// allLogs are the outputs of all processes of a sandbox.
type allLogs struct {
	*app.App
	cl     *client.Client
	ref    string
	only   string // the stream; empty: both
	lines  int    // of what there is already, of each; -1: all
	follow bool

	mu   sync.Mutex // of both streams: lines come whole
	left bool       // it was told that not all are followed
}

// show writes what those wrote that have ended, one after another, and then follows those that run.
func (all *allLogs) show(ctx context.Context) error {
	seen := make(map[string]bool)
	found, err := all.others(ctx, seen)
	if err != nil {
		return err
	}
	for _, p := range found {
		if all.follow && p.Status == "running" {
			continue
		}
		if err := all.one(ctx, p.ProcessID, all.lines, false); err != nil {
			return err
		}
	}
	if !all.follow {
		return nil
	}
	return all.goOn(ctx, seen, slices.DeleteFunc(found, func(p *v1.Process) bool { return p.Status != "running" }))
}

// goOn follows the processes that run, and each that is started, until ctx ends or one fails.
func (all *allLogs) goOn(ctx context.Context, seen map[string]bool, running []*v1.Process) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	slots := make(chan struct{}, maxFollowed)
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	lines := all.lines
	for {
		for _, p := range running {
			select {
			case slots <- struct{}{}:
			default:
				if !all.left {
					all.left = true
					all.Warn("more than %d processes run; the others are not followed: name one", maxFollowed)
				}
				continue
			}
			wg.Go(func() {
				defer func() { <-slots }()
				if err := all.one(ctx, p.ProcessID, lines, true); err != nil && ctx.Err() == nil {
					cancel(err)
				}
			})
		}
		lines = -1 // of what begins from now on, all
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		var err error
		if running, err = all.others(ctx, seen); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
	}
}

// others returns the processes that were not seen yet, the oldest first.
func (all *allLogs) others(ctx context.Context, seen map[string]bool) (found []*v1.Process, err error) {
	for p, err := range all.cl.ListProcesses(ctx, all.ref, client.ProcessQuery{Newest: true}) {
		switch {
		case err != nil:
			return nil, err
		case seen[p.ProcessID]: // and so were all before it
			slices.Reverse(found)
			return found, nil
		}
		seen[p.ProcessID] = true
		found = append(found, p)
	}
	slices.Reverse(found)
	return found, nil
}

// one shows what a process writes, with its id before each line. One that is remembered no more is
// passed over.
func (all *allLogs) one(ctx context.Context, id string, lines int, follow bool) error {
	before := []byte(id[:min(len(id), shownID)] + "  ")
	out, errs := &prefixed{to: all.Stdout, mu: &all.mu, before: before}, &prefixed{to: all.Stderr, mu: &all.mu, before: before}
	l := &logs{App: all.App, process: all.cl.OpenProcess(all.ref, id), only: all.only, out: out, err: errs}
	err := l.from(ctx, lines, follow)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return errors.Join(err, out.flush(), errs.flush())
}

// maxLine is the longest line that is held back until it is whole.
const maxLine = 64 << 10

// prefixed writes whole lines, each with something before it.
type prefixed struct {
	to     io.Writer
	mu     *sync.Mutex
	before []byte
	line   []byte // that has no end yet
}

func (p *prefixed) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			i = len(b) - 1
		}
		p.line = append(p.line, b[:i+1]...)
		b = b[i+1:]
		if p.line[len(p.line)-1] != '\n' && len(p.line) < maxLine {
			continue
		}
		if err := p.flush(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// flush writes what is held back, and ends its line.
func (p *prefixed) flush() error {
	if len(p.line) == 0 {
		return nil
	}
	if p.line[len(p.line)-1] != '\n' {
		p.line = append(p.line, '\n')
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.to.Write(slices.Concat(p.before, p.line))
	p.line = p.line[:0]
	return err
}
