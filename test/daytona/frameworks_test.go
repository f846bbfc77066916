// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
	"sandpit.dev/internal/packagestest"
	"sandpit.dev/test/servertest"
)

// look is what the script of a framework says that there is. The test looks for itself, through our own client and API,
// before the script goes on.
type look struct {
	Sandbox  string
	State    string            // empty: it is gone
	Files    map[string]string // their content, by path
	Gone     []string          // paths where nothing is
	Commands map[string]string // what they print
}

// at looks, and fails if anything is otherwise.
func (l look) at(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	s, err := c.Get(ctx, l.Sandbox)
	if l.State == "" {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s shall be gone: %+v, %v", l.Sandbox, s, err)
		}
		return
	}
	if err != nil || s.Status != l.State {
		t.Errorf("%s shall be %s: %+v, %v", l.Sandbox, l.State, s, err)
		return
	}
	for path, want := range l.Files {
		f, err := c.ReadFile(ctx, l.Sandbox, path, client.ReadOptions{})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		got, err := io.ReadAll(f)
		_ = f.Close()
		if err != nil || string(got) != want {
			t.Errorf("%s has %q, not %q; %v", path, got, want, err)
		}
	}
	for _, path := range l.Gone {
		if info, err := c.Stat(ctx, l.Sandbox, path, ""); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s shall be gone: %+v, %v", path, info, err)
		}
	}
	for command, want := range l.Commands {
		r, err := c.Exec(ctx, l.Sandbox, v1.Exec{Command: &command})
		if err != nil || r.Stdout != want {
			t.Errorf("%q prints %+v, not %q; %v", command, r, want, err)
		}
	}
}

// day runs the script of a framework's, and looks at what the script says that there is.
func day(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	s := servertest.Start(t, program)
	c := client.New(s.Address, s.Token, client.Options{})
	var out, failed bytes.Buffer
	cmd.Env = append(clients(s), "PYTHONPATH=../checks", "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr, cmd.WaitDelay = &failed, 10*time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	checks, looks := 0, 0
	lines := bufio.NewScanner(said)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		out.WriteString(lines.Text() + "\n")
		checks += strings.Count(lines.Text(), "ok ")
		if about, ok := strings.CutPrefix(lines.Text(), "look "); ok {
			looks++
			var l look
			d := json.NewDecoder(strings.NewReader(about))
			d.DisallowUnknownFields()
			if err := d.Decode(&l); err != nil {
				t.Errorf("%s: %v", about, err)
			}
			l.at(t, c)
			if _, err := io.WriteString(in, "\n"); err != nil {
				t.Error(err)
			}
		}
	}
	if err := errors.Join(lines.Err(), cmd.Wait()); err != nil || t.Failed() {
		t.Errorf("%v\n%s%s", err, out.Bytes(), failed.Bytes())
	}
	if checks < 10 || looks < 2 {
		t.Errorf("%d checks passed and the test looked %d times, too few to be all\n%s", checks, looks, out.Bytes())
	}
}

func TestLangChainsDay(t *testing.T) { pythonsDay(t, "langchain") }

func TestComputeSDKsDay(t *testing.T) { nodesDay(t, "computesdk") }

func TestSoakDaysOfLargeFrameworks(t *testing.T) {
	if os.Getenv(soakVariable) == "" {
		t.Skipf("%s is not set: `make soak` installs the frameworks that are large", soakVariable)
	}
	t.Run("OpenAI", func(t *testing.T) { pythonsDay(t, "openai") })
	t.Run("Mastra", func(t *testing.T) { nodesDay(t, "mastra") })
}

func pythonsDay(t *testing.T, framework string) {
	python := packagestest.NeedPip(t, "daytona-"+framework, filepath.Join("frameworks", framework))
	ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
	defer cancel()
	day(t, exec.CommandContext(ctx, python, filepath.Join("frameworks", framework, "day.py")))
}

// nodesDay runs a script from where its packages are, by whose folder Node finds them.
func nodesDay(t *testing.T, framework string) {
	p := packagestest.NeedNPM(t, "daytona-"+framework, filepath.Join("frameworks", framework))
	script, err := filepath.Abs(filepath.Join("frameworks", framework, "day.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
	defer cancel()
	day(t, p.Command(ctx, script, filepath.Join(p.Dir, "node_modules")))
}
