// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/internal/packagestest"
)

// buildBound is how long the image of language servers may take to be built: far more than it does. It is built once for all tests.
const buildBound = 10 * time.Minute

// withServers builds the image with language servers, where it is not built yet.
func withServers(t *testing.T, env []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), buildBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "image", "build", "daytona")
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		if why := packagestest.Unreachable(out); why != "" {
			t.Skipf("the packages of the image cannot be fetched: %s", why)
		}
		t.Fatalf("build the image: %v\n%s", err, out)
	}
}

func TestLanguageServersByPython(t *testing.T) {
	python := packagestest.NeedPip(t, "daytona-pip", ".")
	env := serve(t)
	withServers(t, env)
	ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
	defer cancel()
	passes(t, exec.CommandContext(ctx, python, "testdata/lsp.py"), env)
}

func TestLanguageServersByTypeScript(t *testing.T) {
	p := packagestest.NeedNPM(t, "daytona-npm", ".")
	script, err := filepath.Abs("testdata/lsp.mjs")
	if err != nil {
		t.Fatal(err)
	}
	env := serve(t)
	withServers(t, env)
	ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
	defer cancel()
	passes(t, p.Command(ctx, script), append(env, "SDK="+filepath.Join(p.Dir, "node_modules/@daytonaio/sdk")))
}

func TestADefaultTemplateGoesBeforeTheImageOfLanguageServers(t *testing.T) {
	d := open(t)
	withServers(t, d.env)
	made := func() string {
		t.Helper()
		status, b := d.ask(d.token, "POST", "/sandbox", "application/json", strings.NewReader(`{"networkBlockAll":true}`))
		var s struct {
			Snapshot string `json:"snapshot"`
		}
		if err := json.Unmarshal(b, &s); err != nil || status != 200 {
			t.Fatalf("create: %d %s", status, b)
		}
		return s.Snapshot
	}
	if got := made(); got != "daytona" {
		t.Errorf("a sandbox is of %q", got)
	}
	d.run("template", "create", "lab", "--image", "python", "--default")
	if got := made(); got != "lab" {
		t.Errorf("with a default template a sandbox is of %q", got)
	}
}
