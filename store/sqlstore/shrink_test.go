// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// fillEvents appends events with so many bytes each.
func fillEvents(t *testing.T, s *Store, n, bytes int) {
	t.Helper()
	for n > 0 {
		update(t, s, func(tx store.Tx) error {
			for range min(n, 1000) {
				e := &sandbox.Event{Sandbox: "a", Project: "default", Type: sandbox.EventExec, Done: true, At: time.Unix(1, 0), Detail: strings.Repeat("x", bytes)}
				if err := tx.Events().Append(e); err != nil {
					return err
				}
			}
			return nil
		})
		n -= 1000
	}
}

func pruneAll(t *testing.T, s *Store) (deleted int) {
	t.Helper()
	q := store.EventPrune{Before: time.Now(), Recent: time.Now(), Limit: store.MaxPage}
	for {
		update(t, s, func(tx store.Tx) error {
			n, last, err := tx.Events().Prune(q)
			deleted, q.After = deleted+n, last
			return err
		})
		if q.After == 0 {
			return deleted
		}
	}
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestDeletedRowsGiveTheirSpaceBack(t *testing.T) {
	s := openInternal(t)
	// until has the store tidy up by itself, as after many commits. It ends when that gets no further.
	until := func(what string, ok func(file, log int64) bool) {
		t.Helper()
		var lastFile, lastLog int64
		var since time.Time
		for ; ; <-time.After(5 * time.Millisecond) {
			file, log := sizeOf(t, s.file), sizeOf(t, s.file+"-wal")
			if ok(file, log) {
				return
			}
			if file>>20 != lastFile || log>>20 != lastLog { // each look writes a little
				lastFile, lastLog, since = file>>20, log>>20, time.Now()
			}
			if time.Since(since) > 30*time.Second {
				t.Fatalf("in vain: %s; the file has %d bytes and its log %d, as 30 s ago", what, file, log)
			}
			s.syncer.checkpointSoon()
			fillEvents(t, s, 1, 1) // the log is cut by who begins it anew
		}
	}
	fillEvents(t, s, 20_000, 4000)
	until("all is in the file", func(file, log int64) bool { return file > 80_000_000 && log <= longLog })
	if got := pruneAll(t, s); got < 19_999 {
		t.Fatalf("%d events were deleted, want all but the newest", got)
	}
	until("both give their space back", func(file, log int64) bool { return file < 10_000_000 && log <= longLog })
	c, err := s.reader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	pages, free, err := s.room(c)
	if err != nil || free < freePages/2 {
		t.Errorf("%d of %d pages are free (%v), want some left for what comes", free, pages, err)
	}
}

func TestFilesOfOlderVersions(t *testing.T) {
	old := func(t *testing.T) string {
		path := olderStore(t, 6)
		db, err := pool(path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		_, err = db.ExecContext(t.Context(), "INSERT INTO tokens (id, project, name, hash, scopes, created_at, last_used_at, expires_at)"+
			" VALUES ('t', 'p', 'n', x'00', '', 0, 0, 0)")
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	convertible := func(t *testing.T, path string) bool {
		t.Helper()
		yes, size, err := Convertible(t.Context(), path)
		if err != nil || yes && size == 0 {
			t.Fatalf("Convertible: %d bytes, %v", size, err)
		}
		return yes
	}
	for name, rewrite := range map[string]func(t *testing.T, path string) error{
		"OpenRewritesASmallOne": func(t *testing.T, path string) error {
			s, err := Open(t.Context(), Options{Path: path})
			if err != nil {
				return err
			}
			return s.Close()
		},
		"CompactRewritesAny": func(t *testing.T, path string) error { return Compact(t.Context(), path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := old(t)
			if !convertible(t, path) {
				t.Fatal("it is not of an older version")
			}
			if err := rewrite(t, path); err != nil {
				t.Fatal(err)
			}
			if convertible(t, path) {
				t.Error("it gives no space back still")
			}
			s, err := Open(t.Context(), Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			err = s.View(t.Context(), func(tx store.Tx) error {
				all, err := tx.Tokens().List("p")
				if len(all) != 1 {
					t.Errorf("got the tokens %v, want the one that was there", all)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("ThereIsNothingToRewriteWhereNoFileIs", func(t *testing.T) {
		if convertible(t, filepath.Join(t.TempDir(), "none.db")) {
			t.Error("a file that is not there is of an older version")
		}
	})
}
