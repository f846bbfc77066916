// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/diff"
)

var update = flag.Bool("update", false, "write what is answered into testdata/told")

// told is a command of a transcript, as it was typed, with what was printed on both
// streams and the status.
type told struct {
	typed  string
	output string
	status int
}

// typedBound is far more than any of these takes.
const typedBound = 3 * time.Minute

// typist runs commands one after another in a bash, without a terminal and without input.
type typist struct {
	dir string
	env []string
	at  string // the server's host and port
}

// newTypist starts a server that is the test's own, and a bash beside it.
func newTypist(t *testing.T, images string) *typist {
	t.Helper()
	dir := t.TempDir()
	s := &server{dir: dir, env: environment(dir, images)}
	t.Cleanup(func() {
		if err := s.cleanUp(); err != nil {
			t.Error(err)
		}
	})
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	var note struct {
		URL string `json:"url"`
	}
	b, err := os.ReadFile(filepath.Join(dir, "run", "server.json"))
	if err == nil {
		err = json.Unmarshal(b, &note)
	}
	if err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(dir, "here")
	if err := os.Mkdir(here, 0o700); err != nil {
		t.Fatal(err)
	}
	at := strings.TrimPrefix(note.URL, "http://")
	return &typist{dir: here, at: at, env: append(s.env, "LC_ALL=C.UTF-8", "SERVER="+at)}
}

// normal puts words in place of what is different each time.
func (m *typist) normal(s string) string {
	_, port, _ := strings.Cut(m.at, ":")
	s = strings.NewReplacer(m.at, "SERVER", ".localhost:"+port, ".localhost:PORT", filepath.Dir(m.dir), "DIR").Replace(s)
	for _, r := range []struct{ was, is string }{
		{`\bsp[tp]_[\w.-]+`, "TOKEN"},
		{`\b[a-z][a-z0-9]{15}\b`, "ID"},
		{`\b\d+(\.\d+)? ?(ms|s|m|h)( ago)\b`, "TIME$3"},
		{`\b\d{4}-\d\d-\d\dT[\d:.]+Z`, "TIME"},
	} {
		s = regexp.MustCompile(r.was).ReplaceAllString(s, r.is)
	}
	return s
}

// run runs the commands. What they leave running ends with them.
func (m *typist) run(ctx context.Context, typed []string) ([]told, error) {
	out, err := os.CreateTemp(m.dir, ".told-*") // a file: what runs on in the background holds no pipe open
	if err != nil {
		return nil, err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	const mark = "\x01told"
	var text strings.Builder
	for _, line := range typed {
		fmt.Fprintf(&text, "{ %s\n}; printf '%s %%d\\n' $?\n", line, mark)
	}
	ctx, cancel := context.WithTimeout(ctx, typedBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", text.String())
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = m.dir, m.env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Run()
	if cmd.Process != nil {
		if kerr := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); kerr != nil && !errors.Is(kerr, syscall.ESRCH) {
			return nil, kerr
		}
	}
	b, rerr := os.ReadFile(out.Name())
	if rerr != nil {
		return nil, rerr
	}
	var all []told
	for _, line := range typed {
		output, rest, ok := bytes.Cut(b, []byte(mark+" "))
		if !ok {
			return all, fmt.Errorf("bash ended (%v) at: %s\n%s", err, line, b)
		}
		number, rest, _ := bytes.Cut(rest, []byte("\n"))
		status, err := strconv.Atoi(string(number))
		if err != nil {
			return all, err
		}
		all = append(all, told{line, string(output), status})
		b = rest
	}
	return all, nil
}

// TestTold runs the transcripts of testdata/told, each with a server of its own. A transcript reads
// as a terminal does: a line that begins with "$ " was typed, then comes what was printed on both
// streams, and [STATUS] where that is not 0. Lines that begin with # are headings. The pages of the
// project are transcripts as well, see testPages.
func TestTold(t *testing.T) {
	images := needRoot(t)
	t.Run("pages", func(t *testing.T) { testPages(t, images) })
	for _, test := range []struct {
		name  string
		least int // commands
		check func(told) (bool, error)
	}{
		{"mistakes", 60, told.refused},
		{"habits", 40, told.answered},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("testdata", "told", test.name+".txt")
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			m := newTypist(t, images)
			var typed []string
			for line := range strings.Lines(string(want)) {
				if line, ok := strings.CutPrefix(line, "$ "); ok {
					typed = append(typed, strings.TrimSuffix(line, "\n"))
				}
			}
			all, err := m.run(t.Context(), typed)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for i := range all {
				all[i].output = m.normal(all[i].output)
				if ok, err := test.check(all[i]); err != nil {
					t.Errorf("$ %s\n%s[%d]\n%v", all[i].typed, all[i].output, all[i].status, err)
				} else if ok {
					n++
				}
			}
			if n < test.least {
				t.Errorf("there are %d, want at least %d", n, test.least)
			}
			t.Attr("told/"+test.name, strconv.Itoa(n))
			got := retold(string(want), all)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("%s\nif that is better: go test ./test/script -run TestTold -update", diff.Diff(path, want, "told", []byte(got)))
			}
		})
	}
}

// refused reports whether c was refused. What sandpit itself refuses has a next step.
func (c told) refused() (bool, error) {
	ours := strings.HasPrefix(c.output, "sandpit: ") || strings.HasPrefix(c.output, `{"error"`)
	if own := c.status == 1 || c.status == 2 || c.status == 125; own && ours && !strings.Contains(c.output, "\n→ ") && !strings.Contains(c.output, `"remedy":`) {
		return false, errors.New("it says nothing to do next")
	}
	return c.status != 0, nil
}

// answered reports whether c is a habit. It works, or its answer begins with a line that names what
// does it here.
func (c told) answered() (bool, error) {
	line, _, _ := strings.Cut(strings.TrimPrefix(c.output, "sandpit: "), "\n")
	_, here, ok := strings.Cut(line, "; here it is: ")
	switch {
	case !strings.HasPrefix(c.typed, "sandpit "):
		return false, nil
	case c.status == 0, ok && here != "", strings.Contains(line, "; sandpit "), strings.Contains(line, "; use "), strings.Contains(line, "; leave it out: "), strings.Contains(line, "sandpit cp "):
		return true, nil
	}
	return false, errors.New("it neither works nor names what does that here")
}

// retold is a transcript with its answers replaced.
func retold(transcript string, all []told) string {
	var b strings.Builder
	heading := false
	for line := range strings.Lines(transcript) {
		switch {
		case strings.HasPrefix(line, "# "):
			if !heading && b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(line)
			heading = true
		case strings.HasPrefix(line, "$ ") && len(all) > 0:
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			c := all[0]
			all, heading = all[1:], false
			fmt.Fprintf(&b, "$ %s\n%s", c.typed, c.output)
			if c.output != "" && !strings.HasSuffix(c.output, "\n") {
				b.WriteByte('\n')
			}
			if c.status != 0 {
				fmt.Fprintf(&b, "[%d]\n", c.status)
			}
		}
	}
	return b.String()
}
