// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package running

import (
	"errors"
	"io/fs"
	"testing"
)

func TestTheNewestServerIsFoundAndOnlyItTakesItsWordBack(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of nothing: got %v", err)
	}
	a, b := Server{URL: "http://127.0.0.1:1", Data: "/a", PID: 1}, Server{URL: "http://127.0.0.1:2", Data: "/b", PID: 2}
	for _, s := range []Server{a, b} {
		if err := Write(dir, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := Remove(dir, a.PID); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(dir); err != nil || got != b {
		t.Errorf("got %+v, %v; want %+v", got, err, b)
	}
	for range 2 {
		if err := Remove(dir, b.PID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read after the end: got %v", err)
	}
}
