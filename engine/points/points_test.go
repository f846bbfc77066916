// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package points_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/points"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

var (
	alice = access.Caller{Project: "alice", Actor: "alice", Via: "test", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}
	bob   = access.Caller{Project: "bob", Actor: "bob", Via: "test", Scopes: []access.Scope{access.SandboxesRead, access.SandboxesWrite}}
)

// house is a sandbox with a snapshot.
type house struct {
	*enginetest.Server
	t      *testing.T
	points *points.Service
	box    string
}

func open(t *testing.T) *house {
	s := enginetest.Start(t, t.TempDir())
	box, _, err := s.Engine.Create(t.Context(), alice, engine.CreateRequest{Key: "box"})
	if err != nil {
		t.Fatal(err)
	}
	return &house{s, t, points.New(s.Engine), string(box.ID)}
}

func (h *house) put(path, content string) {
	h.t.Helper()
	if _, _, err := h.Files.WriteFile(h.t.Context(), alice, h.box, path, strings.NewReader(content), sandbox.WriteFileOptions{MakeParents: true}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) keep(name string) string {
	h.t.Helper()
	s, err := h.Engine.CreateSnapshot(h.t.Context(), alice, h.box, engine.SnapshotRequest{Name: name})
	if err != nil {
		h.t.Fatal(err)
	}
	return string(s.ID)
}

func (h *house) read(c access.Caller, of, at, path string) (string, error) {
	_, r, err := h.points.Read(h.t.Context(), c, of, at, path)
	if err != nil {
		return "", err
	}
	defer r.Close()
	all, err := io.ReadAll(r)
	return string(all), err
}

func TestASnapshotIsReadWithoutItsSandbox(t *testing.T) {
	h := open(t)
	h.put("f", "one")
	id := h.keep("then")
	h.put("f", "two")
	if _, err := h.Engine.Stop(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	state := func() *sandbox.Sandbox { // a list is no use of a sandbox
		page, err := h.Engine.List(t.Context(), alice, engine.SandboxesRequest{Limit: 10})
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("got %+v, %v", page, err)
		}
		return page.Items[0]
	}
	before := state()
	for _, c := range []struct{ of, at, want string }{
		{"box", "then", "one"}, {"box", id, "one"}, {"", id, "one"}, {"", "box/then", "one"}, {"box", "now", "two"},
	} {
		if got, err := h.read(alice, c.of, c.at, "f"); err != nil || got != c.want {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
	}
	if d, err := h.points.DiffText(t.Context(), alice, "box", "then", "now", "f"); err != nil || d.Kind != points.DiffersAs || d.Added != 1 || d.Removed != 1 {
		t.Errorf("got %+v, %v", d, err)
	}
	all, more, err := h.points.List(t.Context(), alice, "box", "then", ".", "", 0)
	if err != nil || more || len(all) != 1 || all[0].Name != "f" || all[0].Path != "/workspace/f" {
		t.Errorf("got %+v, %v, %v", all, more, err)
	}
	// None of it started the sandbox, or was a use of it.
	if after := state(); after.State != sandbox.Stopped || !after.LastActivity.Equal(before.LastActivity) {
		t.Errorf("got %v since %v, want %v since %v", after.State, after.LastActivity, before.State, before.LastActivity)
	}
}

func TestWhoMayReadADisk(t *testing.T) {
	h := open(t)
	h.put("f", "one")
	id := h.keep("then")
	reader := alice
	reader.Scopes = []access.Scope{access.SandboxesRead}
	if got, err := h.read(reader, "box", "then", "f"); err != nil || got != "one" {
		t.Errorf("who may read: got %q, %v", got, err)
	}
	writer := alice
	writer.Scopes = []access.Scope{access.SandboxesWrite}
	for name, c := range map[string]struct {
		who    access.Caller
		of, at string
		want   fault.Code
	}{
		"AnotherProject": {bob, h.box, "then", fault.NotFound}, "AnotherProjectByItsID": {bob, "", id, fault.NotFound}, "NowOfAnother": {bob, h.box, "now", fault.NotFound},
		"WhoMayNotRead": {writer, "box", "then", fault.Denied}, "Nowhere": {alice, "box", "never", fault.NotFound}, "ADirectoryAsAName": {alice, "box", "../../etc", fault.NotFound},
		"NowOfNothing": {alice, "", "now", fault.NotFound}, "NoName": {alice, "", "", fault.NotFound},
	} {
		if _, err := h.read(c.who, c.of, c.at, "f"); fault.Of(err) != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		if _, _, err := h.points.List(t.Context(), c.who, c.of, c.at, ".", "", 0); fault.Of(err) != c.want {
			t.Errorf("%s: a list: got %v, want %s", name, err, c.want)
		}
		if c.of == "" {
			continue
		}
		if _, err := h.points.DiffText(t.Context(), c.who, c.of, c.at, "base", "f"); fault.Of(err) != c.want {
			t.Errorf("%s: a comparison: got %v, want %s", name, err, c.want)
		}
	}
	// A snapshot that is being read is not deleted under the reader.
	_, r, err := h.points.Read(t.Context(), alice, "", id, "f")
	if err != nil {
		t.Fatal(err)
	}
	deleted := make(chan error, 1)
	go func() { deleted <- h.Engine.DeleteSnapshot(context.WithoutCancel(t.Context()), alice, "", id) }()
	if got, err := io.ReadAll(r); err != nil || string(got) != "one" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := <-deleted; err != nil {
		t.Error(err)
	}
	if _, err := h.read(alice, "", id, "f"); !fault.Is(err, fault.NotFound) {
		t.Errorf("of one that was deleted: %v", err)
	}
}

// patched is what hunks make of a text.
func patched(t *testing.T, text string, hunks []points.Hunk) string {
	t.Helper()
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var out strings.Builder
	at := 0 // lines of the text that were used
	for _, h := range hunks {
		first := h.FromLine - 1
		if h.FromLines == 0 {
			first = h.FromLine
		}
		for ; at < first; at++ {
			out.WriteString(lines[at])
		}
		for i, line := range h.Lines {
			end := "\n"
			if i+1 < len(h.Lines) && h.Lines[i+1][0] == '\\' {
				end = ""
			}
			switch line[0] {
			case ' ', '-':
				if at >= len(lines) || lines[at] != line[1:]+end {
					t.Fatalf("line %d is not %q", at+1, line)
				}
				if at++; line[0] == ' ' {
					out.WriteString(line[1:] + end)
				}
			case '+':
				out.WriteString(line[1:] + end)
			}
		}
	}
	for ; at < len(lines); at++ {
		out.WriteString(lines[at])
	}
	return out.String()
}

func TestHunksMakeOneTextOfTheOther(t *testing.T) {
	h := open(t)
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range random.IntN(60) {
			fmt.Fprintf(&b, "%s\n", []string{"a", "", "@@ -1 +1 @@", "--- a", "+b", "\\ No newline at end of file", " c", fmt.Sprint(random.IntN(9))}[random.IntN(8)])
		}
		if random.IntN(3) == 0 {
			b.WriteString("no newline")
		}
		return b.String()
	}
	const files = 60
	var texts [2][files]string
	for point := range texts {
		for i := range files {
			texts[point][i] = text()
			h.put(fmt.Sprint("f", i), texts[point][i])
		}
		h.keep(fmt.Sprint("s", point))
	}
	for i := range files {
		from, to := texts[0][i], texts[1][i]
		d, err := h.points.DiffText(t.Context(), alice, "box", "s0", "s1", fmt.Sprint("f", i))
		if err != nil {
			t.Fatal(err)
		}
		if from == to {
			if d.Kind != points.SameText {
				t.Errorf("got %+v of one text", d)
			}
			continue
		}
		if got := patched(t, from, d.Hunks); d.Kind != points.DiffersAs || got != to {
			t.Fatalf("%q to %q: got %+v, which makes %q", from, to, d, got)
		}
	}
}

func TestWhatHasNoTextIsTold(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	long := strings.Repeat("x\n", points.MaxTextLines)
	for name, c := range map[string]struct {
		from, to string // "-": there is none
		kind     points.TextKind
	}{
		"created": {"-", "a\n", points.DiffersAs}, "deleted": {"a\n", "-", points.DiffersAs}, "same": {"a", "a", points.SameText}, "empty": {"-", "", points.DiffersAs},
		"nul": {"a\x00b", "a", points.Binary}, "latin": {"a", "caf\xe9", points.Binary}, "sameBinary": {"\x00", "\x00", points.SameText},
		"large": {"a", strings.Repeat("x", points.MaxText+1), points.TooLarge}, "lines": {"a", long + "x\ny", points.TooLarge}, "atTheBound": {long, "y\n" + long[2:], points.DiffersAs},
		"oneLine": {strings.Repeat("x", points.MaxText), strings.Repeat("y", points.MaxText), points.DiffersAs},
	} {
		t.Run(name, func(t *testing.T) {
			if c.from != "-" {
				h.put(name, c.from)
			}
			at := h.keep("of-" + name)
			if c.to == "-" {
				if err := h.Files.RemoveFile(ctx, alice, "box", name, sandbox.RemoveFileOptions{}); err != nil {
					t.Fatal(err)
				}
			} else {
				h.put(name, c.to)
			}
			d, err := h.points.DiffText(ctx, alice, "box", at, "now", name)
			if err != nil || d.Kind != c.kind || (d.From == nil) != (c.from == "-") || (d.To == nil) != (c.to == "-") {
				t.Fatalf("got %s with %d hunks, from %v to %v, %v; want %s", d.Kind, len(d.Hunks), d.From, d.To, err, c.kind)
			}
			held := 0
			for _, h := range d.Hunks {
				for _, line := range h.Lines {
					held += len(line)
				}
			}
			if held > points.MaxHunks || d.Truncated != (name == "oneLine") {
				t.Errorf("%d bytes of hunks, truncated: %v", held, d.Truncated)
			}
		})
	}
	if err := h.Files.MakeDir(ctx, alice, "box", "dir", sandbox.MakeDirOptions{}); err != nil {
		t.Fatal(err)
	}
	if d, err := h.points.DiffText(ctx, alice, "box", "base", "now", "dir"); err != nil || d.Kind != points.NotRegular {
		t.Errorf("a directory: got %+v, %v", d, err)
	}
	for _, path := range []string{"never", "../../etc/passwd", "/etc/../../../etc/shadow"} {
		if _, err := h.points.DiffText(ctx, alice, "box", "base", "now", path); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: got %v", path, err)
		}
	}
	for _, path := range []string{"", "a\x00b", strings.Repeat("x", 20_000)} {
		if _, err := h.points.DiffText(ctx, alice, "box", "base", "now", path); !fault.Is(err, fault.Invalid) {
			t.Errorf("%.20q: got %v", path, err)
		}
	}
}

// Texts made to have a comparison look at every pair of their lines take no longer than others: the bound of the test is
// what ends it otherwise.
func TestHostileTextsAreCompared(t *testing.T) {
	h := open(t)
	var a, b strings.Builder
	for i := range points.MaxTextLines {
		fmt.Fprintf(&a, "%d\n", i%2)
		fmt.Fprintf(&b, "%d\n", (i+i/1000)%3)
	}
	var c, d strings.Builder
	for i := range points.MaxTextLines {
		fmt.Fprintf(&c, "%d\n", i)
		fmt.Fprintf(&d, "%d\n", points.MaxTextLines-i)
	}
	for i, texts := range [][2]string{{a.String(), b.String()}, {c.String(), d.String()}} {
		h.put("f", texts[0])
		at := h.keep(fmt.Sprint("s", i))
		h.put("f", texts[1])
		got, err := h.points.DiffText(t.Context(), alice, "box", at, "now", "f")
		if err != nil || got.Kind != points.DiffersAs || got.Added == 0 || got.Removed == 0 {
			t.Errorf("got %s, %d, %d, %v", got.Kind, got.Added, got.Removed, err)
		}
		if !got.Truncated && patched(t, texts[0], got.Hunks) != texts[1] {
			t.Error("the hunks do not make one of the other")
		}
	}
}
