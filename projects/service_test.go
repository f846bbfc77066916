// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package projects_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/project"
	"sandpit.dev/fault"
	"sandpit.dev/projects"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/quota"
	"sandpit.dev/store/sqlstore"
)

// started is a service over a store in a file, as the daemon makes it.
func started(t *testing.T, o quota.Options) (*projects.Service, store.Store) {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "records.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	k, err := quota.Open(t.Context(), db, o, access.DefaultProject)
	if err != nil {
		t.Fatal(err)
	}
	return projects.New(k.Store(), k, nil), k.Store()
}

func admin() access.Caller {
	return access.Caller{Project: access.DefaultProject, Actor: "admin-token", Scopes: []access.Scope{access.ServerAdmin}}
}

// of is the strongest caller that a project can have.
func of(project string) access.Caller {
	return access.Caller{Project: project, Actor: "ci", Scopes: []access.Scope{access.Admin}}
}

func TestAProjectsTokenSeesItsOwnAndChangesNone(t *testing.T) {
	s, _ := started(t, quota.Options{})
	for _, name := range []string{"web", "api"} {
		if _, err := s.Create(t.Context(), admin(), name, map[string]float64{"sandboxes": 3}); err != nil {
			t.Fatal(err)
		}
	}
	web := of("web")
	if all, err := s.List(t.Context(), web); err != nil || len(all) != 1 || all[0].Name != "web" {
		t.Errorf("the list: got %v, %v", all, err)
	}
	if all, err := s.List(t.Context(), admin()); err != nil || len(all) != 3 {
		t.Errorf("the administrator's list: got %v, %v, want api, default, web", all, err)
	}
	if _, err := s.Get(t.Context(), web, "web"); err != nil {
		t.Error(err)
	}
	_, other := s.Get(t.Context(), web, "api")
	_, none := s.Get(t.Context(), web, "no-such")
	_, create := s.Create(t.Context(), web, "mine", nil)
	_, change := s.Change(t.Context(), web, "web", map[string]float64{"sandboxes": 0})
	for what, err := range map[string]error{"another": other, "one that there is not": none, "create": create, "change": change, "delete": s.Delete(t.Context(), web, "web")} {
		if !fault.Is(err, fault.Denied) {
			t.Errorf("%s: got %v, want Denied", what, err)
		}
	}
	if other.Error() != none.Error() {
		t.Errorf("a token learns which projects there are: %q and %q", other, none)
	}
}

func TestQuotasAreSetOneByOne(t *testing.T) {
	now := time.Date(2026, 3, 4, 23, 30, 0, 0, time.UTC)
	s, _ := started(t, quota.Options{New: project.Amounts{project.Volumes: 5}, Now: func() time.Time { return now }})
	p, err := s.Create(t.Context(), admin(), "web", nil)
	if err != nil || p.Quotas != (project.Amounts{project.Volumes: 5}) || p.CreatedBy != "admin-token" {
		t.Fatalf("got %+v, %v, want the quotas of a new one", p, err)
	}
	if p, err = s.Change(t.Context(), admin(), "web", map[string]float64{"cpu_cores": 2.5, "volumes": 0}); err != nil || p.Quotas != (project.Amounts{project.CPU: 2.5}) {
		t.Errorf("got %+v, %v", p, err)
	}
	if left, ok := p.Left(project.CPU); !ok || left != 2.5 || !p.CommandsEnd.Equal(now.Add(30*time.Minute)) {
		t.Errorf("left %v, %v, the commands begin anew at %v", left, ok, p.CommandsEnd)
	}
	if _, ok := p.Left(project.Volumes); ok {
		t.Error("nothing bounds the volumes, and some are left")
	}
	for _, bad := range []map[string]float64{{"cpus": 1}, {"sandboxes": -1}, {"sandboxes": 1.5}, {"disk_mb": 1e13}} {
		if _, err := s.Change(t.Context(), admin(), "web", bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: got %v, want Invalid", bad, err)
		}
		if _, err := s.Create(t.Context(), admin(), "bad", bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: got %v, want Invalid", bad, err)
		}
	}
	if _, err := s.Create(t.Context(), admin(), "_builds", nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("a name of the server's own: got %v", err)
	}
	if _, err := s.Create(t.Context(), admin(), "web", nil); !fault.Is(err, fault.Exists) {
		t.Errorf("a taken name: got %v", err)
	}
}

func TestAProjectIsDeletedWhenItIsEmpty(t *testing.T) {
	s, st := started(t, quota.Options{})
	token := &access.Token{ID: "t", Project: "web", Name: "ci", Hash: []byte("h"), Scopes: access.DefaultScopes(), CreatedAt: time.Now()}
	box := &sandbox.Sandbox{ID: sandbox.NewID(), Project: "web", Limits: sandbox.DefaultLimits(), State: sandbox.Stopped, CreatedAt: time.Now()}
	if err := st.Update(t.Context(), func(tx store.Tx) error {
		if err := tx.Tokens().Insert(token); err != nil { // which makes the project
			return err
		}
		return tx.Sandboxes().Insert(box)
	}); err != nil {
		t.Fatal(err)
	}
	err := s.Delete(t.Context(), admin(), "web")
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "1 sandbox, 1 token") {
		t.Fatalf("got %v, want a Conflict that says what it has", err)
	}
	if err := st.Update(t.Context(), func(tx store.Tx) error {
		if err := tx.Tokens().Delete("web", "ci"); err != nil {
			return err
		}
		return tx.Sandboxes().Delete(box.ID)
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), admin(), "web"); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(t.Context(), admin(), "web"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a deleted one: got %v", err)
	}
	if err := s.Delete(t.Context(), admin(), access.DefaultProject); !fault.Is(err, fault.Conflict) {
		t.Errorf("the server's own: got %v", err)
	}
}
