// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/store"
)

// damagedFile makes a data base with events, and overwrites the heads of a few pages in
// the middle, which no call that a server begins with reads.
func damagedFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sandpit.db")
	s, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	fillEvents(t, s, 5000, 300)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	junk := make([]byte, 512)
	for n := range 8 {
		for i := range junk {
			junk[i] = byte(r.Uint32())
		}
		page := (info.Size()/4096)/2 + int64(n)
		if _, err := f.WriteAt(junk, page*4096); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestDamageInTheMiddleIsNoticed(t *testing.T) {
	t.Run("ASmallFileIsRefused", func(t *testing.T) {
		path := damagedFile(t)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), Options{Path: path})
		if err == nil {
			_ = s.Close()
		}
		if e := fault.As(err); err == nil || e.Code != fault.Unavailable || !strings.Contains(e.Message, "damaged") || e.Remedy == "" {
			t.Errorf("got %v, want that it is damaged, and what to do", err)
		}
		after, err := os.ReadFile(path)
		if err != nil || string(before) != string(after) {
			t.Errorf("the file was changed (%v)", err)
		}
	})
	t.Run("ALargeOneIsToldOfWhileItIsUsed", func(t *testing.T) {
		s, err := openWith(t, damagedFile(t), 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(30 * time.Second); s.Room() == nil; <-time.After(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("in vain: the damage is told")
			}
		}
		if e := fault.As(s.Room()); e.Code != fault.Unavailable || e.Remedy == "" {
			t.Errorf("got %v, want that it is damaged, and what to do", e)
		}
		if err := s.View(t.Context(), func(tx store.Tx) error { _, err := tx.Tokens().List("p"); return err }); err != nil {
			t.Error("what is sound is read still:", err)
		}
	})
	t.Run("ASoundLargeOneIsNot", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "sandpit.db")
		s, err := Open(t.Context(), Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		fillEvents(t, s, 5000, 300)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = openWith(t, path, 1<<10); err != nil {
			t.Fatal(err)
		}
		s.checks.Wait()
		if err := s.Room(); err != nil || s.checking.Load() {
			t.Errorf("got %v", err)
		}
	})
}

// openWith opens a file that Open itself checks up to so many bytes.
func openWith(t *testing.T, path string, checked int64) (*Store, error) {
	t.Helper()
	s := newStore(path, Options{})
	s.checkAtOpen = checked
	err := s.open(t.Context(), path, Options{})
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}
