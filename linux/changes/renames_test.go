// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"sandpit.dev/linux/changes"
)

// The kernel merges an event with an earlier one of the same thread and subject that
// nobody read yet. So of the three events of a rename the second and the third may be missing.
func TestARenameWhoseEventsWereMerged(t *testing.T) {
	g, named := newGroup(t, changes.Options{}), namesTheRemoved(t)
	rename := func(top, from, to string) { must(t, unix.Rename(top+"/"+from, top+"/"+to)) }
	chmod := func(top, name string) { must(t, os.Chmod(top+"/"+name, 0o700)) }
	write := func(top, name string) { must(t, os.WriteFile(top+"/"+name, nil, 0o600)) }
	mkdir := func(top, name string) { must(t, os.Mkdir(top+"/"+name, 0o755)) }
	for name, c := range map[string]struct {
		do   func(top string)
		want string
	}{
		"AFileThatMovedTwiceAndADirectoryThatWasChanged": {func(top string) {
			rename(top, "file", "x")
			rename(top, "x", "to")
			chmod(top, "d")
		}, "modified d, deleted file, created to, created z"},
		"AFileThatMovedTwiceOntoAnother": {func(top string) {
			rename(top, "file", "x")
			rename(top, "x", "other")
			chmod(top, "d")
		}, "modified d, deleted file, modified other, created z"},
		"AFileThatMovedTwiceAndOneThatWasRemoved": {func(top string) {
			rename(top, "file", "x")
			rename(top, "x", "to")
			must(t, os.Remove(top+"/other"))
		}, "deleted file, deleted other, created to, created z"},
		"ADirectoryThatWasChangedAndMovedAndAnother": {func(top string) {
			chmod(top, "e")
			rename(top, "e", "to")
			chmod(top, "d")
		}, "modified d, deleted e, created to, created z"},
		"ADirectoryThatWasChangedAndReplaced": {func(top string) {
			chmod(top, "d")
			rename(top, "e", "d")
		}, "modified d, deleted e, created z"},
		"ADirectoryThatReplacesOneWhenBothWereChanged": {func(top string) {
			chmod(top, "d")
			chmod(top, "e")
			rename(top, "e", "d")
			chmod(top, "d")
		}, "modified d, deleted e, created z"},
		"ADirectoryThatWasChangedReplacesOne": {func(top string) {
			chmod(top, "e")
			rename(top, "e", "d")
			chmod(top, "d")
		}, "modified d, deleted e, created z"},
		"ADirectoryThatWasChangedMovesAndOneIsRemoved": {func(top string) {
			chmod(top, "e")
			chmod(top, "d")
			rename(top, "e", "to")
			must(t, os.Remove(top+"/d"))
		}, "deleted d, deleted e, created to, created z"},
		"ADirectoryOfTheImageIsRemovedAndAnotherMoves": {func(top string) {
			chmod(top, "lower")
			must(t, os.Remove(top+"/lower"))
			mkdir(top, "new")
			rename(top, "new", "to")
		}, "not complete"},
		"OneOfTwoRenamesReplacedADirectory": {func(top string) {
			mkdir(top, "new")
			rename(top, "new", "to")
			chmod(top, "d")
			rename(top, "e", "d")
		}, "not complete"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOverlay(t, t.TempDir(), map[string]string{"workspace/file": "1", "workspace/other": "2"})
			must(t, os.Mkdir(o.dir+"/lower/workspace/lower", 0o755)) // no overlay looked there yet
			mkdir(o.ws, "d")
			mkdir(o.ws, "e")
			s, err := g.Add(o.mount, []string{o.dir + "/lower"})
			must(t, err)
			defer s.Close()
			tr, err := s.Track("/workspace")
			must(t, err)
			c.do(o.ws)
			write(o.ws, "z")
			got, err := tr.Stop(t.Context())
			must(t, err)
			text := "not complete"
			if got.Complete {
				text = strings.Join(lines(got), ", ")
			}
			want := c.want
			if name == "ADirectoryThatWasChangedMovesAndOneIsRemoved" && !named {
				want = "not complete"
			}
			if text != want {
				t.Errorf("got  %s\nwant %s", text, want)
			}
		})
	}
}

// TestManyRenamesInOneDirectory does random steps of one thread, most of which the
// kernel merges, and compares each answer that is Complete with the model.
func TestManyRenamesInOneDirectory(t *testing.T) {
	g := newGroup(t, changes.Options{})
	base := t.TempDir()
	runs, whole := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		dir := fmt.Sprintf("%s/%d", base, runs)
		defer os.RemoveAll(dir)
		o := newOverlay(t, dir, map[string]string{"workspace/a": "1", "workspace/b": "2"})
		defer o.mount.Close()
		m := tree{"workspace/a": {}, "workspace/b": {}, "workspace/c": {}, "workspace/d": {}, "workspace/e": {}, "workspace/f": {}}
		must(t, os.Mkdir(dir+"/lower/workspace/f", 0o755)) // no overlay looked there yet
		for _, name := range []string{"c", "d", "e"} {
			must(t, os.Mkdir(o.ws+"/"+name, 0o755))
		}
		s, err := g.Add(o.mount, []string{dir + "/lower"})
		must(t, err)
		defer s.Close()
		tr, err := s.Track("/workspace")
		must(t, err)
		before := m.snapshot()
		var log []string
		for range rapid.IntRange(2, 9).Draw(rt, "steps") {
			op := rapid.SampledFrom([]string{"rename", "rename", "chmod", "chmod", "write", "mkdir", "rm"}).Draw(rt, "op")
			one := "workspace/" + rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"}).Draw(rt, "name")
			two := "workspace/" + rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"}).Draw(rt, "to")
			log = append(log, op+" "+one+" "+two)
			m.do(op, o.top, one, two)
		}
		after := m.snapshot()
		c, err := tr.Stop(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		if !c.Complete {
			return
		}
		whole++
		if diff := cmp.Diff(lines(c), between(before, after)); diff != "" {
			rt.Fatalf("got - want +\n%s\nafter:\n%s", diff, strings.Join(log, "\n"))
		}
	})
	if whole < runs*9/10 {
		t.Errorf("of %d answers %d are whole", runs, whole)
	}
}
