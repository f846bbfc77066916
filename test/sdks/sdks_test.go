// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sdks

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/packagestest"
	"sandpit.dev/test/servertest"
)

const scriptBound = 5 * time.Minute // of a script: far more than it takes

// program is where TestMain put the server's.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if flag.Parse(); testing.Short() {
		return m.Run() // what needs the program skips itself, with the reason
	}
	dir, err := os.MkdirTemp("", "sandpit-sdks-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if program, err = servertest.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// passes runs a script of an SDK's with arguments, which makes at least so many checks, says what is wrong and fails then.
func passes(t *testing.T, env []string, checks int, script string, args ...string) {
	t.Helper()
	python := packagestest.NeedPip(t, "sdks-pip", ".")
	ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, append([]string{script}, args...)...)
	var out bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = append(env, "PYTHONPATH=../checks", "PYTHONDONTWRITEBYTECODE=1"), &out, &out, 10*time.Second
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s", script, err, out.Bytes())
	}
	if n := strings.Count("\n"+out.String(), "\nok "); n < checks {
		t.Errorf("%d checks passed, less than %d\n%s", n, checks, out.Bytes())
	}
}

// orkestr is the environment of a script of Orkestr's SDK, and gateway of one of the MCP Gateway's: with tokens of another
// project and of who only reads.
func orkestr(s *servertest.Server) []string {
	return append(environment(s), "ORKESTR_BASE_URL="+s.Address+"/orkestr", "ORKESTR_API_KEY="+s.Token)
}

func gateway(s *servertest.Server) []string {
	return append(environment(s), "MCPGATEWAY_URL="+s.Address+"/gateway", "MCPGATEWAY_TOKEN="+s.Token)
}

func environment(s *servertest.Server) []string {
	return append(slices.Clip(s.Env), "ADDRESS="+s.Address, "OTHER="+s.Run("token", "create", "--name", "other", "--project", "other", "--scope", "admin"),
		"READER="+s.Run("token", "create", "--name", "reader", "--scope", "sandboxes:read"))
}

func TestGateway(t *testing.T) {
	result := filepath.Join(t.TempDir(), "methods.json")
	passes(t, gateway(servertest.Start(t, program)), 230, "testdata/gateway.py", result)
	holds(t, rows(t, ofGateway, methods), result, 131)
}

func TestOrkestr(t *testing.T) {
	result := filepath.Join(t.TempDir(), "methods.json")
	passes(t, orkestr(configured(t, "webhooks: {allow: [127.0.0.1]}\n")), 200, "testdata/orkestr_sdk.py", result)
	holds(t, rows(t, ofOrkestr, methods), result, 90)
}

// configured is a server with a configuration.
func configured(t *testing.T, text string) *servertest.Server {
	t.Helper()
	servertest.Need(t)
	imagetest.Python(t)
	s, file := servertest.New(t, program, imagetest.Dir(t)), filepath.Join(t.TempDir(), "sandpit.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Env = append(s.Env, "SANDPIT_CONFIG="+file)
	s.Start()
	return s
}

// curated has the operator list what networks reach that are restricted without a list, as readmes take for granted.
const curated = "network: {curated: [pypi.org, files.pythonhosted.org, registry.npmjs.org]}\n"

func TestTheExamplesOfTheReadmesRunAsTheyAreWritten(t *testing.T) {
	for _, c := range []struct {
		sdk, pkg      string
		env           func(*servertest.Server) []string
		checks, least int
	}{
		{ofOrkestr, "orkestr", orkestr, 15, 18},
		{ofGateway, "mcpgateway-sdk", gateway, 5, 16},
	} {
		t.Run(c.pkg, func(t *testing.T) {
			result := filepath.Join(t.TempDir(), "examples.json")
			passes(t, c.env(configured(t, curated)), c.checks, "testdata/examples.py", c.pkg, result)
			holds(t, rows(t, c.sdk, examples), result, c.least)
		})
	}
}
