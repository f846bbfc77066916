// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// olderStore makes the file that the server wrote whose schema had only the
// first migrations, with rows by its own statements.
func olderStore(t *testing.T, schema int, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sandpit.db")
	d := sqliteDialect()
	all, _, err := migrations(&d)
	if err != nil {
		t.Fatal(err)
	}
	db, err := pool(path, "journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := migrate(t.Context(), db, all[:schema]); err != nil {
		t.Fatal(err)
	}
	for _, text := range statements {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return path
}

// before3 is a sandbox's row by the statement of the servers before the third
// migration.
func before3(id, state string, started, stopped string) string {
	return "INSERT INTO sandboxes (id, project, key, image, image_digest, asked_image, runtime," +
		" cpu, memory_mb, disk_mb, pids, env, metadata, idle_timeout, retention, expires_at," +
		" state, stop_cause, stop_detail, handle, created_at, updated_at, started_at, stopped_at, last_activity," +
		" exec_count, exec_time, bytes_uploaded, bytes_downloaded, revision, search) VALUES ('" + id + "', 'default', 'key-" + id + "'," +
		` 'python', 'sha256:d', 'python-3.12', 'native', 1.5, 512, 1024, 256, '{"A":"1"}', '{"owner":"alice"}', 60000000000, 3600000000000, 0, '` +
		state + "', '', '', x'0001ff', 1000000, 2000000, " + started + ", " + stopped + ", 4000000, 7, 8, 9, 10, 11, '" + id + "')"
}

func TestUpgrade(t *testing.T) {
	t.Run("FromBeforeSnapshotsAndVolumes", func(t *testing.T) {
		path := olderStore(t, 2,
			before3("running", "running", "3000000", "0"),
			before3("stopped", "stopped", "3000000", "3500000"),
			"INSERT INTO contexts (id, sandbox, name, language, cwd, run_user, env, is_default, created_at, used_at,"+
				" process_id, starts, cells, ended, running_id, state) VALUES ('c', 'running', 'n', 'python', '/', 'u', '{}', 1, 5, 6, 'p', 1, 2, '', '', NULL)",
			"INSERT INTO events (sandbox, project, type, at, actor, via, detail, process_id, command, run_user, cwd,"+
				" done, exit_code, signal, cause, duration, stdout_bytes, stderr_bytes, stdout_truncated, stderr_truncated,"+
				" changes, changes_total, path, moved_to, bytes, ok, language, context) VALUES ('running', 'default', 'exec', 5, 'alice', 'rest', '', 'p',"+
				" 'true', 'u', '/', 0, 0, '', '', 0, 0, 0, 0, 0, '[]', 0, '', '', 0, 0, '', '')",
		)
		at := func(seconds float64) time.Time { return time.UnixMicro(int64(seconds * 1e6)).UTC() }
		stopped := &sandbox.Sandbox{
			ID: "stopped", Project: "default", Key: "key-stopped", Image: "python", ImageDigest: "sha256:d", AskedImage: "python-3.12", Runtime: "native",
			Limits: sandbox.Limits{CPU: 1.5, MemoryMB: 512, DiskMB: 1024, Pids: 256},
			Env:    map[string]string{"A": "1"}, Metadata: map[string]string{"owner": "alice"},
			Network: sandbox.NetworkPolicy{Mode: sandbox.NetworkOff},
			Clocks: sandbox.Clocks{
				IdleTimeout: time.Minute, OnIdle: sandbox.IdleStop, OnExpiry: sandbox.ExpiryDelete, Retention: time.Hour, AutoStart: true, Checkpoints: sandbox.CheckpointsOff,
			},
			State: sandbox.Stopped, Handle: []byte{0, 1, 255},
			CreatedAt: at(1), UpdatedAt: at(2), StartedAt: at(3), StoppedAt: at(3.5), LastActivity: at(4),
			ExecCount: 7, ExecTime: 8, BytesUploaded: 9, BytesDownloaded: 10, Revision: 11,
		}
		running := *stopped
		running.ID, running.Key, running.State = "running", "key-running", sandbox.Running
		running.StoppedAt, running.RunningSince = time.Time{}, at(3)

		for range 2 { // the second opening finds nothing to do
			s, err := Open(t.Context(), Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []*sandbox.Sandbox{stopped, &running} {
				err := s.View(t.Context(), func(tx store.Tx) error {
					got, err := tx.Sandboxes().Get(want.ID)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s (-want +got):\n%s", want.ID, diff)
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			err = s.View(t.Context(), func(tx store.Tx) error {
				contexts, err := tx.Contexts().List("running")
				if err != nil {
					return err
				}
				events, err := tx.Events().Unfinished("running")
				if len(contexts) != 1 || len(events) != 1 {
					t.Errorf("got %d contexts and %d commands without result, want one of each", len(contexts), len(events))
				}
				counts, err2 := tx.Sandboxes().Count(store.SandboxQuery{Project: "default"})
				if diff := cmp.Diff(map[sandbox.State]int{sandbox.Running: 1, sandbox.Stopped: 1}, counts); diff != "" || err2 != nil {
					t.Errorf("Count: %v (-want +got):\n%s", err2, diff)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}

		// What came with the migration can be used on the old rows.
		s, err := Open(t.Context(), Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stopped.Mounts = []sandbox.Mount{{Volume: "v", Path: "/data"}}
		err = s.Update(t.Context(), func(tx store.Tx) error {
			if err := tx.Sandboxes().Update(stopped); err != nil {
				return err
			}
			users, err := tx.Volumes().Users("v")
			if len(users) != 1 {
				t.Errorf("got the users %v, want one", users)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("FromTheFirst", func(t *testing.T) {
		path := olderStore(t, 1, before3("old", "stopped", "3000000", "3500000"))
		s, err := Open(t.Context(), Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		err = s.View(context.Background(), func(tx store.Tx) error {
			got, err := tx.Sandboxes().ByKey("default", "key-old")
			if err == nil && !got.AutoStart {
				t.Error("a call does not start it any more")
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}
