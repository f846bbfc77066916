// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"errors"
	"strconv"
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
			how := ListFlags(c, "names only")
			if err := c.ParseFlags(tc.flags); err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			err := List(&b, how, tc.found, func(s string) string { return s }, Columns[string]{
				Head: []string{"NAME", "LONG"},
				Row:  func(s string, _ time.Time) []string { return []string{s, s + s} },
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
	if got, err := Collect(pages(3, nil)); err != nil || len(got) != 3 || got[2] != 2 {
		t.Errorf("got %v, %v, want 0, 1 and 2", got, err)
	}
	if got, err := Collect(pages(0, nil)); err != nil || got == nil || len(got) != 0 {
		t.Errorf("got %#v, %v, want an empty list, which is no null in JSON", got, err)
	}
	if got, err := Collect(pages(2, broken)); !errors.Is(err, broken) || got != nil {
		t.Errorf("got %v, %v, want nothing and the error", got, err)
	}
}

type sample struct {
	ID     string            `json:"id"`
	Size   int64             `json:"size"`
	Gone   *string           `json:"gone"`
	Labels map[string]string `json:"labels"`
}

func TestDataIsPrintedInEveryFormat(t *testing.T) {
	one := sample{ID: "a\x1b[2J\x7f", Size: 10 << 20, Labels: map[string]string{"yes": "no", "n": "1"}}
	for _, tc := range []struct {
		name  string
		flags []string
		want  string
	}{
		{"YAML", []string{"-o", "yaml"}, "- id: \"a\\e[2J\\x7F\"\n  size: 10485760\n  gone: null\n  labels:\n    \"n\": \"1\"\n    \"yes\": \"no\"\n"},
		{"Template", []string{"--format", `{{.id}}\t{{.size}} {{json .labels}}`}, "a\\u001b[2J\\u007f\t10485760 {\"n\":\"1\",\"yes\":\"no\"}\n"},
		{"Name", []string{"-o", "name"}, "called\n"},
		{"QuietBeforeName", []string{"-q", "-o", "name"}, "10485760\n"},
		{"Wide", []string{"-o", "wide"}, "ID                 SIZE\na\\u001b[2J\\u007f   10485760\n"},
		{"TextIsNotWide", nil, "ID\na\\u001b[2J\\u007f\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &cobra.Command{}
			how := ListFlags(c, "sizes only")
			if err := c.ParseFlags(tc.flags); err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			size := func(s sample) string { return strconv.FormatInt(s.Size, 10) }
			err := List(&b, how, []sample{one}, size, Columns[sample]{
				Head:     []string{"ID"},
				Row:      func(s sample, _ time.Time) []string { return []string{s.ID} },
				WideHead: []string{"SIZE"},
				WideRow:  func(s sample, _ time.Time) []string { return []string{size(s)} },
				Called:   func(sample) string { return "called" },
			})
			if got := b.String(); err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
	for flag, want := range map[string]string{
		"-o=xml":       `"xml" is not a valid format: use text, wide, name, json or yaml`,
		"--format={{.": "is not a valid template",
	} {
		c := &cobra.Command{}
		ListFlags(c, "ids only")
		if err := c.ParseFlags([]string{flag}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", flag, err, want)
		}
	}
}
