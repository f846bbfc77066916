// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
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
			how := listFlags(c, "sizes only")
			if err := c.ParseFlags(tc.flags); err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			size := func(s sample) string { return strconv.FormatInt(s.Size, 10) }
			err := list(&b, how, []sample{one}, size, columns[sample]{
				head:     []string{"ID"},
				row:      func(s sample, _ time.Time) []string { return []string{s.ID} },
				wideHead: []string{"SIZE"},
				wideRow:  func(s sample, _ time.Time) []string { return []string{size(s)} },
				called:   func(sample) string { return "called" },
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
		listFlags(c, "ids only")
		if err := c.ParseFlags([]string{flag}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", flag, err, want)
		}
	}
}

func TestFiltersOfLists(t *testing.T) {
	var f filters
	for _, s := range []string{"status=stopped,failed", "status=running", "name=web", "image=python", "label=a=b=c"} {
		if err := f.Set(s); err != nil {
			t.Error(err)
		}
	}
	if len(f.status) != 3 || f.image != "python" || f.labels["a"] != "b=c" {
		t.Errorf("got %+v", f)
	}
	key := "my-web-1"
	for _, s := range []*v1.Sandbox{{ID: "a", Key: &key}, {ID: "webx"}} {
		if !f.named(s) {
			t.Errorf("%s is not found", s.Ref())
		}
	}
	if f.named(&v1.Sandbox{ID: "a", Image: "web"}) {
		t.Error("an image is found as a name")
	}
	for _, s := range []string{"status", "status=", "label=a", "label==b", "size=1", "image=node"} {
		if err := f.Set(s); err == nil {
			t.Errorf("%s is taken", s)
		}
	}
}
