// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func testBounds(t *testing.T, open func(*testing.T) *agent.Client, o Options) {
	c := open(t)
	many := make(map[string]string)
	for i := range agent.MaxEnv + 1 {
		many["A"+strings.Repeat("x", i%200)+string(rune('a'+i/200))] = "v"
	}
	for i := 0; len(many) <= agent.MaxEnv; i++ {
		many["B"+strings.Repeat("y", i%200)+string(rune('a'+i/200))] = "v"
	}
	for name, cmd := range map[string]agent.Command{
		"NoCommandAtAll":        {},
		"BothKindsOfCommand":    {Shell: "true", Argv: []string{"true"}},
		"EmptyProgram":          {Argv: []string{""}},
		"TooManyArguments":      {Argv: make([]string, agent.MaxArgs+1)},
		"TooLongArguments":      {Argv: []string{"echo", strings.Repeat("x", agent.MaxArgBytes)}},
		"TooLongText":           {Shell: strings.Repeat("#", agent.MaxShell+1)},
		"NULInText":             {Shell: "echo \x00"},
		"NULInArgument":         {Argv: []string{"echo", "\x00"}},
		"TextThatIsNotUnicode":  {Shell: "echo \xff"},
		"NULInCwd":              {Shell: "true", Cwd: "/\x00"},
		"NULInEnvironment":      {Shell: "true", Env: map[string]string{"A": "\x00"}},
		"EqualsInVariablesName": {Shell: "true", Env: map[string]string{"A=B": ""}},
		"VariableWithoutName":   {Shell: "true", Env: map[string]string{"": "x"}},
		"TooManyVariables":      {Shell: "true", Env: many},
		"TooLongEnvironment":    {Shell: "true", Env: map[string]string{"A": strings.Repeat("x", agent.MaxEnvBytes)}},
		"TooMuchStdin":          {Shell: "true", Stdin: make([]byte, agent.MaxStdin+1)},
		"StdinTwice":            {Shell: "true", Stdin: []byte("x"), StreamStdin: true},
		"UnknownUser":           {Shell: "true", User: "toor"},
		"NegativeTimeout":       {Shell: "true", Timeout: -1},
		"CapTooHigh":            {Shell: "true", MaxStdout: agent.MaxOutput + 1},
		"NegativeCap":           {Shell: "true", MaxStderr: -1},
		"TerminalWithoutSize":   {Shell: "true", Terminal: &agent.Terminal{}},
		"TerminalTooLarge":      {Shell: "true", Terminal: &agent.Terminal{Cols: 2001, Rows: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd.ID = sandbox.NewProcessID()
			_, err := c.Start(within(t), cmd)
			wantCode(t, err, fault.Invalid)
			if len(fault.As(err).Fields) == 0 {
				t.Errorf("no field is named: %v", err)
			}
			_, err = c.Process(within(t), cmd.ID)
			wantCode(t, err, fault.NotFound)
		})
	}
	t.Run("WhatIsJustWithinThemWorks", func(t *testing.T) {
		text := "exit 7 #" + strings.Repeat("x", agent.MaxShell-100)
		if out := run(t, c, agent.Command{Shell: text}); out.ExitCode != 7 {
			t.Errorf("%+v %q", out.Result, out.stderr)
		}
		argv := make([]string, agent.MaxArgs)
		for i := range argv {
			argv[i] = "x"
		}
		argv[0] = "true"
		p := start(t, c, agent.Command{Argv: argv})
		if out := collect(t, p); out.ExitCode != 0 {
			t.Errorf("%+v %q", out.Result, out.stderr)
		}
		rec, err := c.Process(within(t), p.ID())
		if err != nil || !rec.Clipped || len(rec.Argv) == 0 || rec.Argv[0] != "true" {
			t.Errorf("record: clipped %v, %d arguments, %v", rec.Clipped, len(rec.Argv), err)
		}
	})
	if !o.HasRoot {
		t.Run("RootIsDenied", func(t *testing.T) {
			_, err := c.Start(within(t), agent.Command{ID: sandbox.NewProcessID(), Shell: "true", User: "root"})
			wantCode(t, err, fault.Denied)
			_, err = c.Stat(within(t), "/", "root")
			wantCode(t, err, fault.Denied)
		})
	} else {
		t.Run("RootIsRoot", func(t *testing.T) {
			if out := run(t, c, agent.Command{Shell: "id -u", User: "root"}); out.stdout != "0\n" {
				t.Errorf("%q %q", out.stdout, out.stderr)
			}
		})
	}
	if o.Unprivileged {
		t.Run("SandboxIsNotRoot", func(t *testing.T) {
			out := sh(t, c, "id -u; grep CapEff /proc/self/status")
			if strings.HasPrefix(out, "0\n") || !strings.Contains(out, "0000000000000000") {
				t.Errorf("%q", out)
			}
		})
	}
}
