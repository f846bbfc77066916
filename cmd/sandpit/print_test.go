// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestAListIsPrintedAsItsFlagsSay(t *testing.T) {
	for _, tc := range []struct {
		name  string
		flags []string
		found []string
		want  string
	}{
		{"ATable", nil, []string{"a", "b\x1b[2J"}, "NAME         LONG\na            aa\nb\\u001b[2J   b\\u001b[2Jb\\u001b[2J\n"},
		{"NamesOnly", []string{"-q"}, []string{"a", "b\x1b[2J"}, "a\nb\\u001b[2J\n"},
		{"JSON", []string{"-o", "json"}, []string{"a", "b"}, "[\n  \"a\",\n  \"b\"\n]\n"},
		{"QuietBeforeJSON", []string{"-q", "-o", "json"}, []string{"a"}, "a\n"},
		{"AnEmptyTable", nil, []string{}, "NAME   LONG\n"},
		{"NoNames", []string{"-q"}, []string{}, ""},
		{"EmptyJSON", []string{"-o", "json"}, []string{}, "[]\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &cobra.Command{}
			how := listFlags(c, "names only")
			if err := c.ParseFlags(tc.flags); err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			err := list(&b, how, tc.found, func(s string) string { return s }, columns[string]{
				head: []string{"NAME", "LONG"},
				row:  func(s string, _ time.Time) []string { return []string{s, s + s} },
			})
			if got := b.String(); err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestCollectGivesAllOrTheError(t *testing.T) {
	broken := errors.New("the server is gone")
	pages := func(n int, end error) func(func(int, error) bool) {
		return func(yield func(int, error) bool) {
			for i := range n {
				if !yield(i, nil) {
					return
				}
			}
			if end != nil {
				yield(0, end)
			}
		}
	}
	if got, err := collect(pages(3, nil)); err != nil || len(got) != 3 || got[2] != 2 {
		t.Errorf("got %v, %v, want 0, 1 and 2", got, err)
	}
	if got, err := collect(pages(0, nil)); err != nil || got == nil || len(got) != 0 {
		t.Errorf("got %#v, %v, want an empty list, which is no null in JSON", got, err)
	}
	if got, err := collect(pages(2, broken)); !errors.Is(err, broken) || got != nil {
		t.Errorf("got %v, %v, want nothing and the error", got, err)
	}
}
