// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sdks

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sandpit.dev/internal/packagestest"
	"sandpit.dev/test/servertest"
)

// A program with both SDKs sees its own classes of errors while the server is killed under it, and finds again what it was told.
// That no moment makes a difference shows test/load, by the wires alone.
func TestAProgramOfTheSDKsSurvivesAKill(t *testing.T) {
	python := packagestest.NeedPip(t, "sdks-pip", ".")
	s := servertest.Start(t, program)
	s.Env = append(s.Env, "SANDPIT_LISTEN="+strings.TrimPrefix(s.Address, "http://")) // where its clients look for it
	ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "testdata/killed.py")
	cmd.Env = append(orkestr(s), "MCPGATEWAY_URL="+s.Address+"/gateway", "MCPGATEWAY_TOKEN="+s.Token, "PYTHONPATH=../checks", "PYTHONDONTWRITEBYTECODE=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var wrong bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &wrong, 10*time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	passed := 0
	for r := bufio.NewScanner(out); r.Scan(); {
		switch line := r.Text(); {
		case line == "ready":
			s.Kill()
			_, err = io.WriteString(in, "\n")
		case line == "gone":
			s.Start()
			_, err = io.WriteString(in, "\n")
		default:
			said.WriteString(line + "\n")
			if strings.HasPrefix(line, "ok ") {
				passed++
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); err != nil || passed < 20 {
		t.Errorf("%v after %d checks\n%s%s", err, passed, said.String(), wrong.Bytes())
	}
}
