// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/mcpfile"
	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/fault"
	"sandpit.dev/internal/mcpsetup"
)

// written is a home with one client's file, and what sandpit mcp config --write does to it.
type written struct {
	t    *testing.T
	home string
	path string
	said bytes.Buffer
}

func newWritten(t *testing.T, old string) *written {
	w := &written{t: t, home: t.TempDir()}
	w.path = filepath.Join(w.home, ".cursor", "mcp.json")
	if old != "" {
		if err := os.MkdirAll(filepath.Dir(w.path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(w.path, []byte(old), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// write runs the command against a server elsewhere.
func (w *written) write(args ...string) error {
	w.said.Reset()
	env := map[string]string{"HOME": w.home, "SANDPIT_URL": "http://box.example:8080", "SANDPIT_TOKEN": "spt_secret"}
	root := newRoot(&app.App{Stdout: &w.said, Stderr: &w.said, Finder: place.Finder{Getenv: func(name string) string { return env[name] }}, Version: "test"})
	root.SetArgs(append([]string{"mcp", "config", "--client", "cursor", "--write"}, args...))
	return root.Execute()
}

func (w *written) read(path string) (string, os.FileMode) {
	w.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	st, err := os.Lstat(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b), st.Mode().Perm()
}

// files lists what is in the client's folder.
func (w *written) files() string {
	entries, _ := os.ReadDir(filepath.Dir(w.path))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestWritingAClientsFile(t *testing.T) {
	const old = "{\n  // mine\n  \"mcpServers\": {\"other\": {\"url\": \"x\"}}\n}\n"
	t.Run("WhereThereIsNone", func(t *testing.T) {
		w := newWritten(t, "")
		if err := w.write(); err != nil {
			t.Fatal(err)
		}
		text, mode := w.read(w.path)
		if mode != 0o600 || !strings.Contains(text, "http://box.example:8080/mcp") || !strings.Contains(text, "${env:SANDPIT_TOKEN}") || strings.Contains(text, "spt_") {
			t.Errorf("%v\n%s", mode, text)
		}
		if w.files() != "mcp.json" {
			t.Errorf("there are %s", w.files())
		}
	})
	t.Run("KeepsOthersAndACopy", func(t *testing.T) {
		w := newWritten(t, old)
		if err := w.write("--name", "lab", "--profile", "orkestr"); err != nil {
			t.Fatal(err)
		}
		text, mode := w.read(w.path)
		if mode != 0o644 || !strings.Contains(text, "// mine") || !strings.Contains(text, `"other": {"url": "x"}`) || !strings.Contains(text, `"lab": {`) || !strings.Contains(text, ":8080/mcp/orkestr") {
			t.Errorf("%v\n%s", mode, text)
		}
		if was, _ := w.read(w.path + mcpfile.BackupSuffix); was != old || !strings.Contains(w.said.String(), mcpfile.BackupSuffix) {
			t.Errorf("the copy is %q, and it said\n%s", was, &w.said)
		}
	})
	t.Run("TwiceChangesNothing", func(t *testing.T) {
		w := newWritten(t, old)
		if err := w.write(); err != nil {
			t.Fatal(err)
		}
		first, _ := w.read(w.path)
		if err := os.Remove(w.path + mcpfile.BackupSuffix); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Stat(w.path)
		if err := w.write(); err != nil {
			t.Fatal(err)
		}
		after, _ := os.Stat(w.path)
		if again, _ := w.read(w.path); again != first || !os.SameFile(before, after) || w.files() != "mcp.json" || !strings.Contains(w.said.String(), "already") {
			t.Errorf("%s, with %s\n%s", again, w.files(), &w.said)
		}
	})
	t.Run("ATokenIsForItsOwnerAlone", func(t *testing.T) {
		w := newWritten(t, old)
		if err := w.write("--with-token"); err != nil {
			t.Fatal(err)
		}
		if text, mode := w.read(w.path); mode != 0o600 || !strings.Contains(text, "Bearer spt_secret") {
			t.Errorf("%v\n%s", mode, text)
		}
		if err := os.Chmod(w.path, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := w.write("--with-token"); err != nil {
			t.Fatal(err)
		}
		if _, mode := w.read(w.path); mode != 0o600 {
			t.Errorf("one that had it already: %v", mode)
		}
		// A copy of what had the token is no more open than that was.
		if err := w.write(); err != nil {
			t.Fatal(err)
		}
		if was, mode := w.read(w.path + mcpfile.BackupSuffix); mode != 0o600 || !strings.Contains(was, "spt_secret") {
			t.Errorf("%v\n%s", mode, was)
		}
	})
	t.Run("IntoAnotherFile", func(t *testing.T) {
		w := newWritten(t, "")
		other := filepath.Join(w.home, "project.json")
		if err := w.write("--file", other); err != nil {
			t.Fatal(err)
		}
		if text, _ := w.read(other); !strings.Contains(text, "sandpit") || w.files() != "" {
			t.Errorf("%s; %s", text, w.files())
		}
	})
}

func TestAHostileFileIsLeftAlone(t *testing.T) {
	big := "{}" + strings.Repeat(" ", mcpsetup.MaxFile)
	for name, c := range map[string]struct {
		old  string
		make func(w *written) error
		code fault.Code
	}{
		"no JSON":         {old: "hello", code: fault.Invalid},
		"a key twice":     {old: `{"mcpServers": {}, "mcpServers": {}}`, code: fault.Invalid},
		"huge":            {old: big, code: fault.TooLarge},
		"a link":          {make: func(w *written) error { return os.Symlink(filepath.Join(w.home, "target"), w.path) }, code: fault.Invalid},
		"a link to none":  {make: func(w *written) error { return os.Symlink("nowhere", w.path) }, code: fault.Invalid},
		"a link to /dev":  {make: func(w *written) error { return os.Symlink("/dev/zero", w.path) }, code: fault.Invalid},
		"a directory":     {make: func(w *written) error { return os.Mkdir(w.path, 0o755) }, code: fault.Invalid},
		"a pipe":          {make: func(w *written) error { return mkfifo(w.path) }, code: fault.Invalid},
		"a link as it is": {old: `{"k": 1}`, make: func(w *written) error { return os.Symlink("/etc/passwd", w.path+mcpfile.BackupSuffix) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWritten(t, c.old)
			target := filepath.Join(w.home, "target")
			if err := os.WriteFile(target, []byte("{}"), 0o644); err != nil {
				t.Fatal(err)
			}
			if c.make != nil {
				if err := os.MkdirAll(filepath.Dir(w.path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := c.make(w); err != nil {
					t.Fatal(err)
				}
			}
			err := w.write()
			if c.code == "" { // the copy is put in the place of the link, not where it leads
				was, _ := w.read(w.path + mcpfile.BackupSuffix)
				if st, _ := os.Lstat(w.path + mcpfile.BackupSuffix); err != nil || was != c.old || !st.Mode().IsRegular() {
					t.Errorf("%v: %q", err, was)
				}
				return
			}
			if !fault.Is(err, c.code) || fault.As(err).Message == "" {
				t.Errorf("%v", err)
			}
			if text, _ := w.read(target); text != "{}" {
				t.Errorf("what the link led to became %q", text)
			}
			if c.old != "" {
				if text, _ := w.read(w.path); text != c.old {
					t.Error("it was changed")
				}
			}
			if strings.Contains(w.files(), mcpfile.BackupSuffix) {
				t.Errorf("there are %s", w.files())
			}
		})
	}
}

func TestWhatMCPConfigRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"--name", "a b"}, {"--profile", "../x"}, {"--client", "notepad"}, {"claude-code"}, {"--client", "", "--write"},
	} {
		w := newWritten(t, "")
		if err := w.write(args...); err == nil || w.files() != "" {
			t.Errorf("%v: %v, %s", args, err, w.files())
		}
	}
	w := newWritten(t, "")
	if err := w.write("--client", "json"); !fault.Is(err, fault.Invalid) { // no one program
		t.Errorf("%v", err)
	}
}

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }
