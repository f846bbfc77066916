// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// pixel is a PNG.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func TestFiles(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	in := func(args arguments) arguments {
		args["sandbox"] = "box"
		return args
	}

	t.Run("WhatIsWrittenIsRead", func(t *testing.T) {
		got := ok(t, s, "write_file", in(arguments{"path": "src/a.py", "content": "one\ntwo\n", "mode": "755"}))
		if !strings.HasPrefix(got, "created /workspace/src/a.py (8 bytes, mode 755)") {
			t.Errorf("write_file: got %q", got)
		}
		got = ok(t, s, "read_file", in(arguments{"file_path": "/workspace/src/a.py"}))
		if want := "/workspace/src/a.py · 8 bytes · lines 1 to 2, the last\n--- content ---\n     1\tone\n     2\ttwo"; got != want {
			t.Errorf("read_file: got %q, want %q", got, want)
		}
		got = ok(t, s, "write_file", in(arguments{"path": "src/a.py", "content": ""}))
		if !strings.HasPrefix(got, "replaced /workspace/src/a.py (0 bytes, mode 755)") {
			t.Errorf("write_file again: got %q", got)
		}
		if got = ok(t, s, "read_file", in(arguments{"path": "src/a.py"})); got != "/workspace/src/a.py · 0 bytes · empty" {
			t.Errorf("read_file of nothing: got %q", got)
		}
	})

	t.Run("LongTextIsPaged", func(t *testing.T) {
		var b strings.Builder
		for i := range 50_000 {
			fmt.Fprintf(&b, "this is line %d\n", i+1)
		}
		ok(t, s, "write_file", in(arguments{"path": "long", "content": b.String()}))
		got := ok(t, s, "read_file", in(arguments{"path": "long"}))
		wantParts(t, got, "lines 1 to", "more follow", "note: for more, call read_file with start_line", "     1\tthis is line 1\n")
		if n := len(got); n > 41_000 {
			t.Errorf("the answer has %d characters", n)
		}
		got = ok(t, s, "read_file", in(arguments{"path": "long", "offset": 49_999, "limit": 10}))
		wantParts(t, got, "lines 49999 to 50000, the last", " 50000\tthis is line 50000")
		got = ok(t, s, "read_file", in(arguments{"path": "long", "start_line": 10, "line_count": 2}))
		wantParts(t, got, "lines 10 to 11, more follow", "start_line 12")
	})

	t.Run("LongLinesAreClipped", func(t *testing.T) {
		ok(t, s, "write_file", in(arguments{"path": "wide", "content": strings.Repeat("世", 100_000) + "\nnext"}))
		got := ok(t, s, "read_file", in(arguments{"path": "wide"}))
		wantParts(t, got, "lines 1 to 2, the last", "世…\n     2\tnext", "note: lines of more than 2000 characters were clipped")
	})

	t.Run("ImagesAreShown", func(t *testing.T) {
		ok(t, s, "write_file", in(arguments{"path": "plot.png", "content": pixel, "encoding": "base64"}))
		res := call(t, s, "read_file", in(arguments{"path": "plot.png"}))
		if len(res.Content) != 2 {
			t.Fatalf("got %s", text(t, res))
		}
		img, isImage := res.Content[1].(*sdk.ImageContent)
		if want, _ := base64.StdEncoding.DecodeString(pixel); !isImage || img.MIMEType != "image/png" || string(img.Data) != string(want) {
			t.Errorf("got %+v", res.Content[1])
		}
		wantParts(t, text(t, res), "/workspace/plot.png · image/png, 70 bytes")
	})

	t.Run("DirectoriesAreListed", func(t *testing.T) {
		ok(t, s, "write_file", in(arguments{"path": "dir/sub/x", "content": "1"}))
		ok(t, s, "write_file", in(arguments{"path": "dir/a\nb", "content": "12"}))
		ok(t, s, "run_command", in(arguments{"command": "ln -s x dir/link"}))
		res := call(t, s, "list_files", in(arguments{"path": "dir"}))
		type entry struct {
			Name, Type, Target string
			Size               int64 `json:"size_bytes"`
		}
		type folder struct {
			Path    string
			Entries []entry
			More    bool
		}
		got := structured[folder](t, res)
		var link int64 = 1
		want := folder{"/workspace/dir", []entry{{Name: "a\nb", Type: "file", Size: 2}, {Name: "link", Type: "symlink", Target: "x", Size: link}, {Name: "sub", Type: "dir"}}, false}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error("(-want +got):\n" + diff)
		}
		wantParts(t, text(t, res), "3 entries in /workspace/dir · sandbox box\n", "\"a\\nb\" (2 bytes)\n", "link -> x\n", "sub/")
		if got := structured[folder](t, call(t, s, "list_files", in(arguments{"path": "dir", "limit": 1}))); len(got.Entries) != 1 || !got.More {
			t.Errorf("with a limit: got %+v", got)
		}
	})

	t.Run("AReaderReads", func(t *testing.T) {
		reader := h.session("t-reader", stateless, nil)
		wantParts(t, ok(t, reader, "read_file", in(arguments{"path": "long", "line_count": 1})), "this is line 1")
		ok(t, reader, "list_files", in(arguments{}))
	})
}

func TestReadFileGivesNoMoreThanIsAsked(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	line := strings.Repeat("x", 99)
	ok(t, s, "write_file", arguments{"sandbox": "box", "path": "long", "content": strings.Repeat(line+"\n", 1000)})
	read := func(args arguments) (got string, lines int) {
		args["sandbox"], args["path"] = "box", "long"
		got = ok(t, s, "read_file", args)
		return got, strings.Count(got, line)
	}
	got, lines := read(arguments{})
	if lines != 149 { // of 107 characters with their numbers
		t.Errorf("got %d lines, want as many as fit 16,000 characters", lines)
	}
	wantParts(t, got, "lines 1 to 149, more follow", "note: for more, call read_file with start_line 150")
	if got, lines = read(arguments{"start_line": 150}); lines != 149 || !strings.Contains(got, "lines 150 to 298") {
		t.Errorf("the next page has %d lines:\n%.200s", lines, got)
	}
	if _, lines = read(arguments{"max_chars": 40000}); lines != 373 {
		t.Errorf("got %d lines, want as many as fit 40,000 characters", lines)
	}
	h.wrong(t, "read_file", arguments{"sandbox": "box", "path": "long", "max_chars": 10}, "argument max_chars 10")
}
