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
	"strings"
	"testing"
	"time"

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

// passes runs a script of an SDK's, which makes at least so many checks, says what is wrong and fails then.
func passes(t *testing.T, script string, checks int, env ...string) {
	t.Helper()
	python := packagestest.NeedPip(t, "sdks-pip", ".")
	ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, script)
	var out bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = append(env, "PYTHONPATH=../checks", "PYTHONDONTWRITEBYTECODE=1"), &out, &out, 10*time.Second
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s", script, err, out.Bytes())
	}
	if n := strings.Count("\n"+out.String(), "\nok "); n < checks {
		t.Errorf("%d checks passed, less than %d\n%s", n, checks, out.Bytes())
	}
}

// environment is that of a script: the server's address, and tokens of another project and of who only reads.
func environment(s *servertest.Server) []string {
	return append(s.Env, "ADDRESS="+s.Address, "OTHER="+s.Run("token", "create", "--name", "other", "--project", "other", "--scope", "admin"),
		"READER="+s.Run("token", "create", "--name", "reader", "--scope", "sandboxes:read"))
}

func TestGateway(t *testing.T) {
	s := servertest.Start(t, program)
	passes(t, "testdata/gateway.py", 130, append(environment(s), "MCPGATEWAY_URL="+s.Address+"/gateway", "MCPGATEWAY_TOKEN="+s.Token)...)
}

func TestOrkestr(t *testing.T) {
	s := servertest.Start(t, program)
	passes(t, "testdata/orkestr_sdk.py", 130, append(environment(s), "ORKESTR_BASE_URL="+s.Address+"/orkestr", "ORKESTR_API_KEY="+s.Token)...)
}
