// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"errors"
	"os"
	"testing"
)

func TestAnExchangeWaitsUntilTheOldContentIsFree(t *testing.T) {
	eachKind(t, func(t *testing.T, opts Options) {
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "firstlayer", 0)
		writeFile(t, at(l.Fd(), "upper/file"), []byte("early"))
		mustSnapshot(t, s, "firstlayer", "firstsnapshot")
		writeFile(t, at(l.Fd(), "upper/file"), []byte("late"))
		holds := func() string {
			t.Helper()
			now, err := s.Open("firstlayer")
			if err != nil {
				t.Fatal(err)
			}
			defer now.Close()
			return readFile(t, at(now.Fd(), "upper/file"))
		}
		refused := errors.New("refused")
		if err := s.Exchange(t.Context(), "firstlayer", "firstsnapshot", 0, func() error { return refused }); !errors.Is(err, refused) {
			t.Errorf("got %v", err)
		}
		if got := holds(); got != "late" {
			t.Errorf("an exchange that was refused left %q", got)
		}
		err := s.Exchange(t.Context(), "firstlayer", "firstsnapshot", 0, func() error {
			if got := holds(); got != "late" {
				t.Errorf("while the old content is in use, the layer holds %q", got)
			}
			return os.WriteFile(at(l.Fd(), "upper/file"), []byte("last words"), 0o600)
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := holds(); got != "early" {
			t.Errorf("after it, the layer holds %q", got)
		}
		s.CommitCopies()
		until(t, "the old content is deleted", func() bool {
			thrown, err := names(s.trash.dir)
			buried, err2 := names(s.trash.deleting)
			return err == nil && err2 == nil && len(thrown)+len(buried) == 0
		})
		if left, err := names(s.staging.slot[0].dir); err != nil || len(left) != 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}
