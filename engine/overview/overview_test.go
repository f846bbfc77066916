// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/meter"
	"sandpit.dev/engine/recent"
	"sandpit.dev/fault"
	"sandpit.dev/linux/machine"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAProjectSeesItsOwnAlone(t *testing.T) {
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "sandpit.db")})
	must(t, err)
	defer func() { _ = db.Close() }()
	now := time.Now().UTC().Truncate(time.Microsecond)
	for project, state := range map[string]sandbox.State{"p": sandbox.Stopped, "q": sandbox.Failed} {
		box := &sandbox.Sandbox{ID: sandbox.NewID(), Project: project, Runtime: "memory", State: state, CreatedAt: now, UpdatedAt: now}
		must(t, db.Update(t.Context(), func(tx store.Tx) error { return tx.Sandboxes().Insert(box) }))
	}
	log := recent.New(nil)
	log.Done(recent.Create, "p", time.Millisecond)
	log.Failed(recent.Create, "q", "full")
	log.Refused("q")
	stats := meter.New(db, nil, meter.Options{Host: func() (meter.HostUse, error) {
		u, err := machine.Read(t.TempDir())
		return meter.HostUse(u), err
	}})
	var broken error
	s := New(db, stats, log, Options{Started: now, Files: func() (Files, error) {
		f, err := machine.ReadFiles()
		return Files(f), errors.Join(err, broken)
	}})
	own := access.Caller{Project: "p", Scopes: []access.Scope{access.Admin}}
	got, err := s.Overview(t.Context(), own, false)
	if err != nil || got.Project != "p" || got.States[sandbox.Stopped] != 1 || got.States[sandbox.Failed] != 0 || got.Hour.Creates != 1 || len(got.Hour.Failures) != 0 || got.Hour.Refused != 0 || got.Operator != nil || got.Use != nil || !got.Counted {
		t.Errorf("its own: got %+v, %v", got, err)
	}
	if _, err := s.Overview(t.Context(), own, true); fault.Of(err) != fault.Denied {
		t.Errorf("all: got %v", err)
	}
	for name, c := range map[string]access.Caller{
		"without a scope": {Project: "p"}, "of one sandbox": {Project: "p", Sandbox: sandbox.NewID(), Scopes: own.Scopes},
	} {
		if _, err := s.Overview(t.Context(), c, false); fault.Of(err) != fault.Denied {
			t.Errorf("%s: got %v", name, err)
		}
	}

	must(t, stats.Round(t.Context()))
	operator := access.Caller{Project: "p", Scopes: []access.Scope{access.ServerAdmin}}
	got, err = s.Overview(t.Context(), operator, true)
	if err != nil || got.Project != "" || got.States[sandbox.Stopped] != 1 || got.States[sandbox.Failed] != 1 || got.Hour.Creates != 1 || len(got.Hour.Failures) != 1 || got.Hour.Refused != 1 || got.Use == nil || got.Use.Sandboxes != 0 {
		t.Errorf("all: got %+v, %v", got, err)
	}
	o := got.Operator
	if o == nil || o.Host == nil || o.Host.MemorySize <= 0 || o.Host.TaskLimit <= 0 || o.Records != nil || o.Files == nil || o.Files.Server < 3 || o.Files.ServerLimit < o.Files.Server || o.Files.Host <= 0 || o.Files.HostLimit <= 0 {
		t.Errorf("the host: got %+v, %+v", o, o.Files)
	}
	broken = errors.New("broken")
	if got, err = s.Overview(t.Context(), operator, false); err != nil || got.Operator == nil || got.Operator.Files != nil || got.Hour.Refused != 0 {
		t.Errorf("what cannot be read: got %+v, %v", got, err)
	}
}
