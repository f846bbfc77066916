// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sandpit.dev/internal/seal"
	"sandpit.dev/redact"
	"sandpit.dev/redact/redactlog"
	"sandpit.dev/redact/redacttest"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

func TestAnEventIsRedactedAndKeepsItsBounds(t *testing.T) {
	l := Labels([]Secret{{sandbox.Secret{Name: "A_NAME_THAT_IS_LONGER_THAN_ITS_VALUE"}, "hunter22"}})
	changes := []sandbox.FileChange{{Path: "a"}, {Path: "b/hunter22.txt", Size: 3}}
	ev := &sandbox.Event{
		Command: strings.Repeat("hunter22", sandbox.MaxEventCommand/8), Detail: strings.Repeat("hunter22 ", 100),
		Cwd: "/hunter22", Path: "/a/hunter22", To: "hunter22", Changes: changes, ProcessID: "hunter22",
	}
	redactEvent(l, ev)
	text := fmt.Sprintf("%+v", *ev)
	if n := strings.Count(text, "hunter22"); n != 1 { // the id is ours
		t.Errorf("the value is there %d times: %s", n, text)
	}
	if len(ev.Command) > sandbox.MaxEventCommand || len(ev.Detail) > sandbox.MaxEventDetail+len(redact.CutMark) {
		t.Errorf("the command has %d bytes, the detail %d", len(ev.Command), len(ev.Detail))
	}
	if changes[1].Path != "b/hunter22.txt" {
		t.Error("the caller's own list was changed")
	}
	if ev.Changes[0] != changes[0] || ev.Changes[1].Size != 3 {
		t.Errorf("the changes are %+v", ev.Changes)
	}
}

// Events are written and read by a real store, with the secrets in memory and without.
func TestEventsAreRedactedAsTheTableSays(t *testing.T) {
	st, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "records.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ring, err := seal.Parse(seal.Generate())
	if err != nil {
		t.Fatal(err)
	}
	c := New(st, ring, redactlog.New(), func(sandbox.ID) *Entry { return nil })
	err = st.Update(t.Context(), func(tx store.Tx) error {
		for i, v := range redacttest.Values(redact.Record) {
			s := sandbox.Secret{Project: "p", Name: fmt.Sprintf("S%d", i), CreatedAt: time.Now(), UpdatedAt: time.Now()}
			if err := tx.Secrets().Put(c.Seal(&s, v)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	show := func(t *testing.T, text string) (string, bool) {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) { // a command has no such bytes
			return "", false
		}
		ev := &sandbox.Event{Project: "p", Type: sandbox.EventExec, At: time.Now(), Command: text, Path: text}
		if err := c.Store().Update(t.Context(), func(tx store.Tx) error { return tx.Events().Append(ev) }); err != nil {
			t.Fatal(err)
		}
		var page []*sandbox.Event
		err := st.View(t.Context(), func(tx store.Tx) (err error) {
			page, _, err = tx.Events().List(store.EventQuery{Project: "p", Limit: 1})
			return err
		})
		if err != nil || len(page) != 1 || page[0].Command != page[0].Path {
			t.Fatalf("%v, %+v", err, page)
		}
		return page[0].Command, true
	}
	t.Run("not in memory", func(t *testing.T) { redacttest.Run(t, redact.Record, show) })
	if _, err := c.OfProject(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	t.Run("in memory", func(t *testing.T) { redacttest.Run(t, redact.Record, show) })
}
