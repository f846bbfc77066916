// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// secret is a record with every field set; of is the sandbox it belongs to, if any.
func secret(project string, of sandbox.ID, name string) *store.SealedSecret {
	return &store.SealedSecret{
		Secret: sandbox.Secret{
			Project: project, Sandbox: of, Name: name, Hosts: []string{"api.example.org", "*.example.net"},
			Header: "authorization", Format: "Bearer {value}", Vault: "of-" + name, Description: "for " + name, CreatedAt: epoch, UpdatedAt: epoch.Add(time.Second),
		},
		Sealed: []byte("\x00\x01\xff sealed " + name),
	}
}

func secretRecords(t *testing.T, open func(*testing.T) store.Store) {
	put := func(t *testing.T, s store.Store, all ...*store.SealedSecret) {
		t.Helper()
		update(t, s, func(tx store.Tx) error {
			for _, x := range all {
				if err := tx.Secrets().Put(x); err != nil {
					return err
				}
			}
			return nil
		})
	}
	get := func(t *testing.T, s store.Store, project string, of sandbox.ID, name string) (got *store.SealedSecret, err error) {
		err = s.View(t.Context(), func(tx store.Tx) (err error) { got, err = tx.Secrets().Get(project, of, name); return err })
		return got, err
	}
	names := func(t *testing.T, s store.Store, read func(store.Secrets) ([]*store.SealedSecret, error)) string {
		t.Helper()
		var out []string
		view(t, s, func(tx store.Tx) error {
			all, err := read(tx.Secrets())
			for _, x := range all {
				out = append(out, string(x.Sandbox)+"/"+x.Project+"/"+x.Name)
			}
			return err
		})
		return strings.Join(out, " ")
	}
	listed := func(t *testing.T, s store.Store, project string, of sandbox.ID) string {
		t.Helper()
		return names(t, s, func(q store.Secrets) ([]*store.SealedSecret, error) { return q.List(project, of) })
	}
	all := func(t *testing.T, s store.Store) string {
		t.Helper()
		return names(t, s, store.Secrets.All)
	}

	t.Run("WhatIsReadEqualsWhatWasWritten", func(t *testing.T) {
		s := open(t)
		plain := secret("default", "", "PLAIN")
		plain.Hosts, plain.Header, plain.Format = nil, "", ""
		chosen, none := secret("default", "", "CHOSEN"), secret("default", "", "NONE")
		chosen.StandInHeaders, none.StandInHeaders = []string{"x-api-key", "x-token"}, []string{}
		for _, want := range []*store.SealedSecret{secret("default", "", "BOUND"), plain, secret("default", boxID(1), "BOUND"), chosen, none} {
			put(t, s, want)
			got, err := get(t, s, want.Project, want.Sandbox, want.Name)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, "Get "+want.Name, got, want)
		}
	})
	t.Run("ASecondPutReplacesAllButTheTimeOfTheFirst", func(t *testing.T) {
		s := open(t)
		put(t, s, secret("default", "", "A"))
		again := secret("default", "", "A")
		again.Hosts, again.Header, again.Format, again.StandInHeaders = nil, "", "", []string{"x-token"}
		again.CreatedAt, again.UpdatedAt, again.Sealed = epoch.Add(time.Hour), epoch.Add(time.Hour), []byte("new")
		put(t, s, again)
		want := *again
		want.CreatedAt = epoch
		got, err := get(t, s, "default", "", "A")
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "Get", got, &want)
	})
	t.Run("EachOwnerHasItsOwn", func(t *testing.T) {
		s := open(t)
		put(t, s, secret("p", "", "B"), secret("p", "", "A"), secret("q", "", "A"), secret("p", boxID(1), "A"), secret("p", boxID(2), "C"))
		wantSame(t, "of p", listed(t, s, "p", ""), "/p/A /p/B")
		wantSame(t, "of q", listed(t, s, "q", ""), "/q/A")
		wantSame(t, "of a sandbox", listed(t, s, "p", boxID(1)), string(boxID(1))+"/p/A")
		wantSame(t, "of a sandbox, by another project", listed(t, s, "q", boxID(1)), "")
		wantSame(t, "of nobody", listed(t, s, "", ""), "")
		wantSame(t, "all", all(t, s), "/p/A /p/B /q/A "+string(boxID(1))+"/p/A "+string(boxID(2))+"/p/C")
		update(t, s, func(tx store.Tx) error { return tx.Secrets().Delete("p", "", "A") })
		ofVault, other := secret("p", boxID(3), "D"), secret("q", boxID(4), "D")
		ofVault.Vault, other.Vault = "the-one", "the-one"
		put(t, s, ofVault, other, secret("p", sandbox.Vault, "the-one"))
		var got []*store.SealedSecret
		view(t, s, func(tx store.Tx) (err error) { got, err = tx.Secrets().Attached("p", "the-one"); return err })
		wantSame(t, "attached", got, []*store.SealedSecret{ofVault})
		for _, none := range []string{"", "another"} {
			view(t, s, func(tx store.Tx) (err error) { got, err = tx.Secrets().Attached("p", none); return err })
			wantSame(t, "attached of "+none, len(got), 0)
		}
		update(t, s, func(tx store.Tx) error {
			return errors.Join(tx.Secrets().Delete("p", boxID(3), "D"), tx.Secrets().Delete("q", boxID(4), "D"), tx.Secrets().Delete("p", sandbox.Vault, "the-one"))
		})
		wantSame(t, "all after a delete", all(t, s), "/p/B /q/A "+string(boxID(1))+"/p/A "+string(boxID(2))+"/p/C")
	})
	t.Run("WhatIsMissingIsNotFound", func(t *testing.T) {
		s := open(t)
		put(t, s, secret("p", boxID(1), "A"))
		for name, err := range map[string]error{
			"of the project": func() error { _, err := get(t, s, "p", "", "A"); return err }(),
			"another name":   func() error { _, err := get(t, s, "p", boxID(1), "B"); return err }(),
			"another case":   func() error { _, err := get(t, s, "p", boxID(1), "a"); return err }(),
			"Delete of the project": inUpdate(t, s, func(tx store.Tx) error {
				return tx.Secrets().Delete("p", "", "A")
			}),
			"Delete by another project": inUpdate(t, s, func(tx store.Tx) error {
				return tx.Secrets().Delete("q", boxID(1), "A")
			}),
		} {
			wantCode(t, name, err, fault.NotFound)
		}
	})
	t.Run("ASandboxTakesItsOwnWithIt", func(t *testing.T) {
		s := open(t)
		insert(t, s, box(1), box(2))
		put(t, s, secret("default", "", "A"), secret("default", boxID(1), "A"), secret("default", boxID(1), "B"), secret("default", boxID(2), "A"))
		failed := errors.New("no")
		err := s.Update(t.Context(), func(tx store.Tx) error {
			if err := tx.Sandboxes().Delete(boxID(1)); err != nil {
				return err
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
		wantSame(t, "after a delete that was rolled back", listed(t, s, "default", boxID(1)), string(boxID(1))+"/default/A "+string(boxID(1))+"/default/B")
		update(t, s, func(tx store.Tx) error { return tx.Sandboxes().Delete(boxID(1)) })
		wantSame(t, "all", all(t, s), "/default/A "+string(boxID(2))+"/default/A")
		wantCode(t, "Delete of no sandbox", inUpdate(t, s, func(tx store.Tx) error { return tx.Sandboxes().Delete("") }), fault.NotFound)
		wantSame(t, "all", all(t, s), "/default/A "+string(boxID(2))+"/default/A")
	})
	t.Run("AViewChangesNothing", func(t *testing.T) {
		s := open(t)
		put(t, s, secret("default", "", "A"))
		for name, fn := range map[string]func(store.Tx) error{
			"Put":    func(tx store.Tx) error { return tx.Secrets().Put(secret("default", "", "B")) },
			"Delete": func(tx store.Tx) error { return tx.Secrets().Delete("default", "", "A") },
		} {
			if err := s.View(t.Context(), fn); err == nil {
				t.Errorf("%s in a View is no error", name)
			}
		}
		wantSame(t, "all", all(t, s), "/default/A")
	})
}
