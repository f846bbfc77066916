// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"sandpit.dev/access"
	"sandpit.dev/access/project"
	"sandpit.dev/audit"
	"sandpit.dev/audit/recorder"
	"sandpit.dev/fault"
	"sandpit.dev/internal/excerpt"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

var (
	root  = access.Caller{Project: "default", Actor: "admin", Scopes: []access.Scope{access.ServerAdmin}}
	alice = access.Caller{Project: "a", Actor: "alice", TokenID: "tok_1", Via: "rest", Address: "192.0.2.1", RequestID: "req-1", Scopes: []access.Scope{access.Admin}}
)

// house is a store with a recorder that runs.
type house struct {
	t    *testing.T
	path string
	db   *sqlstore.Store
	r    *recorder.Recorder
	key  audit.Key
	end  func()
	o    recorder.Options
}

func newHouse(t *testing.T, o recorder.Options) *house {
	h := &house{t: t, path: filepath.Join(t.TempDir(), "records.db"), key: audit.NewKey(), o: o}
	h.open()
	t.Cleanup(func() { h.end() })
	return h
}

func (h *house) open() {
	h.t.Helper()
	db, err := sqlstore.Open(context.Background(), sqlstore.Options{Path: h.path})
	if err != nil {
		h.t.Fatal(err)
	}
	o := h.o
	o.Writer, o.Key = "srv_1", h.key
	r, err := recorder.Open(context.Background(), db, o)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { _ = r.Run(ctx) })
	h.db, h.r = db, r
	h.end = sync.OnceFunc(func() {
		cancel()
		work.Wait()
		if err := r.Close(context.Background()); err != nil {
			h.t.Errorf("Close: %v", err)
		}
		_ = db.Close()
	})
}

func (h *house) update(ctx context.Context, fn func(store.Tx) error) {
	h.t.Helper()
	if err := h.r.Store().Update(ctx, fn); err != nil {
		h.t.Fatal(err)
	}
}

// list returns what the log has, oldest first, without what a server says of itself.
func (h *house) list(q recorder.Query) (out []*audit.Record) {
	h.t.Helper()
	q.AllProjects = q.Project == ""
	q.Limit = 500
	page, _, err := h.r.List(h.t.Context(), root, q)
	if err != nil {
		h.t.Fatal(err)
	}
	slices.Reverse(page)
	return slices.DeleteFunc(page, func(r *audit.Record) bool { return r.Type == audit.Up || r.Type == audit.Down })
}

func (h *house) verify() *audit.Report {
	h.t.Helper()
	report, err := h.r.Verify(h.t.Context(), root)
	if err != nil {
		h.t.Fatalf("Verify: %v", err)
	}
	return report
}

// command is one that ran in a sandbox of the project a.
func command(id string) *sandbox.Event {
	return &sandbox.Event{Sandbox: "sb_1", Project: "a", Type: sandbox.EventExec, At: time.Now(), Actor: "alice", Via: "rest", ProcessID: id, Command: "echo <hi> && true", User: "sandbox", Cwd: "/workspace"}
}

func finish(ev *sandbox.Event, output string) {
	var w excerpt.Writer
	_, _ = w.Write([]byte(output))
	ev.Done, ev.OK, ev.ExitCode, ev.Duration = true, false, 3, 1500*time.Microsecond
	ev.StdoutBytes, ev.Stdout = int64(len(output)), w.Excerpt()
	ev.Changes, ev.ChangesTotal = []sandbox.FileChange{{Path: "a.txt", Action: "created", Size: 3}}, 1
}

func TestACommandHasARowWithAllOfIt(t *testing.T) {
	h := newHouse(t, recorder.Options{})
	o := &audit.Operation{Caller: alice, Name: "exec", Recorded: true, Target: "sb_1"}
	ctx := audit.With(t.Context(), o)
	ev := command("p1")
	h.update(ctx, func(tx store.Tx) error { return tx.Events().Append(ev) })
	finish(ev, "hello\n")
	// The end is committed without the request.
	h.update(t.Context(), func(tx store.Tx) error { return tx.Events().Finish(ev) })
	h.r.Answered(t.Context(), o, audit.Answer{Type: audit.Call, Status: 200})

	rows := h.list(recorder.Query{})
	if len(rows) != 1 {
		t.Fatalf("%d rows, want one: %+v", len(rows), rows)
	}
	r := rows[0]
	if r.Type != sandbox.EventExec || r.Outcome != audit.Failed || r.Project != "a" || r.Sandbox != "sb_1" || r.Command != "echo <hi> && true" || r.User != "sandbox" ||
		r.Exit == nil || *r.Exit != 3 || r.Millis != 1.5 || r.Stdout.First != "hello\n" || r.Stdout.Bytes != 6 || len(r.Stdout.SHA256) != 64 || r.Stderr != nil ||
		len(r.Changes) != 1 || r.Event != ev.Seq || r.Process != "p1" {
		t.Errorf("the row: %+v", r)
	}
	if r.Token != "tok_1" || r.Actor != "alice" || r.Address != "192.0.2.1" || r.Request != "req-1" || r.Call != "exec" || r.Via != "rest" {
		t.Errorf("where it came from: %+v", r)
	}
	if found := h.list(recorder.Query{Text: "<HI> && t"}); len(found) != 1 {
		t.Errorf("searched by its text: %d rows", len(found))
	}
	h.verify()
}

func TestACommandThatGoesOnIsTold(t *testing.T) {
	h := newHouse(t, recorder.Options{})
	ev := command("p1")
	h.update(audit.With(t.Context(), &audit.Operation{Caller: alice, Name: "startProcess"}), func(tx store.Tx) error { return tx.Events().Append(ev) })
	deadline := time.Now().Add(30 * time.Second)
	var rows []*audit.Record
	for len(rows) == 0 && time.Now().Before(deadline) {
		rows = h.list(recorder.Query{Outcomes: []audit.Outcome{audit.Running}})
	}
	if len(rows) != 1 || rows[0].Exit != nil || rows[0].Command != ev.Command || rows[0].Address != "192.0.2.1" {
		t.Fatalf("rows of what runs: %+v", rows)
	}
	finish(ev, "")
	h.update(t.Context(), func(tx store.Tx) error { return tx.Events().Finish(ev) })
	if rows = h.list(recorder.Query{}); len(rows) != 2 || rows[1].Outcome != audit.Failed || rows[1].Address != "192.0.2.1" {
		t.Errorf("with its end: %+v", rows)
	}
}

func TestAnEventAndItsRowAreThereTogetherOrNotAtAll(t *testing.T) {
	h := newHouse(t, recorder.Options{})
	failed := errors.New("no")
	err := h.r.Store().Update(t.Context(), func(tx store.Tx) error {
		if err := tx.Events().Append(&sandbox.Event{Sandbox: "sb_1", Project: "a", Type: sandbox.EventCreated, Done: true, OK: true}); err != nil {
			return err
		}
		return failed
	})
	if err != failed {
		t.Fatal(err)
	}
	if rows := h.list(recorder.Query{}); len(rows) != 0 {
		t.Errorf("rows of what was rolled back: %+v", rows)
	}
	h.update(t.Context(), func(tx store.Tx) error {
		return tx.Events().Append(&sandbox.Event{Sandbox: "sb_1", Project: "a", Type: sandbox.EventCreated, Actor: "alice", Done: true, OK: true})
	})
	if rows := h.list(recorder.Query{}); len(rows) != 1 || rows[0].Type != sandbox.EventCreated {
		t.Errorf("rows: %+v", rows)
	}
}

func TestCallsAreRecordedThatChangeOrReadOrAreRefused(t *testing.T) {
	h := newHouse(t, recorder.Options{Redact: func(s string) string { return strings.ReplaceAll(s, "s3cret", "***") }})
	denied := alice.Require(access.ServerAdmin)
	for _, c := range []struct {
		o    *audit.Operation
		a    audit.Answer
		want string // "": no row
	}{
		{&audit.Operation{Caller: alice, Name: "killProcess", Recorded: true}, audit.Answer{Type: audit.Call, Status: 204, Path: "/v1/s3cret"}, "call ok killProcess /v1/***"},
		{&audit.Operation{Caller: alice, Name: "listSandboxes"}, audit.Answer{Type: audit.Call, Status: 200}, ""},
		{&audit.Operation{Caller: alice, Name: "listSettings"}, audit.Answer{Type: audit.Call, Status: 403, Err: denied}, "call denied listSettings "},
		{&audit.Operation{Caller: alice, Name: "getSandbox"}, audit.Answer{Type: audit.Call, Status: 404, Err: fault.New(fault.NotFound, "no")}, ""},
		{&audit.Operation{Caller: alice, Name: "createSandbox", Recorded: true}, audit.Answer{Type: audit.Call, Status: 429, Err: fault.New(fault.Exhausted, "a quota s3cret")}, "call denied createSandbox "},
		{&audit.Operation{Caller: alice, Name: "run_code", Recorded: true}, audit.Answer{Type: audit.Tool, Err: fault.New(fault.Invalid, "no")}, "tool failed run_code "},
		{&audit.Operation{Caller: access.Caller{Address: "192.0.2.9", Via: "rest"}}, audit.Answer{Type: audit.Call, Status: 401, Err: fault.New(fault.Unauthenticated, "no"), Presented: true}, "signin denied  "},
		{&audit.Operation{Caller: access.Caller{Address: "192.0.2.9", Via: "rest"}}, audit.Answer{Type: audit.Call, Status: 401, Err: fault.New(fault.Unauthenticated, "no")}, ""},
		{&audit.Operation{Caller: alice}, audit.Answer{Type: audit.Call, Status: 404, Err: fault.New(fault.NotFound, "no such path")}, ""},
	} {
		before := len(h.list(recorder.Query{}))

		h.r.Answered(t.Context(), c.o, c.a)
		rows := h.list(recorder.Query{})[before:]
		got := ""
		for _, r := range rows {
			got += fmt.Sprintf("%s %s %s %s", r.Type, r.Outcome, r.Call, r.Path)
			if strings.Contains(r.Detail, "s3cret") {
				t.Errorf("a secret is in %q", r.Detail)
			}
		}
		if got != c.want {
			t.Errorf("%s %v: the log has %q, want %q", c.o.Name, c.a.Err, got, c.want)
		}
	}
	h.verify()
}

// TestWhoLooksOnIsToldOnceAMinute: of each caller and each sandbox, and whatever is refused or fails is told each time.
func TestWhoLooksOnIsToldOnceAMinute(t *testing.T) {
	at := time.Now()
	h := newHouse(t, recorder.Options{Now: func() time.Time { return at }})
	other := alice
	other.TokenID = "tok_2"
	look := func(c access.Caller, target string, err error) int {
		before := len(h.list(recorder.Query{}))
		h.r.Answered(t.Context(), &audit.Operation{Caller: c, Name: "listActivity", Recorded: true, Watched: true, Target: target}, audit.Answer{Type: audit.Call, Status: 200, Err: err})
		return len(h.list(recorder.Query{})) - before
	}
	no := fault.New(fault.NotFound, "no")
	for _, c := range []struct {
		after  time.Duration
		caller access.Caller
		target string
		err    error
		want   int
	}{
		{0, alice, "a", nil, 1}, {2 * time.Second, alice, "a", nil, 0}, {0, alice, "b", nil, 1}, {0, other, "a", nil, 1}, {0, alice, "a", no, 1}, {0, alice, "a", no, 1},
		{57 * time.Second, alice, "a", nil, 0}, {time.Second, alice, "a", nil, 1}, {time.Second, alice, "a", nil, 0}, {-time.Hour, alice, "a", nil, 1},
	} {
		at = at.Add(c.after)
		if n := look(c.caller, c.target, c.err); n != c.want {
			t.Errorf("%+v: %d rows", c, n)
		}
	}
}

func TestACallIsOfTheSandboxThatItNames(t *testing.T) {
	h := newHouse(t, recorder.Options{})
	box := &sandbox.Sandbox{ID: sandbox.NewID(), Project: "a", Key: "chat-1", Image: "python", Runtime: "memory", State: sandbox.Running, CreatedAt: time.Now(), UpdatedAt: time.Now(), LastActivity: time.Now()}
	h.update(t.Context(), func(tx store.Tx) error { return tx.Sandboxes().Insert(box) })
	for _, target := range []string{"chat-1", string(box.ID), "another"} {
		h.r.Answered(t.Context(), &audit.Operation{Caller: alice, Name: "processLogs", Recorded: true, Target: target}, audit.Answer{Type: audit.Call, Status: 200})
	}
	if rows := h.list(recorder.Query{Sandbox: box.ID}); len(rows) != 2 {
		t.Errorf("%d rows of the sandbox, want 2: %+v", len(rows), h.list(recorder.Query{}))
	}
}

func TestChangesOfTokensProjectsAndSettingsAreTold(t *testing.T) {
	h := newHouse(t, recorder.Options{})
	ctx := audit.With(t.Context(), &audit.Operation{Caller: alice, Name: "x"})
	p := &project.Project{Name: "b", CreatedAt: time.Now()}
	h.update(ctx, func(tx store.Tx) error {
		tok := &access.Token{ID: "tok_9", Project: "a", Name: "ci", Hash: bytes.Repeat([]byte{1}, 32), Scopes: []access.Scope{access.SandboxesRead}, CreatedAt: time.Now()}
		if err := tx.Tokens().Insert(tok); err != nil {
			return err
		}
		if _, err := tx.Tokens().Rotate("a", "ci", bytes.Repeat([]byte{2}, 32), time.Now(), time.Time{}); err != nil {
			return err
		}
		if err := tx.Tokens().Delete("a", "tok_9"); err != nil {
			return err
		}
		if err := tx.Projects().Insert(p); err != nil {
			return err
		}
		if err := tx.Projects().Update(p); err != nil {
			return err
		}
		if err := tx.Projects().Delete("b"); err != nil {
			return err
		}
		if err := tx.Settings().Put(store.Setting{Name: "idle_timeout", Value: "60"}); err != nil {
			return err
		}
		if err := tx.Settings().Delete("idle_timeout"); err != nil {
			return err
		}
		return tx.Pools().Put(store.PoolSize{Name: "python", Min: 1, Max: 2})
	})
	var got []string
	for _, r := range h.list(recorder.Query{}) {
		got = append(got, string(r.Type))
		if r.Actor != "alice" || r.Address != "192.0.2.1" || r.Detail == "" || strings.HasPrefix(string(r.Type), "token.") && !strings.Contains(r.Detail, "ci (tok_9)") {
			t.Errorf("row %+v", r)
		}
	}
	want := "token.created token.rotated token.deleted project.created project.changed project.deleted setting.changed setting.changed pool.changed"
	if strings.Join(got, " ") != want {
		t.Errorf("the log has %v", got)
	}
}

// rows returns the rows of the store.
func (h *house) rows() (all []*store.AuditRow) {
	h.t.Helper()
	if err := h.db.View(h.t.Context(), func(tx store.Tx) (err error) {
		all, err = tx.Audit().Chain("srv_1", 0, 100)
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
	return all
}

// rewrite puts rows in the place of those after the first, with all their hashes made anew: what somebody does who can
// write to the records and has not the key.
func (h *house) rewrite(change func(i int, body []byte) []byte) {
	h.t.Helper()
	all := h.rows()
	raw, err := sql.Open("sqlite", h.path)
	if err != nil {
		h.t.Fatal(err)
	}
	defer raw.Close()
	hash, _ := audit.HashOf(all[0].Hash)
	for i, row := range all[1:] {
		body := change(i+1, row.Body)
		if body == nil {
			if _, err := raw.Exec("DELETE FROM audit WHERE seq = ?", row.Seq); err != nil {
				h.t.Fatal(err)
			}
			continue
		}
		hash = hash.Next(body)
		if _, err := raw.Exec("UPDATE audit SET body = ?, hash = ? WHERE seq = ?", string(body), hash[:], row.Seq); err != nil {
			h.t.Fatal(err)
		}
	}
}

func tampered(t *testing.T) *house {
	h := newHouse(t, recorder.Options{})
	for i := range 5 {
		h.update(t.Context(), func(tx store.Tx) error {
			return tx.Events().Append(&sandbox.Event{Sandbox: "sb_1", Project: "a", Type: sandbox.EventCreated, Actor: "alice", Detail: fmt.Sprint(i), Done: true, OK: true})
		})
	}
	if n := h.verify().Rows; n < 5 {
		t.Fatalf("%d rows", n)
	}
	return h
}

func TestATamperedStoreIsFound(t *testing.T) {
	for name, change := range map[string]func(i, all int, body []byte) []byte{
		"changed": func(i, _ int, body []byte) []byte { return bytes.Replace(body, []byte("alice"), []byte("bobby"), 1) },
		"changed at the end": func(i, all int, body []byte) []byte {
			if i < all-1 {
				return body
			}
			return bytes.Replace(body, []byte(`"ok"`), []byte(`"no"`), 1)
		},
		"cut off": func(i, all int, body []byte) []byte {
			if i < all-1 {
				return body
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := tampered(t)
			all := len(h.rows())
			h.rewrite(func(i int, body []byte) []byte { return change(i, all, body) })
			if _, err := h.r.Verify(t.Context(), root); !fault.Is(err, fault.Invalid) {
				t.Errorf("Verify: %v", err)
			}
			if !strings.Contains(name, "end") && name != "cut off" {
				return
			}
			// The next server finds it at once, signs nothing of it, and goes on.
			h.end()
			h.open()
			found := h.list(recorder.Query{Types: []sandbox.EventType{audit.Altered}})
			if len(found) == 0 {
				t.Error("no row says that the log was changed")
			}
		})
	}
	t.Run("without its head", func(t *testing.T) {
		h := tampered(t)
		raw, err := sql.Open("sqlite", h.path)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		if _, err := raw.Exec("DELETE FROM audit_marks"); err != nil {
			t.Fatal(err)
		}
		if report, err := h.r.Verify(t.Context(), root); !fault.Is(err, fault.Invalid) {
			t.Errorf("verified: %+v, %v", report, err)
		}
	})
	t.Run("without its head, at the next start", func(t *testing.T) {
		h := tampered(t)
		h.end()
		h.exec("DELETE FROM audit_marks")
		h.open()
		if found := h.list(recorder.Query{Types: []sandbox.EventType{audit.Altered}}); len(found) != 1 || !strings.Contains(found[0].Detail, "no signed head") {
			t.Errorf("got %+v", found)
		}
	})
	t.Run("of nobody", func(t *testing.T) {
		h := tampered(t)
		extra := *h.rows()[2]
		extra.Writer = "nobody"
		if err := h.db.Update(t.Context(), func(tx store.Tx) error { return tx.Audit().Append(&extra) }); err != nil {
			t.Fatal(err)
		}
		if report, err := h.r.Verify(t.Context(), root); !fault.Is(err, fault.Invalid) {
			t.Errorf("verified: %+v, %v", report, err)
		}
	})
	t.Run("columns", func(t *testing.T) {
		h := tampered(t)
		raw, err := sql.Open("sqlite", h.path)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		if _, err := raw.Exec("UPDATE audit SET project = 'elsewhere' WHERE seq = 3"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.r.Verify(t.Context(), root); !fault.Is(err, fault.Invalid) {
			t.Errorf("Verify: %v", err)
		}
	})
	t.Run("added", func(t *testing.T) {
		h := tampered(t)
		all := h.rows()
		extra, last := *all[2], all[len(all)-1]
		rec, _ := audit.Decode(extra.Body)
		rec.Seq = last.Seq + 1
		body, _ := rec.Encode()
		after, _ := audit.HashOf(last.Hash)
		hash := after.Next(body)
		extra.Seq, extra.Body, extra.Hash = rec.Seq, body, hash[:]
		if err := h.db.Update(t.Context(), func(tx store.Tx) error { return tx.Audit().Append(&extra) }); err != nil {
			t.Fatal(err)
		}
		h.r.Answered(t.Context(), &audit.Operation{Caller: alice, Name: "killProcess", Recorded: true}, audit.Answer{Type: audit.Call})
		report, err := h.r.Verify(t.Context(), root)
		if err == nil && len(report.Altered) == 0 {
			t.Error("a row that fits and that nobody wrote is not found")
		}
	})
}

// TestAServerThatIsKilledBeforeItSignsIsNoAlarm: its rows are of the first seconds, or of a slow start, and the beat that signs
// heads never came. A head that is deleted then is an alarm all the same.
func TestAServerThatIsKilledBeforeItSignsIsNoAlarm(t *testing.T) {
	for _, n := range []int{1, 3} {
		for _, deleted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d rows, head deleted: %v", n, deleted), func(t *testing.T) {
				h := &house{t: t, path: filepath.Join(t.TempDir(), "records.db"), key: audit.NewKey()}
				db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: h.path})
				if err != nil {
					t.Fatal(err)
				}
				at := time.Now().Add(-time.Hour)
				r, err := recorder.Open(t.Context(), db, recorder.Options{Writer: "srv_1", Key: h.key, Now: func() time.Time { return at }})
				if err != nil {
					t.Fatal(err)
				}
				for i := range n { // a minute apart; nothing runs, and nothing is closed
					at = at.Add(time.Minute)
					if err := r.Store().Update(t.Context(), func(tx store.Tx) error {
						return tx.Events().Append(&sandbox.Event{Sandbox: "sb_1", Project: "a", Type: sandbox.EventCreated, Actor: "alice", Detail: fmt.Sprint(i), At: at, Done: true, OK: true})
					}); err != nil {
						t.Fatal(err)
					}
				}
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
				if deleted {
					h.exec("DELETE FROM audit_marks")
				}
				h.open()
				t.Cleanup(func() { h.end() })
				h.verify()
				found := h.list(recorder.Query{Types: []sandbox.EventType{audit.Altered}})
				if deleted != (len(found) == 1) {
					t.Errorf("got %+v", found)
				}
				if rows := h.rows(); len(rows) < n+1 {
					t.Errorf("got %d rows", len(rows))
				}
			})
		}
	}
}

// exec changes the store's file as somebody else would.
func (h *house) exec(text string) {
	h.t.Helper()
	raw, err := sql.Open("sqlite", h.path)
	if err != nil {
		h.t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.Exec(text); err != nil {
		h.t.Fatal(err)
	}
}

func TestAnExportIsVerifiedOffline(t *testing.T) {
	h := newHouse(t, recorder.Options{})
	for i := range 300 {
		h.update(t.Context(), func(tx store.Tx) error {
			p := []string{"a", "b"}[i%2]
			return tx.Events().Append(&sandbox.Event{Sandbox: sandbox.ID("sb_" + p), Project: p, Type: sandbox.EventCreated, Actor: "alice", Detail: fmt.Sprintf("=%d,\"x\"", i), Done: true, OK: true})
		})
	}
	key := h.r.Key()
	for _, c := range []struct {
		says     string
		c        access.Caller
		q        recorder.Query
		complete bool
		least    int64
	}{
		{"all", root, recorder.Query{AllProjects: true}, true, 300},
		{"of a project", alice, recorder.Query{}, false, 150},
		{"of a sandbox", root, recorder.Query{Project: "b", Sandbox: "sb_b"}, false, 150},
		{"by text", root, recorder.Query{AllProjects: true, Text: `=7,"`}, false, 1},
	} {
		e, err := h.r.NewExport(c.c, c.q)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := e.JSON(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		report, err := audit.VerifyExport(bytes.NewReader(b.Bytes()), &key, nil)
		if err != nil || report.Complete != c.complete || report.Rows < c.least || report.Rows > c.least+10 {
			t.Errorf("%s: %+v, %v", c.says, report, err)
		}
		b.Reset()
		if err := e.CSV(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(&b).ReadAll()
		if err != nil || int64(len(lines)) < report.Rows+1 {
			t.Fatalf("%s: %d lines of CSV for %d rows, %v", c.says, len(lines), report.Rows, err)
		}
		detail := slices.Index(lines[0], "detail")
		if last := lines[len(lines)-1]; last[slices.Index(lines[0], "type")] == string(sandbox.EventCreated) && !strings.HasPrefix(last[detail], "'=") {
			t.Errorf("%s: a cell begins as a formula does: %q", c.says, last[detail])
		}
	}
	if _, err := h.r.NewExport(alice, recorder.Query{Project: "b"}); !fault.Is(err, fault.Denied) {
		t.Errorf("of another project: %v", err)
	}
	if _, _, err := h.r.List(t.Context(), access.Caller{Project: "a", Scopes: []access.Scope{access.SandboxesWrite}}, recorder.Query{}); !fault.Is(err, fault.Denied) {
		t.Errorf("without the scope admin: %v", err)
	}
}

func TestWhatIsPrunedLeavesTheRestProvable(t *testing.T) {
	var mu sync.Mutex
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h := newHouse(t, recorder.Options{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	add := func(n int) {
		for range n {
			h.update(t.Context(), func(tx store.Tx) error {
				return tx.Events().Append(&sandbox.Event{Sandbox: "sb_1", Project: "a", Type: sandbox.EventCreated, Actor: "alice", Done: true, OK: true})
			})
		}
	}
	add(600)
	old := h.verify()
	mu.Lock()
	now = now.Add(48 * time.Hour)
	mu.Unlock()
	add(3)
	before := now.Add(-time.Hour)
	dry, err := h.r.Prune(t.Context(), root, before, true)
	if err != nil || dry < 600 {
		t.Fatalf("dry: %d, %v", dry, err)
	}
	if n, err := h.r.Prune(t.Context(), root, before, false); err != nil || n != dry {
		t.Fatalf("pruned %d, %v, want %d", n, err, dry)
	}
	report := h.verify()
	if report.Rows >= old.Rows || report.Chains[0].From != int64(dry)+1 {
		t.Errorf("after it: %+v", report)
	}
	if n, err := h.r.Prune(t.Context(), root, before, false); err != nil || n != 0 {
		t.Errorf("again: %d, %v", n, err)
	}
	if _, err := h.r.Prune(t.Context(), alice, before, false); !fault.Is(err, fault.Denied) {
		t.Errorf("by a project's admin: %v", err)
	}
	if _, err := h.r.Prune(t.Context(), root, now.Add(time.Hour), false); !fault.Is(err, fault.Invalid) {
		t.Errorf("of the future: %v", err)
	}
	// The newest row stays, whatever its age, and the chain goes on from it.
	mu.Lock()
	now = now.Add(48 * time.Hour)
	mu.Unlock()
	if _, err := h.r.Prune(t.Context(), root, now, false); err != nil {
		t.Fatal(err)
	}
	if n := h.verify().Rows; n != 1 {
		t.Errorf("%d rows are left", n)
	}
	add(1)
	if n := h.verify().Rows; n != 2 {
		t.Errorf("%d rows after one more", n)
	}
	// A filtered export begins behind the checkpoint.
	e, _ := h.r.NewExport(root, recorder.Query{Project: "a"})
	var b bytes.Buffer
	if err := e.JSON(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.VerifyExport(&b, nil, nil); err != nil {
		t.Error(err)
	}
}

func TestTheChainGoesOnAfterARestart(t *testing.T) {
	h := newHouse(t, recorder.Options{})
	for round := range 3 {
		ev := command(fmt.Sprint("p", round))
		h.update(t.Context(), func(tx store.Tx) error { return tx.Events().Append(ev) })
		h.end()
		h.open()
		// It ended while no server was there.
		finish(ev, "x")
		h.update(t.Context(), func(tx store.Tx) error { return tx.Events().Finish(ev) })
	}
	if rows := h.list(recorder.Query{Types: []sandbox.EventType{sandbox.EventExec}}); len(rows) != 3 {
		t.Errorf("%d rows of commands, want 3", len(rows))
	}
	report := h.verify()
	if len(report.Chains) != 1 || report.Chains[0].Head == 0 {
		t.Errorf("%+v", report)
	}
}

// blocked is a store whose Updates wait, and then fail.
type blocked struct {
	store.Store
	mu   sync.Mutex
	fail bool
}

func (b *blocked) Update(ctx context.Context, fn func(store.Tx) error) error {
	b.mu.Lock()
	fail := b.fail
	b.mu.Unlock()
	if fail {
		return fault.New(fault.Unavailable, "the disk does not answer")
	}
	return b.Store.Update(ctx, fn)
}

func (b *blocked) set(fail bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = fail
}

func TestWhatHasNoRoomIsCounted(t *testing.T) {
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "records.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	b := &blocked{Store: db, fail: true}
	r, err := recorder.Open(t.Context(), b, recorder.Options{Writer: "srv_1", Key: audit.NewKey()})
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	const all = 5000 // more than the queue holds
	for range all {
		r.Add(gone, &audit.Record{Type: audit.Call, Outcome: audit.OK, Project: "a"})
	}
	if err := r.Close(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Close while the store fails: %v", err)
	}
	b.set(false)
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	n, err := r.Count(t.Context(), root, recorder.Query{Project: "a"})
	if err != nil {
		t.Fatal(err)
	}
	gap, _, err := r.List(t.Context(), root, recorder.Query{AllProjects: true, Types: []sandbox.EventType{audit.Lost}})
	if err != nil || len(gap) != 1 || n+int(gap[0].Bytes) != all || gap[0].Bytes == 0 {
		t.Errorf("%d of %d were written, and the gap says %+v, %v", n, all, gap, err)
	}
	if _, err := r.Verify(t.Context(), root); err != nil {
		t.Error(err)
	}
}

func TestRowsOfManyWritersAtOnceAreOneChain(t *testing.T) {
	h := newHouse(t, recorder.Options{})
	const each, writers = 40, 8
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			for i := range each {
				if w%2 == 0 {
					_ = h.r.Store().Update(context.Background(), func(tx store.Tx) error {
						return tx.Events().Append(&sandbox.Event{Sandbox: "sb_1", Project: "a", Type: sandbox.EventUpload, Actor: "alice", Path: fmt.Sprint(i), Done: true, OK: true})
					})
				} else {
					h.r.Answered(context.Background(), &audit.Operation{Caller: alice, Name: "killProcess", Recorded: true}, audit.Answer{Type: audit.Call})
				}
				if i%10 == 0 {
					_, _, _ = h.r.List(context.Background(), root, recorder.Query{AllProjects: true, Limit: 1})
				}
			}
		})
	}
	work.Wait()
	if n := len(h.list(recorder.Query{})); n != each*writers {
		t.Errorf("%d rows, want %d", n, each*writers)
	}
	h.verify()
}

// BenchmarkUpdate compares the transaction that ends a command with one that the audit log is told of.
func BenchmarkUpdate(b *testing.B) {
	for _, audited := range []bool{false, true} {
		b.Run(fmt.Sprintf("audited=%v", audited), func(b *testing.B) {
			db, err := sqlstore.Open(b.Context(), sqlstore.Options{Path: filepath.Join(b.TempDir(), "records.db")})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			r, err := recorder.Open(b.Context(), db, recorder.Options{Writer: "srv_1", Key: audit.NewKey()})
			if err != nil {
				b.Fatal(err)
			}
			var s store.Store = db
			if audited {
				s = r.Store()
			}
			for b.Loop() {
				ev := command("p")
				if err := s.Update(b.Context(), func(tx store.Tx) error { return tx.Events().Append(ev) }); err != nil {
					b.Fatal(err)
				}
				finish(ev, "hello\n")
				if err := s.Update(b.Context(), func(tx store.Tx) error { return tx.Events().Finish(ev) }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
