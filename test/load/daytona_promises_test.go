// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/coder/websocket"
)

// daytonaAnswers are what a server has answered to Daytona's clients.
type daytonaAnswers struct {
	answers[*daytonaBox]
	never int // commands that are told as ones that never began, at each look
}

// daytonaBox is what was answered about one sandbox.
type daytonaBox struct {
	replied
	sessions map[string]string // the last of what was appended to a variable in each
	ended    []string          // sessions that were deleted
	commands map[string]async  // by id
	shells   map[string]bool   // terminals that have a variable
}

// async is a command in a session that was begun.
type async struct {
	session, says string
	code          int
}

func newDaytonaAnswers(w *wire, most int) *daytonaAnswers {
	return &daytonaAnswers{answers: newAnswers[*daytonaBox](w, most)}
}

// one returns a key of a map of a sandbox's; "": it has none, or fewer than some are wanted.
func one[T any](a *daytonaAnswers, m map[string]T, some int) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if keys := slices.Sorted(maps.Keys(m)); len(keys) >= some && len(keys) > 0 {
		return keys[rand.IntN(len(keys))]
	}
	return ""
}

// act does one random thing, and records what was answered. A server that is gone is broken.
func (a *daytonaAnswers) act(ctx context.Context, name string) error {
	b := a.some()
	if b == nil {
		return a.counted("create", nil, a.create(ctx, name))
	}
	kinds := []struct {
		name string
		do   func(context.Context, *daytonaBox, string) error
	}{
		{"exec", a.exec}, {"files", a.upload}, {"a deleted file", a.removeFile}, {"session", a.remember}, {"session", a.remember}, {"async", a.begin},
		{"a deleted session", a.endSession}, {"terminal", a.terminal}, {"terminal", a.terminal}, {"delete", a.remove},
	}
	k := kinds[rand.IntN(len(kinds))]
	if k.name == "delete" && rand.IntN(5) > 0 {
		k = kinds[0]
	}
	return a.counted(k.name, &b.replied, k.do(ctx, b, name))
}

func (a *daytonaAnswers) create(ctx context.Context, name string) error {
	b, err := a.wire.create(ctx, name)
	if err != nil {
		return err
	}
	if b.State != "started" || b.Name != name {
		return fmt.Errorf("a create of %s is answered with %+v", name, b)
	}
	a.created(&daytonaBox{replied: newReplied(b.ID), sessions: make(map[string]string), commands: make(map[string]async), shells: make(map[string]bool)})
	return nil
}

func (a *daytonaAnswers) exec(ctx context.Context, b *daytonaBox, name string) error {
	want := rand.IntN(100)
	code, text, err := a.wire.execute(ctx, b.id, fmt.Sprintf("echo %s; echo err >&2; exit %d", name, want))
	if err == nil && (code != want || text != name+"\nerr\n") {
		return fmt.Errorf("%s: the command that ends with %d is answered with %d %q", b.id, want, code, text)
	}
	return err
}

func (a *daytonaAnswers) upload(ctx context.Context, b *daytonaBox, name string) error {
	files := map[string]string{"dir/" + name: strings.Repeat(name, 1+rand.IntN(2000)), name: name}
	err := a.wire.upload(ctx, b.id, files)
	if err == nil {
		a.did(func() { maps.Copy(b.files, files) })
	}
	return err
}

func (a *daytonaAnswers) removeFile(ctx context.Context, b *daytonaBox, name string) error {
	path := "gone-" + name
	err := a.wire.upload(ctx, b.id, map[string]string{path: name})
	if err == nil {
		_, err = a.wire.call(ctx, "DELETE", inside(b.id)+"/files?path="+url.QueryEscape(path), nil, nil)
	}
	if err == nil {
		a.did(func() { b.noFiles = append(b.noFiles, path) })
	}
	return err
}

// session returns a session, which it makes where there are few.
func (a *daytonaAnswers) session(ctx context.Context, b *daytonaBox, name string) (string, error) {
	if s := one(a, b.sessions, 3); s != "" {
		return s, nil
	}
	s := "s-" + name
	if _, err := a.wire.call(ctx, "POST", inside(b.id)+"/process/session", object{"sessionId": s}, nil); err != nil {
		return "", err
	}
	if _, err := a.wire.inSession(ctx, b.id, s, "kept=first", false); err != nil {
		return "", err
	}
	a.did(func() { b.sessions[s] = "first" })
	return s, nil
}

// remember appends to the variable of a session.
func (a *daytonaAnswers) remember(ctx context.Context, b *daytonaBox, name string) error {
	s, err := a.session(ctx, b, name)
	if err != nil {
		return err
	}
	r, err := a.wire.inSession(ctx, b.id, s, `kept="$kept `+name+`"; echo "$kept"`, false)
	if err != nil {
		return err
	}
	if *r.ExitCode != 0 || !strings.HasSuffix(r.Stdout, " "+name+"\n") {
		return fmt.Errorf("%s: the session %s answers with %d %q", b.id, s, *r.ExitCode, r.Stdout)
	}
	a.did(func() {
		if len(r.Stdout) > len(b.sessions[s]) { // another client may have its answer before
			b.sessions[s] = strings.TrimSuffix(r.Stdout, "\n")
		}
	})
	return nil
}

// begin begins a command in a session, and leaves it.
func (a *daytonaAnswers) begin(ctx context.Context, b *daytonaBox, name string) error {
	s, err := a.session(ctx, b, name)
	if err != nil {
		return err
	}
	c := async{session: s, says: "begun " + name, code: rand.IntN(100)}
	r, err := a.wire.inSession(ctx, b.id, s, fmt.Sprintf("echo %s; sleep 0.0%d; (exit %d)", c.says, rand.IntN(10), c.code), true)
	if err == nil {
		a.did(func() { b.commands[r.CmdID] = c })
	}
	return err
}

func (a *daytonaAnswers) endSession(ctx context.Context, b *daytonaBox, name string) error {
	s := "e-" + name
	_, err := a.wire.call(ctx, "POST", inside(b.id)+"/process/session", object{"sessionId": s}, nil)
	if err == nil {
		_, err = a.wire.call(ctx, "DELETE", inside(b.id)+"/process/session/"+s, nil, nil)
	}
	if err == nil {
		a.did(func() { b.ended = append(b.ended, s) })
	}
	return err
}

// terminal has a terminal say what is in its variable; of few it makes one.
func (a *daytonaAnswers) terminal(ctx context.Context, b *daytonaBox, name string) error {
	s := one(a, b.shells, 2)
	if s == "" {
		s = "t-" + name
		if _, err := a.wire.call(ctx, "POST", inside(b.id)+"/process/pty", object{"id": s, "cols": 200, "rows": 24}, nil); err != nil {
			return err
		}
	}
	if err := a.types(ctx, b, s, name); err != nil {
		return err
	}
	a.did(func() { b.shells[s] = true })
	return nil
}

func (a *daytonaAnswers) types(ctx context.Context, b *daytonaBox, terminal, name string) error {
	conn, err := a.wire.terminal(ctx, b.id, terminal)
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	return typed(ctx, conn, fmt.Sprintf(`echo "<$((6*7))-%s>"`, name), "<42-"+name+">")
}

func (a *daytonaAnswers) remove(ctx context.Context, b *daytonaBox, _ string) error {
	a.did(func() { b.leaving = true })
	var gone box
	_, err := a.wire.call(ctx, "DELETE", "/sandbox/"+b.id, nil, &gone)
	if notFound(err) {
		return nil // another client's delete was first
	}
	if err == nil {
		if gone.State != "destroyed" {
			return fmt.Errorf("%s: a delete is answered with %+v", b.id, gone)
		}
		a.deleted(b.id)
	}
	return err
}

// kept holds a server that was started again to all that was answered.
func (a *daytonaAnswers) kept(ctx context.Context) error {
	all, err := a.wire.list(ctx)
	if err != nil {
		return err
	}
	there := make(map[string]string)
	for _, b := range all {
		there[b.ID] = b.State
	}
	return a.held(there, "started", looks[*daytonaBox]{
		works: func(id string) error { return a.exec(ctx, &daytonaBox{replied: newReplied(id)}, "unanswered") },
		kept:  func(b *daytonaBox) error { return a.keptOf(ctx, b) },
		gone: func(id string) error {
			_, err := a.wire.call(ctx, "GET", "/sandbox/"+id, nil, nil)
			return unlessMissing(err, notFound)
		},
	})
}

func (a *daytonaAnswers) keptOf(ctx context.Context, b *daytonaBox) error {
	if err := a.exec(ctx, b, "here"); err != nil {
		return err
	}
	if len(b.files) > 0 {
		got, err := a.wire.download(ctx, b.id, slices.Sorted(maps.Keys(b.files)))
		if err != nil {
			return err
		}
		if !maps.Equal(got, b.files) {
			return fmt.Errorf("the files that were written are others: %d of %d", len(got), len(b.files))
		}
	}
	for _, path := range b.noFiles {
		if _, err := a.wire.call(ctx, "GET", inside(b.id)+"/files/info?path="+url.QueryEscape(path), nil, nil); !notFound(err) {
			return fmt.Errorf("the file %s was deleted: %w", path, err)
		}
	}
	for id, c := range b.commands {
		if err := a.keptCommand(ctx, b, id, c); err != nil {
			return fmt.Errorf("the command %s of the session %s: %w", id, c.session, err)
		}
	}
	for s, want := range b.sessions {
		r, err := a.wire.inSession(ctx, b.id, s, `echo "$kept"`, false)
		if err != nil {
			return fmt.Errorf("the session %s: %w", s, err)
		}
		if !strings.HasPrefix(r.Stdout, want) {
			return fmt.Errorf("the session %s has %q, and had %q", s, r.Stdout, want)
		}
	}
	for _, s := range b.ended {
		if _, err := a.wire.call(ctx, "GET", inside(b.id)+"/process/session/"+s, nil, nil); !notFound(err) {
			return fmt.Errorf("the session %s was deleted: %w", s, err)
		}
	}
	var list struct {
		Sessions []struct {
			ID     string
			Active bool
		}
	}
	if _, err := a.wire.call(ctx, "GET", inside(b.id)+"/process/pty", nil, &list); err != nil {
		return err
	}
	for s := range b.shells {
		active := false
		for _, one := range list.Sessions {
			active = active || one.ID == s && one.Active
		}
		if !active {
			return fmt.Errorf("the terminal %s is not among %+v", s, list.Sessions)
		}
		if err := a.types(ctx, b, s, "again-"+strconv.Itoa(rand.Int())); err != nil {
			return fmt.Errorf("the terminal %s: %w", s, err)
		}
	}
	return nil
}

// neverBegan is the exit code of a command on record whose turn had not come when the server was killed.
const neverBegan = 127

// keptCommand follows a command that was answered to its end, which is told by the socket's close.
func (a *daytonaAnswers) keptCommand(ctx context.Context, b *daytonaBox, id string, c async) error {
	path := inside(b.id) + "/process/session/" + c.session + "/command/" + id
	conn, err := a.wire.dial(ctx, path+"/logs?follow=true")
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	var said strings.Builder
	for err == nil {
		var p []byte
		if _, p, err = conn.Read(ctx); err == nil {
			said.Write(p)
		}
	}
	if websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		return fmt.Errorf("it said %q, and then: %w", said.String(), err)
	}
	var r struct{ ExitCode *int }
	if _, err := a.wire.call(ctx, "GET", path, nil, &r); err != nil {
		return err
	}
	switch {
	case r.ExitCode == nil:
		return errors.New("it has no exit code, and its log has ended")
	case said.Len() == 0 && *r.ExitCode == neverBegan:
		a.did(func() { a.never++ })
		return nil
	case said.String() != "\x01\x01\x01"+c.says+"\n" || *r.ExitCode != c.code:
		return fmt.Errorf("it said %q and ended with %d, not %q and %d", said.String(), *r.ExitCode, c.says, c.code)
	}
	return nil
}
