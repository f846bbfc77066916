// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

// crashEnv makes this test binary the child that is killed: its value is the
// data base's file.
const crashEnv = "SANDPIT_TEST_CRASH"

func TestMain(m *testing.M) {
	if path := os.Getenv(crashEnv); path != "" {
		fmt.Fprintln(os.Stderr, writeForEver(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const rowsOfOne = 5 // rows that one Update of the child writes together

// writeForEver makes Updates until it is killed, and reports each when it has returned. One
// Update is a sandbox, its change and its events.
func writeForEver(path string) error {
	ctx := context.Background()
	s, err := sqlstore.Open(ctx, sqlstore.Options{Path: path})
	if err != nil {
		return err
	}
	first := 0
	err = s.View(ctx, func(tx store.Tx) error {
		n, err := tx.Sandboxes().Count(store.SandboxQuery{})
		first = n[sandbox.Running]
		return err
	})
	for n := first; err == nil; n++ {
		b := record(fmt.Sprintf("box%d", n), fmt.Sprintf("key-%d", n))
		b.StopDetail = strings.Repeat("x", n%5*3000) // over several pages, at times
		err = s.Update(ctx, func(tx store.Tx) error {
			if err := tx.Sandboxes().Insert(b); err != nil {
				return err
			}
			for range rowsOfOne {
				if err := tx.Events().Append(&sandbox.Event{Sandbox: b.ID, Project: "default", Type: sandbox.EventExec, ProcessID: "p"}); err != nil {
					return err
				}
			}
			return tx.Sandboxes().Update(b)
		})
		if err == nil {
			fmt.Println(n)
		}
	}
	return err
}

func TestKilledProcess(t *testing.T) {
	skiptest.WithShort(t, "a process is killed many times")
	t.Run("EveryUpdateThatReturnedIsThereAndNoneInPart", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "sandpit.db")
		told := -1
		for round := range 50 {
			told = max(told, killed(t, path, 1+rand.IntN(12)))

			found := path
			if round%2 == 1 { // every other time the next child finds the log as it was left
				found = copied(t, path)
			}
			s, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: found})
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			count := 0
			err = s.View(t.Context(), func(tx store.Tx) error {
				counts, err := tx.Sandboxes().Count(store.SandboxQuery{})
				if err != nil {
					return err
				}
				count = counts[sandbox.Running]
				for n := max(0, count-20); n < count; n++ { // the earlier ones were looked at before
					b, err := tx.Sandboxes().Get(sandbox.ID(fmt.Sprintf("box%d", n)))
					if err != nil {
						return err
					}
					events, _, err := tx.Events().List(store.EventQuery{Sandbox: b.ID})
					if err != nil {
						return err
					}
					if b.Revision != 2 || len(events) != rowsOfOne {
						t.Errorf("round %d: %s has revision %d and %d events, want 2 and %d", round, b.ID, b.Revision, len(events), rowsOfOne)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			// The last Update may have committed without time to report it.
			if count != told+1 && count != told+2 {
				t.Fatalf("round %d: %d Updates returned, and %d are there", round, told+1, count)
			}
			told = count - 1
			if err := s.Close(); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var verdict string
		if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
			t.Errorf("integrity_check: %q, %v", verdict, err)
		}
	})
}

// copied copies a data base and its log.
func copied(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "sandpit.db")
	for _, end := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + end)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+end, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// Two processes that share a file without sharing what they know of its log would
// damage it.
func TestAFileThatAnotherProcessHasOpenIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sandpit.db")
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), crashEnv+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if !bufio.NewScanner(out).Scan() { // and it waits in a write, once the pipe is full
		t.Fatal("the child made no Update")
	}
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: path})
	if err == nil {
		_ = s.Close()
		t.Fatal("it was opened")
	}
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.As(err).Message, "held by another program") {
		t.Errorf("got %q: %v, want unavailable, and why", fault.Of(err), err)
	}
}

// killed runs the child until it has reported some Updates, kills it somewhere in the next one,
// and returns the last one that it reported.
func killed(t *testing.T, path string, after int) (last int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), crashEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last = -1
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			t.Errorf("the child said %q", lines.Text())
		}
		if n == after {
			for range rand.IntN(20000) { // a random instant, without a clock
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	if last < 0 {
		t.Fatal("the child made no Update")
	}
	return last
}
