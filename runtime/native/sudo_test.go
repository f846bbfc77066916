// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"io"
	"strconv"
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native"
	"sandpit.dev/sandbox"
)

// sudoBox makes a sandbox whose sudo is on.
func sudoBox(t testing.TB, o native.Options) *agent.Client {
	t.Helper()
	o.Dir = t.TempDir()
	d := openWith(t, o)
	t.Cleanup(func() { _ = d.Close() })
	i, err := d.Create(t.Context(), runtime.Spec{
		ID: sandbox.NewID(), Image: runtime.Image{Root: imagetest.Python(t).Root}, Hostname: "box",
		Limits: sandbox.Limits{CPU: 2, MemoryMB: 1024, DiskMB: 1024, Pids: 512},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Remove(context.Background()) })
	c := agent.NewClient(i.Dial)
	if err := c.SetSudo(t.Context(), agent.SudoOn); err != nil {
		t.Fatal(err)
	}
	return c
}

// inBox runs shell text that must succeed, and returns what it prints.
func inBox(t testing.TB, c *agent.Client, shell string) string {
	t.Helper()
	p, err := c.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: shell})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	var out strings.Builder
	for {
		f, err := p.Next(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		out.Write(f.Data)
	}
	if r := p.Result(); r.ExitCode != 0 {
		t.Fatalf("%s: %+v: %s", shell, r, out.String())
	}
	return strings.TrimSpace(out.String())
}

// The program and the socket of sudo come to their places in another way there.
func TestSudoByAYard(t *testing.T) {
	needRoot(t)
	if got := inBox(t, sudoBox(t, native.Options{Yard: true}), "sudo id -u"); got != "0" {
		t.Errorf("got %q", got)
	}
}

// BenchmarkSudoTrue is how long `sudo true` takes, and beside it a plain true, as a program inside sees it.
func BenchmarkSudoTrue(b *testing.B) {
	needRoot(b)
	c := sudoBox(b, native.Options{})
	for _, program := range []string{"sudo true", "true"} {
		b.Run(strings.ReplaceAll(program, " ", "-"), func(b *testing.B) {
			argv := `["` + strings.ReplaceAll(program, " ", `","`) + `"]`
			got := inBox(b, c, "python3 -c '\nimport os, time\ntook = []\nfor _ in range("+strconv.Itoa(b.N)+"):\n  began = time.perf_counter()\n  os.waitpid(os.posix_spawnp("+argv+"[0], "+argv+", os.environ), 0)\n  took.append(time.perf_counter() - began)\nprint(sorted(took)[len(took) // 2] * 1000)'")
			ms, err := strconv.ParseFloat(got, 64)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(ms, "ms-p50")
		})
	}
}
