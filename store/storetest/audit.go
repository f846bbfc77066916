// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// auditRow is row n of a writer, with every field set.
func auditRow(writer string, n int) *store.AuditRow {
	r := &store.AuditRow{
		Writer: writer, Seq: int64(n), At: epoch.Add(time.Duration(n) * time.Minute), Type: sandbox.EventExec, Outcome: "ok", Project: "a", Sandbox: boxID(n % 3),
		Token: "tok_1", Actor: "alice", Body: fmt.Appendf(nil, `{"seq":%d,"command":"Echo é"}`, n), Hash: []byte{byte(n), 0, 255},
	}
	if n%2 == 0 {
		r.Project, r.Type, r.Outcome, r.Actor, r.Token = "b", "call", "denied", "bob", ""
	}
	return r
}

func auditRows(t *testing.T, open func(*testing.T) store.Store) {
	s := open(t)
	var rows []*store.AuditRow
	for n := range 6 {
		rows = append(rows, auditRow("w1", n+1))
	}
	rows = append(rows, auditRow("w2", 1))
	rows[2].Body = []byte(`{"seq":3,"key":"step","labels":{"step":"Build it","a\"b":"é\n"}}`)
	rows[4].Body = []byte(`{"seq":5,"step":"Build it","labels":{"step":"build"}}`)
	rows[5].Sandbox = ""
	last := func(says, writer string, seq int64, hash []byte) {
		t.Helper()
		view(t, s, func(tx store.Tx) error {
			n, h, err := tx.Audit().Last(writer)
			wantSame(t, says, n, seq)
			wantSame(t, says, h, hash)
			return err
		})
	}
	last("before the first", "w1", 0, nil)
	update(t, s, func(tx store.Tx) error {
		for _, r := range rows {
			if err := tx.Audit().Append(r); err != nil {
				return err
			}
		}
		return nil
	})
	last("the last", "w1", 6, rows[5].Hash)
	for i, r := range rows {
		if i > 0 && r.ID <= rows[i-1].ID {
			t.Errorf("row %d has the id %d after %d", i, r.ID, rows[i-1].ID)
		}
	}
	for _, c := range []struct {
		says string
		q    store.AuditQuery
		want []int
	}{
		{"all", store.AuditQuery{}, []int{6, 5, 4, 3, 2, 1, 0}},
		{"of a project", store.AuditQuery{Project: "b"}, []int{5, 3, 1}},
		{"of a sandbox", store.AuditQuery{Sandbox: boxID(1)}, []int{6, 3, 0}},
		{"of a sandbox of a project", store.AuditQuery{Sandbox: boxID(1), Project: "b"}, []int{3}},
		{"by a token's id", store.AuditQuery{Token: "tok_1"}, []int{6, 4, 2, 0}},
		{"by a token's name", store.AuditQuery{Token: "bob"}, []int{5, 3, 1}},
		{"of types", store.AuditQuery{Types: []sandbox.EventType{"call", "none"}}, []int{5, 3, 1}},
		{"by outcome", store.AuditQuery{Outcomes: []string{"ok"}}, []int{6, 4, 2, 0}},
		{"since", store.AuditQuery{Since: epoch.Add(5 * time.Minute)}, []int{5, 4}},
		{"until", store.AuditQuery{Until: epoch.Add(2 * time.Minute)}, []int{6, 0}},
		{"by text", store.AuditQuery{Text: `"SEQ":1,`}, []int{6, 0}},
		{"by text with no letters of ASCII", store.AuditQuery{Text: "echo é", Project: "a"}, []int{6, 0}},
		{"by text that is a pattern elsewhere", store.AuditQuery{Text: "%"}, nil},
		{"by a label", store.AuditQuery{Labels: []store.AuditLabel{{Name: "step", Value: "build"}}}, []int{4}},
		{"by a part of a label", store.AuditQuery{Labels: []store.AuditLabel{{Name: "step", Value: "BUILD", Part: true}}}, []int{4, 2}},
		{"by two labels", store.AuditQuery{Labels: []store.AuditLabel{{Name: "step", Value: "Build it"}, {Name: `a"b`, Value: "é\n"}}}, []int{2}},
		{"by a label that none has", store.AuditQuery{Labels: []store.AuditLabel{{Name: "key", Value: "step"}}}, nil},
		{"oldest first", store.AuditQuery{Sandbox: boxID(1), Oldest: true}, []int{0, 3, 6}},
		{"none", store.AuditQuery{Project: "c"}, nil},
	} {
		var want []*store.AuditRow
		for _, i := range c.want {
			r := *rows[i]
			r.Hash = nil
			want = append(want, &r)
		}
		view(t, s, func(tx store.Tx) error {
			got, next, err := tx.Audit().List(c.q)
			wantSame(t, c.says, got, want)
			wantSame(t, c.says, next, "")
			if err != nil {
				return err
			}
			n, err := tx.Audit().Count(c.q)
			wantSame(t, c.says+", counted", n, len(want))
			return err
		})
	}
	view(t, s, func(tx store.Tx) error {
		var seqs []int64
		for _, q := range []store.AuditQuery{{Limit: 3}, {Limit: 3, Oldest: true}} {
			for {
				page, next, err := tx.Audit().List(q)
				if err != nil {
					return err
				}
				for _, r := range page {
					seqs = append(seqs, r.Seq)
				}
				if next == "" {
					break
				}
				q.Cursor = next
			}
		}
		wantSame(t, "by pages, and oldest first", seqs, []int64{1, 6, 5, 4, 3, 2, 1, 1, 2, 3, 4, 5, 6, 1})
		page, _, err := tx.Audit().List(store.AuditQuery{Limit: 1, Offset: 2})
		if err == nil {
			wantSame(t, "by number", page[0].Seq, int64(5))
		}
		return err
	})
	view(t, s, func(tx store.Tx) error {
		got, err := tx.Audit().Matching(store.AuditQuery{Project: "b"}, rows[1].ID, 5)
		want3, want5 := *rows[3], *rows[5]
		want3.After, want5.After = rows[2].Hash, rows[4].Hash
		wantSame(t, "those of a project after one", got, []*store.AuditRow{&want3, &want5})
		if err != nil {
			return err
		}
		got, err = tx.Audit().Matching(store.AuditQuery{}, 0, 1)
		wantSame(t, "the first", got, rows[:1])
		return err
	})
	view(t, s, func(tx store.Tx) error {
		got, err := tx.Audit().Chain("w1", rows[1].ID, 3)
		wantSame(t, "a chain", got, rows[2:5])
		if err != nil {
			return err
		}
		got, err = tx.Audit().Newest("w1", 2)
		wantSame(t, "the newest", got, []*store.AuditRow{rows[5], rows[4]})
		return err
	})
	view(t, s, func(tx store.Tx) error {
		_, err := tx.Audit().Chain("w1", 0, 0)
		wantCode(t, "no rows at a time", err, fault.Invalid)
		_, _, err = tx.Audit().List(store.AuditQuery{Cursor: "x"})
		wantCode(t, "a cursor of none", err, fault.Invalid)
		return nil
	})
}

func auditRetention(t *testing.T, open func(*testing.T) store.Store) {
	s := open(t)
	rows := []*store.AuditRow{auditRow("w", 1), auditRow("w", 2), auditRow("w", 3), auditRow("w", 4), auditRow("other", 1)}
	start := store.AuditMark{Writer: "w", Kind: "start", Seq: 2, Hash: []byte{2}, At: epoch, Signature: []byte("by me")}
	head := store.AuditMark{Writer: "w", Kind: "head", Seq: 4, Hash: []byte{4}, At: epoch, Signature: []byte("and by me")}
	update(t, s, func(tx store.Tx) error {
		for _, r := range rows {
			if err := tx.Audit().Append(r); err != nil {
				return err
			}
		}
		for _, m := range []store.AuditMark{{Writer: "w", Kind: "start", Hash: []byte{1}, Signature: []byte{}}, start, head} {
			if err := tx.Audit().Mark(m); err != nil {
				return err
			}
		}
		return nil
	})
	view(t, s, func(tx store.Tx) error {
		marks, err := tx.Audit().Marks("w")
		wantSame(t, "marks", marks, []store.AuditMark{head, start})
		if err != nil {
			return err
		}
		marks, err = tx.Audit().Marks("other")
		wantSame(t, "marks of another", len(marks), 0)
		return err
	})
	prune := func(says string, upto int64, want int, left ...*store.AuditRow) {
		t.Helper()
		update(t, s, func(tx store.Tx) error {
			n, err := tx.Audit().Prune("w", upto)
			wantSame(t, says, n, want)
			return err
		})
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Audit().Chain("w", 0, 10)
			wantSame(t, says, got, left)
			return err
		})
	}
	prune("two", rows[1].ID, 2, rows[2], rows[3])
	prune("all but the newest", rows[4].ID, 1, rows[3])
	view(t, s, func(tx store.Tx) error {
		all, err := tx.Audit().Writers()
		wantSame(t, "writers", all, []string{"w"})
		if err != nil {
			return err
		}
		got, err := tx.Audit().Newest("none", 1)
		wantSame(t, "of no rows", len(got), 0)
		return err
	})
}
